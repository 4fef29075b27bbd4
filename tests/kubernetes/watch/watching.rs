//! A watch, and functions that wait for its items.

use std::collections::HashSet;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::BoxStream;
use sparkgate::cluster::{WatchItem, WatchReport};
use sparkgate::submission::{Container, ExecutorObservation, PodObservation};
use tokio::time::{Instant, timeout_at};

/// The timeout of all waits.
const PATIENCE: Duration = Duration::from_secs(45);

pub(crate) struct Watching {
    stream: BoxStream<'static, WatchItem>,
    /// The version from which a watch may resume after all items so far.
    pub(crate) version: Option<String>,
}

/// The names in a full list: `driver-1` and `driver-1/3`.
pub(crate) type Names = HashSet<String>;

impl Watching {
    pub(crate) fn new(stream: impl futures::Stream<Item = WatchItem> + Send + 'static) -> Self {
        Self { stream: stream.boxed(), version: None }
    }

    /// Waits for the first item for which `wanted` returns a value.
    #[track_caller]
    pub(crate) fn until<T>(&mut self, wanted: impl FnMut(WatchReport) -> Option<T>) -> impl Future<Output = T> {
        let caller = std::panic::Location::caller();
        async move { self.within(PATIENCE, wanted).await.unwrap_or_else(|| panic!("{caller}: the watch doesn't show it")) }
    }

    pub(crate) async fn within<T>(
        &mut self,
        patience: Duration,
        mut wanted: impl FnMut(WatchReport) -> Option<T>,
    ) -> Option<T> {
        let deadline = Instant::now() + patience;
        loop {
            let shown = timeout_at(deadline, self.stream.next()).await.ok()?.expect("a watch never ends");
            self.version = shown.resource_version.or_else(|| self.version.take());
            if let Some(found) = shown.report.and_then(&mut wanted) {
                return Some(found);
            }
        }
    }

    pub(crate) async fn driver(&mut self, wanted: impl Fn(&PodObservation) -> bool) -> PodObservation {
        self.until(|seen| match seen {
            WatchReport::Driver(driver) if wanted(&driver) => Some(*driver),
            _ => None,
        })
        .await
    }

    pub(crate) async fn executor(&mut self, wanted: impl Fn(&ExecutorObservation) -> bool) -> ExecutorObservation {
        self.until(|seen| match seen {
            WatchReport::Executor(executor) if wanted(&executor) => Some(*executor),
            _ => None,
        })
        .await
    }

    /// Returns the items until the next full list, and the list.
    pub(crate) async fn listed(&mut self) -> (Vec<WatchReport>, Names) {
        let mut before = Vec::new();
        let names = self.until(|seen| match seen {
            WatchReport::Listed { drivers, executors } => {
                let drivers = drivers.into_iter().map(|(id, _, _)| id.to_string());
                Some(drivers.chain(executors.into_iter().map(|(id, _, number)| format!("{id}/{number}"))).collect())
            }
            other => {
                before.push(other);
                None
            }
        });
        let names = names.await;
        (before, names)
    }

    pub(crate) async fn broken(&mut self) -> String {
        self.until(|seen| match seen {
            WatchReport::Broken { reason } => Some(reason),
            _ => None,
        })
        .await
    }
}

pub(crate) fn exit_code(container: &Container) -> Option<i32> {
    match container {
        Container::Terminated { exit_code, .. } => Some(*exit_code),
        _ => None,
    }
}

pub(crate) fn names<const N: usize>(names: [&str; N]) -> Names {
    names.map(str::to_owned).into()
}
