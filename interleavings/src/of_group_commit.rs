use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering::SeqCst},
};
use std::time::Duration;

use shuttle::{
    current::set_label_for_task,
    future::{spawn, yield_now},
    rand::{Rng, thread_rng},
};
use tokio::time::{clear_triggers, trigger_timeouts};

use super::{
    check::Check,
    group_commit::{BatchWriter, GroupCommit, Unanswered},
};

const MOST: usize = 2;

/// Answers each item with ten times its number.
#[derive(Clone, Default)]
struct Writer {
    written: Arc<Mutex<Vec<usize>>>,
    busy: Arc<AtomicUsize>,
    turns: usize,
}

impl BatchWriter<usize, usize> for Writer {
    async fn write(&self, group: Vec<usize>) -> Vec<usize> {
        assert!(!group.is_empty() && group.len() <= MOST, "{group:?}");
        assert!(self.busy.fetch_add(1, SeqCst) < self.turns, "too many groups at once");
        yield_now().await;
        self.written.lock().unwrap().extend(&group);
        yield_now().await;
        self.busy.fetch_sub(1, SeqCst);
        group.iter().map(|item| item * 10).collect()
    }
}

/// Label of a task whose patience ends.
#[derive(Debug, Clone)]
struct Impatient;

async fn play(turns: usize) {
    clear_triggers();
    let queue = Arc::new(GroupCommit::new(turns, MOST));
    let writer = Writer { turns, ..Writer::default() };
    let callers = [0, 1, 2, 3, 4].map(|item| {
        let (queue, writer) = (queue.clone(), writer.clone());
        spawn(async move {
            let impatient = item % 2 == 1;
            if impatient {
                set_label_for_task(shuttle::current::me(), Impatient);
            }
            let patience = impatient.then_some(Duration::from_secs(1));
            let answered = queue.call(item, patience, || writer.clone()).await;
            match &answered {
                Ok(answer) => assert_eq!(*answer, item * 10, "the answer of another call"),
                Err(Unanswered::Late) => assert!(impatient && !writer.written.lock().unwrap().contains(&item)),
                Err(Unanswered::Ended) => panic!("a call without an answer"),
            }
            answered.is_ok().then_some(item)
        })
    });
    // A caller that is dropped, whose item is carried out.
    let dropped = {
        let (queue, writer) = (queue.clone(), writer.clone());
        spawn(async move {
            let mut call = Box::pin(queue.call(9, None, || writer.clone()));
            let _ = futures::poll!(&mut call);
        })
    };
    for _ in 0..thread_rng().gen_range(0..20) {
        yield_now().await;
    }
    trigger_timeouts(|labels| labels.get::<Impatient>().is_some());
    let mut expected = vec![9];
    for caller in callers {
        expected.extend(caller.await.unwrap());
    }
    dropped.await.unwrap();
    while writer.written.lock().unwrap().len() < expected.len() {
        yield_now().await;
    }
    let mut written = writer.written.lock().unwrap().clone();
    written.sort_unstable();
    expected.sort_unstable();
    assert_eq!(written, expected, "each call once, or not at all");
}

pub(super) fn check(check: &Check) {
    check.all("each call is carried out once or is late", || play(1));
    check.all("several groups at once", || play(2));
}
