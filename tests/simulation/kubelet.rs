//! The scheduler, the nodes, and the events on them.

use sparkgate::submission::Phase;

use crate::{
    cluster::{Body, Local, Pod, Whose},
    counts::Count,
    names::{attempt_of, submission_of},
    store::Time,
    truth::ConfigMapOf,
    world::World,
};

/// No pod starts sooner: first it is scheduled, its image is pulled and its volumes are mounted. That takes longer than
/// garbage collection.
const STARTS_AFTER: Time = 1_000;

impl World {
    /// Lets one event happen to one pod.
    pub(crate) fn kubelet_steps(&mut self) {
        let Some(pod) = self.some_pod() else { return };
        let name = pod.name;
        if !pod.bound {
            if pod.deletion.is_none() && self.rng.chance(self.plan.full) {
                if pod.body == Body::Absent {
                    self.say(|_| format!("there is no node for pod {}", pod.uid));
                    self.counts.add(Count::Unschedulable);
                    self.cluster.report(name, |pod| pod.body = Body::Unscheduled);
                }
            } else if pod.deletion.is_none() && self.rng.chance(700) {
                self.say(|_| format!("pod {} gets a node", pod.uid));
                self.cluster.report(name, |pod| {
                    (pod.bound, pod.body) = (true, if pod.body == Body::Unscheduled { Body::Absent } else { pod.body });
                });
            }
        } else if self.rng.chance(self.plan.node) {
            self.node_trouble(name, pod);
        } else {
            self.node_steps(name, pod);
        }
    }

    /// Returns any existing pod: most attempts' names are never used.
    fn some_pod(&mut self) -> Option<Pod> {
        let names = &self.cluster.names;
        let from = self.rng.place(names.len())?;
        names[from..].iter().chain(&names[..from]).find_map(|named| named.pod)
    }

    fn node_steps(&mut self, name: usize, pod: Pod) {
        match pod.local {
            Local::NotStarted if pod.phase_is_final() => self.finish_deletion(name, pod),
            Local::NotStarted if pod.deletion.is_some() => self.never_started(name, pod),
            Local::NotStarted => self.start(name, pod),
            // The API server doesn't wait for the end of a pod that is deleted by force: its driver may live on for a
            // while.
            Local::Running if pod.deletion == Some(0) && !self.settling && self.rng.chance(700) => {}
            Local::Running if pod.deletion.is_some() => {
                // It may exit with success on SIGTERM.
                let code = if self.rng.chance(150) { 0 } else { 143 };
                self.exits(name, pod, code);
            }
            Local::Running if pod.body != Body::Running && self.rng.chance(600) => {
                self.say(|_| format!("pod {} is reported as running", pod.uid));
                self.cluster.report(name, |pod| {
                    pod.phase = Phase::Running;
                    pod.body = Body::Running;
                });
            }
            Local::Running if self.plan.wanted[submission_of(name)].endless => {}
            Local::Running if self.settling || self.rng.chance(50) => {
                let code = self.plan.wanted[submission_of(name)].exit_codes[attempt_of(name) as usize - 1];
                self.exits(name, pod, code);
            }
            Local::Running => {}
            Local::Exited(code) if pod.body != Body::Exited(code) => self.report_exit(name, pod, code),
            // Kubelets publish an end before they start the container again.
            Local::Exited(_) if pod.restarts && pod.deletion.is_none() => self.start(name, pod),
            Local::Exited(_) => self.finish_deletion(name, pod),
            Local::Vanished => self.clean_up_after_node(name, pod),
        }
    }

    fn start(&mut self, name: usize, pod: Pod) {
        let Some(Some(config_map)) = self.cluster.names[name].beside.last().copied() else { return };
        if !matches!(pod.whose, Whose::Ours { .. }) || self.now < pod.created_at + STARTS_AFTER {
            return;
        }
        if pod.body == Body::Absent && self.rng.chance(100) {
            self.say(|_| format!("pod {} can't pull its image yet", pod.uid));
            self.cluster.report(name, |pod| pod.body = Body::Stuck);
            return;
        }
        self.say(|_| format!("pod {}: the driver starts", pod.uid));
        self.counts.add(Count::Started);
        self.set_local(name, Local::Running);
        let on_whose = if config_map.owner == Some(pod.uid) {
            ConfigMapOf::Itself
        } else if config_map.late {
            ConfigMapOf::GoneByALateWriter
        } else {
            ConfigMapOf::Gone
        };
        match self.truths.start(name, pod.uid, &self.cluster, self.plan.finalizer, on_whose) {
            Ok(true) => self.check_admission(submission_of(name), attempt_of(name)),
            Ok(false) => self.counts.add(Count::StrayStarted),
            Err(wrong) => self.fail(wrong),
        }
    }

    fn exits(&mut self, name: usize, pod: Pod, code: i32) {
        self.say(|_| format!("pod {}: the driver exits with code {code}", pod.uid));
        self.set_local(name, Local::Exited(code));
    }

    fn report_exit(&mut self, name: usize, pod: Pod, code: i32) {
        self.say(|_| format!("pod {}: exit code {code} is reported", pod.uid));
        self.counts.add(Count::Ended);
        let (forced, now) = (pod.deletion == Some(0), self.now);
        let truth = self.truths.pod(pod.uid);
        truth.exit = Some(code);
        truth.ended_at.get_or_insert(now);
        truth.forced_first |= forced;
        self.cluster.report(name, |pod| {
            if !pod.restarts {
                pod.phase = if code == 0 { Phase::Succeeded } else { Phase::Failed };
            }
            pod.body = Body::Exited(code);
        });
    }

    /// Reports a deleted pod whose driver never started: some kubelets report that it failed.
    fn never_started(&mut self, name: usize, pod: Pod) {
        if self.rng.chance(300) {
            self.fails(name, pod, Some("DeletionByPodGC"));
        } else {
            self.finish_deletion(name, pod);
        }
    }

    /// Sends the kubelet's last report on a deleted pod.
    fn finish_deletion(&mut self, name: usize, pod: Pod) {
        if pod.deletion.is_some_and(|grace| grace > 0) {
            self.say(|_| format!("pod {}: its node is done with it", pod.uid));
            self.delete(name, pod.uid, Some(0));
        }
    }

    fn node_trouble(&mut self, name: usize, pod: Pod) {
        let ended = pod.phase_is_final();
        if !matches!(pod.whose, Whose::Ours { .. }) || ended || pod.local == Local::Vanished {
            self.node_steps(name, pod);
        } else if pod.deletion.is_none() && self.rng.chance(400) {
            self.counts.add(Count::Preempted);
            self.say(|_| format!("pod {} has to make room, and has its grace period", pod.uid));
            self.truths.pod(pod.uid).failed = true;
            self.cluster.report(name, |pod| pod.reason = Some("PreemptionByScheduler"));
            self.delete(name, pod.uid, None);
        } else if self.rng.chance(500) {
            self.counts.add(Count::Evicted);
            self.say(|_| format!("pod {} is evicted", pod.uid));
            // The driver has ended, but its exit code is never reported.
            self.set_local(name, Local::Vanished);
            self.fails(name, pod, Some("Evicted"));
        } else {
            self.counts.add(Count::NodeVanished);
            self.say(|_| format!("the node of pod {} vanishes", pod.uid));
            self.set_local(name, Local::Vanished);
        }
    }

    /// Cleans up after a failed node, as the control plane does: it may mark the pod as failed, and deletes it by
    /// force.
    fn clean_up_after_node(&mut self, name: usize, pod: Pod) {
        if pod.phase_is_final() {
            if pod.deletion.is_some() || pod.reason != Some("Evicted") {
                self.delete(name, pod.uid, Some(0));
            }
        } else if self.rng.chance(500) {
            self.fails(name, pod, Some("DeletionByPodGC"));
        } else {
            self.say(|_| format!("pod {} is deleted by force after its node", pod.uid));
            let truth = self.truths.pod(pod.uid);
            truth.deleted_outside = true;
            truth.forced_first = true;
            self.delete(name, pod.uid, Some(0));
        }
    }

    fn fails(&mut self, name: usize, pod: Pod, reason: Option<&'static str>) {
        self.say(|_| format!("pod {} is reported as failed, {reason:?}", pod.uid));
        let now = self.now;
        let truth = self.truths.pod(pod.uid);
        truth.failed = true;
        truth.ended_at.get_or_insert(now);
        self.cluster.report(name, |pod| {
            pod.phase = Phase::Failed;
            pod.reason = reason;
        });
    }

    /// Deletes a pod, as the control plane or another user does.
    pub(crate) fn delete(&mut self, name: usize, uid: u64, grace: Option<u32>) {
        self.cluster.delete_pod(name, uid, grace, self.now);
    }

    fn set_local(&mut self, name: usize, local: Local) {
        if let Some(pod) = self.cluster.names[name].pod.as_mut() {
            pod.local = local;
        }
    }
}
