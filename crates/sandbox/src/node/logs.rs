//! Container logs: files in the pod's directory, and the part of the kubelet's API that serves them.

mod reader;
mod server;
mod writer;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

pub(super) use server::router;
pub(super) use writer::LogWriter;

/// The progress of a log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Progress {
    /// The segment that is being written.
    segment: u64,
    /// Bytes in this segment.
    bytes: u64,
    /// The log is complete.
    done: bool,
}

/// The readers' view of a log.
#[derive(Debug, Clone)]
struct Log {
    file: LogFile,
    progress: watch::Receiver<Progress>,
}

/// The files of one log: `<container>.<segment>.log`.
#[derive(Debug, Clone)]
pub(super) struct LogFile {
    dir: PathBuf,
    container: String,
}

impl LogFile {
    pub(super) fn new(pod_dir: &Path, container: &str) -> Self {
        Self { dir: pod_dir.join("logs"), container: container.to_owned() }
    }

    fn segment(&self, number: u64) -> PathBuf {
        self.dir.join(format!("{}.{number}.log", self.container))
    }

    /// Returns the numbers of the existing segments, oldest first.
    fn segments(&self) -> Vec<u64> {
        let number =
            |name: &str| name.strip_prefix(&self.container)?.strip_prefix('.')?.strip_suffix(".log")?.parse().ok();
        let entries = std::fs::read_dir(&self.dir).into_iter().flatten().flatten();
        let mut numbers: Vec<u64> = entries.filter_map(|entry| number(entry.file_name().to_str()?)).collect();
        numbers.sort_unstable();
        numbers
    }
}

/// The state of a pod's log.
#[derive(Debug, Clone)]
enum Known {
    /// The container hasn't started.
    Waiting,
    Log(Log),
}

/// One pod, with the uid that distinguishes it from a later pod of the same name.
#[derive(Debug)]
struct Entry {
    uid: String,
    container: String,
    known: Known,
}

/// The logs of all pods of this node, by namespace and name.
#[derive(Debug, Clone, Default)]
pub(super) struct Logs(Arc<Mutex<HashMap<(String, String), Entry>>>);

impl Logs {
    /// Registers a pod whose container hasn't started.
    pub(super) fn expect(&self, namespace: &str, pod: &str, uid: &str, container: &str) {
        self.put(namespace, pod, uid, container, Known::Waiting);
    }

    /// Begins the log of a container.
    pub(super) fn begin(&self, namespace: &str, pod: &str, uid: &str, file: LogFile) -> std::io::Result<LogWriter> {
        let (writer, progress) = LogWriter::create(file.clone())?;
        let container = file.container.clone();
        self.put(namespace, pod, uid, &container, Known::Log(Log { file, progress }));
        Ok(writer)
    }

    /// Takes over the log of a container that ended under an earlier node.
    pub(super) fn adopt(&self, namespace: &str, pod: &str, uid: &str, file: LogFile) {
        let container = file.container.clone();
        let segment = file.segments().last().copied().unwrap_or_default();
        let progress = watch::channel(Progress { segment, bytes: 0, done: true }).1;
        self.put(namespace, pod, uid, &container, Known::Log(Log { file, progress }));
    }

    pub(super) fn forget(&self, namespace: &str, pod: &str, uid: &str) {
        let key = (namespace.to_owned(), pod.to_owned());
        let mut entries = self.lock();
        if entries.get(&key).is_some_and(|entry| entry.uid == uid) {
            entries.remove(&key);
        }
    }

    fn put(&self, namespace: &str, pod: &str, uid: &str, container: &str, known: Known) {
        let entry = Entry { uid: uid.to_owned(), container: container.to_owned(), known };
        self.lock().insert((namespace.to_owned(), pod.to_owned()), entry);
    }

    /// Returns a log, or `None` if there is no such pod or container.
    fn find(&self, namespace: &str, pod: &str, container: &str) -> Option<Known> {
        let entries = self.lock();
        let entry = entries.get(&(namespace.to_owned(), pod.to_owned()))?;
        (entry.container == container).then(|| entry.known.clone())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(String, String), Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
