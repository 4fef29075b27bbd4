//! The lifecycle of one pod: it is bound, prepared, run, reported and deleted.

mod run;

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Pod, PodSpec, PodStatus};
use k8s_openapi::jiff::Timestamp;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::Node;
use super::contract;
use super::events::Events;
use super::fault::Fault;
use super::logs::LogFile;
use super::marks;
use super::prepare::{Plan, prepare};
use super::report::Reporter;
use super::status::{self, Seen, State};

/// Interval at which the start of a pod that can't start yet is retried.
const RETRY: Duration = Duration::from_millis(300);

/// A file that is written just before a container starts: a container that has it is never started again.
const LAUNCHED: &str = "launched";

/// Serves one pod until its object is gone or the node shuts down.
pub(super) struct Worker {
    node: Arc<Node>,
    pod: watch::Receiver<Arc<Pod>>,
    gone: CancellationToken,
    namespace: String,
    name: String,
    uid: String,
    dir: PathBuf,
    reporter: Reporter,
    events: Events,
    seen: Seen,
}

/// The reason why a pod must stop.
enum Interrupt {
    Deleted,
    Deadline,
    Shutdown,
}

impl Worker {
    /// Creates a worker. `None` for an object without name, namespace or usable uid, which no API server sends.
    pub(super) fn new(node: Arc<Node>, pod: watch::Receiver<Arc<Pod>>, gone: CancellationToken) -> Option<Self> {
        let first = Arc::clone(&pod.borrow());
        let (namespace, name) = (first.metadata.namespace.clone()?, first.metadata.name.clone()?);
        let uid =
            first.metadata.uid.clone().filter(|uid| uid.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'))?;
        let reporter = Reporter::new(node.client.clone(), &namespace, &name, &uid);
        let events = Events::new(node.client.clone(), &node.name, &namespace, &name, &uid);
        let container =
            contract::spark_container(first.spec.as_ref()?).ok().map(|(container, _)| container.name.clone());
        let before = first.status.as_ref();
        let seen = Seen {
            container,
            address: before.and_then(|status| status.pod_ip.as_ref()?.parse().ok()),
            accepted: before.and_then(|status| Some(status.start_time.as_ref()?.0)).unwrap_or_else(Timestamp::now),
            state: State::Waiting { reason: "ContainerCreating", message: None },
            verdict: None,
        };
        let dir = node.pods_dir().join(&uid);
        Some(Self { node, pod, gone, namespace, name, uid, dir, reporter, events, seen })
    }

    pub(super) async fn run(mut self) {
        let gone = self.gone.clone();
        let mut address = None;
        let finished = tokio::select! {
            () = gone.cancelled() => true,
            () = self.live(&mut address) => !self.node.shutdown.is_cancelled(),
        };
        if finished {
            // After the forced deletion the object may stay because of its finalizers; its log stays as long.
            tokio::select! {
                () = gone.cancelled() => {
                    self.node.logs.forget(&self.namespace, &self.name, &self.uid);
                    marks::kill_below(&self.dir);
                    super::remove_dir(&self.dir);
                }
                () = self.node.shutdown.cancelled() => {}
            }
        }
        if let Some(address) = address {
            self.node.addresses.give_back(address);
        }
    }

    async fn live(&mut self, address: &mut Option<Ipv4Addr>) {
        if !self.bind().await {
            return;
        }
        let phase = self.current().status.as_ref().and_then(|status| status.phase.clone());
        if let Some("Succeeded" | "Failed") = phase.as_deref() {
            self.adopt_log();
        } else if phase.as_deref() == Some("Running") || self.dir.join(LAUNCHED).exists() {
            self.adopt_log();
            self.report_lost().await;
        } else {
            let own = *address.insert(self.node.addresses.take());
            self.seen.address = Some(own);
            self.start(own).await;
        }
        let pod = &mut self.pod;
        tokio::select! {
            deleted = pod.wait_for(|pod| pod.metadata.deletion_timestamp.is_some()) => drop(deleted),
            () = self.node.shutdown.cancelled() => return,
        }
        self.reporter.delete().await;
    }

    /// Binds the pod to this node unless it is bound. Returns false if it is bound to another node.
    async fn bind(&mut self) -> bool {
        let node = self.node.name.clone();
        loop {
            let pod = self.current();
            let spec = pod.spec.as_ref();
            match spec.and_then(|spec| spec.node_name.as_deref()).filter(|name| !name.is_empty()) {
                Some(name) => return name == node,
                None if spec.is_some_and(|spec| spec.scheduling_gates.iter().flatten().next().is_some()) => {}
                None => {
                    self.reporter.bind(&node).await;
                    let pod = format!("{}/{}", self.namespace, self.name);
                    self.events.normal("Scheduled", format!("Successfully assigned {pod} to {node}"));
                }
            }
            tokio::select! {
                changed = self.pod.changed() => if changed.is_err() { return false },
                () = self.node.shutdown.cancelled() => return false,
            }
        }
    }

    async fn start(&mut self, address: Ipv4Addr) {
        if let Some(container) = &self.seen.container {
            self.node.logs.expect(&self.namespace, &self.name, &self.uid, container);
        }
        self.report().await;
        let mut last_fault = None;
        let plan = loop {
            let mut pod = (*self.current()).clone();
            // The downward API reads the address from the status, which the watch may not have delivered yet.
            let status = pod.status.get_or_insert_with(PodStatus::default);
            (status.pod_ip, status.host_ip) = (Some(address.to_string()), Some(status::HOST.to_owned()));
            match prepare(&self.node, &pod, address, &self.dir).await {
                Ok(plan) => break plan,
                Err(fault) => {
                    self.tell(&fault, &mut last_fault);
                    self.seen.state = State::Waiting { reason: fault.reason(), message: Some(fault.to_string()) };
                    self.report().await;
                }
            }
            tokio::select! {
                () = tokio::time::sleep(RETRY) => {}
                interrupt = self.interrupted() => return self.never_started(&interrupt).await,
            }
        };
        self.execute(plan).await;
    }

    /// Writes an event for a fault that occurs a second time. The first time it isn't reported: the objects that a pod mounts
    /// may be created after the pod.
    fn tell(&self, fault: &Fault, last_fault: &mut Option<(String, bool)>) {
        let text = fault.to_string();
        match last_fault {
            Some((before, is_reported)) if *before == text => {
                if !std::mem::replace(is_reported, true) {
                    self.events.warning(fault.event(), text);
                }
            }
            _ => *last_fault = Some((text, false)),
        }
    }

    async fn never_started(&mut self, interrupt: &Interrupt) {
        match interrupt {
            // The pod can start when a node is back.
            Interrupt::Shutdown => return,
            Interrupt::Deadline => self.seen.verdict = Some(deadline_exceeded()),
            Interrupt::Deleted => {}
        }
        let message = Some("The container was not started before the pod was ended".to_owned());
        self.end(137, "ContainerStatusUnknown", message, None).await;
    }

    /// Reports a pod that ran under an earlier node of this name, whose processes are gone.
    async fn report_lost(&mut self) {
        let text = "the sandbox node restarted, which ended the pod's processes".to_owned();
        self.seen.verdict = Some(("NodeRestarted", text.clone()));
        let since = started_at(&self.current());
        self.end(137, "NodeRestarted", Some(text), since).await;
    }

    /// Takes over the log of an earlier node.
    fn adopt_log(&self) {
        if let Some(container) = &self.seen.container {
            let file = LogFile::new(&self.dir, container);
            self.node.logs.adopt(&self.namespace, &self.name, &self.uid, file);
        }
    }

    async fn end(&mut self, code: i32, reason: &'static str, message: Option<String>, since: Option<Timestamp>) {
        self.seen.state = State::Terminated { exit_code: code, reason, message, since, at: Timestamp::now() };
        self.report().await;
    }

    async fn report(&mut self) {
        let status = status::status(&self.current(), &self.seen, Timestamp::now());
        self.reporter.status(status).await;
    }

    fn current(&self) -> Arc<Pod> {
        Arc::clone(&self.pod.borrow())
    }

    /// Waits for the pod's deletion, its deadline, or the node's shutdown.
    async fn interrupted(&mut self) -> Interrupt {
        let limit = self.current().spec.as_ref().and_then(|spec: &PodSpec| spec.active_deadline_seconds);
        let since = Timestamp::now().duration_since(self.seen.accepted);
        let left = limit.map(|limit| {
            let limit = Duration::from_secs(limit.max(0).unsigned_abs());
            limit.saturating_sub(Duration::try_from(since).unwrap_or_default())
        });
        let deadline = async {
            match left {
                Some(left) => tokio::time::sleep(left).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            // The sender is dropped only together with the object; `gone` then ends this worker.
            Ok(_) = self.pod.wait_for(|pod| pod.metadata.deletion_timestamp.is_some()) => Interrupt::Deleted,
            () = deadline => Interrupt::Deadline,
            () = self.node.shutdown.cancelled() => Interrupt::Shutdown,
        }
    }
}

/// Returns when the container started, according to the last report.
fn started_at(pod: &Pod) -> Option<Timestamp> {
    let mut containers = pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
    containers.find_map(|container| Some(container.state.as_ref()?.running.as_ref()?.started_at.as_ref()?.0))
}

fn deadline_exceeded() -> (&'static str, String) {
    ("DeadlineExceeded", "Pod was active on the node longer than the specified deadline".to_owned())
}
