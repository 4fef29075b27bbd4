//! Queues of Kueue.

use clap::Args;

use sparkgate_access::{KueueQueue, is_label};
use sparkgate_service::KueueQueues;

#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Kueue")]
pub(in crate::app) struct Kueue {
    /// Namespaces of drivers whose submissions are launched when Kueue admits them, each with its `LocalQueue`, such as team-a=batch. A
    /// `WorkloadPriorityClass` may follow after a colon (docs/operate/kueue.md).
    #[arg(long, env = "SPARKGATE_KUEUE_QUEUES", value_name = "NAMESPACE=QUEUE", value_delimiter = ',', value_parser = queue)]
    kueue_queues: Vec<(String, KueueQueue)>,
}

impl Kueue {
    pub(in crate::app) fn settings(&self) -> KueueQueues {
        self.kueue_queues.iter().cloned().collect()
    }
}

fn queue(text: &str) -> Result<(String, KueueQueue), &'static str> {
    const EXPECTED: &str = "a namespace and its LocalQueue are written NAMESPACE=QUEUE, or NAMESPACE=QUEUE:CLASS";
    let (namespace, queue) = text.split_once('=').ok_or(EXPECTED)?;
    let queue = KueueQueue::parse(queue).filter(|_| is_label(namespace)).ok_or(EXPECTED)?;
    Ok((namespace.to_owned(), queue))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_is_written_with_its_namespace_and_its_priority_class() {
        let expected = |class: Option<&str>| {
            let queue = KueueQueue { local_queue: "batch".to_owned(), priority_class: class.map(str::to_owned) };
            Ok(("team-a".to_owned(), queue))
        };
        assert_eq!(queue("team-a=batch"), expected(None));
        assert_eq!(queue("team-a=batch:urgent"), expected(Some("urgent")));
        for wrong in ["", "batch", "=batch", "team-a=", "team-a=batch:", "team-a=Batch", "a.b=batch", "a=b=c"] {
            assert!(queue(wrong).is_err(), "{wrong}");
        }
    }
}
