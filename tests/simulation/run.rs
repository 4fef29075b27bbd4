//! Many histories, on all cores.

use std::sync::{
    Mutex,
    atomic::{AtomicU64, Ordering},
};

use crate::{
    counts::Counts,
    flaw::Flaw,
    world::{Failure, play},
};

/// Plays the histories of `histories` seeds from `first` on, until one fails.
///
/// # Errors
/// The failed history, in words.
pub(crate) fn play_all(flaw: Option<Flaw>, first: u64, histories: u64) -> Result<Counts, Box<Failure>> {
    let next = AtomicU64::new(0);
    let all = Mutex::new(Ok(Counts::default()));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                let mut counts = Counts::default();
                let failed = loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= histories {
                        break None;
                    }
                    match play(flaw, first.wrapping_add(number), false) {
                        Ok((played, _)) => counts.join(&played),
                        Err(failure) => {
                            next.store(histories, Ordering::Relaxed);
                            break Some(failure.seed);
                        }
                    }
                };
                let mut all = all.lock().expect("no thread panics while it holds the lock");
                match (failed, &mut *all) {
                    (Some(seed), all) => *all = Err(seed),
                    (None, Ok(all)) => all.join(&counts),
                    (None, Err(_)) => {}
                }
            });
        }
    });
    let all = all.into_inner().expect("no thread panics while it holds the lock");
    all.map_err(|seed| Box::new(play(flaw, seed, true).expect_err("the same seed gives the same history")))
}
