//! One run, from its seed to its report.

use std::{path::PathBuf, time::Duration};

use sparkgate_testing::{dice::Dice, guard::guard};
use tokio::time::Instant;

use super::{
    chaos::{Blows, storm},
    files::Uploaders,
    oracle::{Unseen, judge, promises, stored},
    readers::Readers,
    replica::Replica,
    report::Report,
    takeover,
    world::{Setting, World},
};

/// The time that readers get to reach the end.
const READERS: Duration = Duration::from_secs(90);

#[derive(Debug, Clone)]
pub(crate) struct Run {
    /// The `sparkgate` to run.
    pub(crate) program: PathBuf,
    pub(crate) seed: u64,
    /// The number of jobs to be accepted.
    pub(crate) jobs: u32,
    pub(crate) replicas: usize,
    pub(crate) setting: Setting,
    pub(crate) blows: Blows,
    /// How often to measure a takeover afterwards.
    pub(crate) takeovers: usize,
    /// The time within which everything has to settle after the storm.
    pub(crate) patience: Duration,
    /// Print the progress from time to time.
    pub(crate) talkative: bool,
}

impl Run {
    pub(crate) async fn play(&self) -> Report {
        let began = Instant::now();
        let mut world =
            World::set(self.program.clone(), self.seed, self.replicas, Readers::OPTIONS, self.setting).await;
        let readers = Readers::begin(&world).await;
        self.say(began, "everything is up, the storm begins");
        let clients = world.clients.clone();
        let progress = async {
            loop {
                tokio::time::sleep(Duration::from_secs(30)).await;
                let accepted = clients.book().accepted.len();
                self.say(began, &format!("{accepted} accepted"));
            }
        };
        let uploaders = self.setting.objects.then(|| Uploaders::new(&world));
        let queues = world.queues.clone();
        let (time, storm) = (self.blows.time(), storm(&mut world, &self.blows));
        let caps = async {
            if let Some(queues) = &queues {
                queues.storm(Dice::new(self.seed, "queues"), time).await;
            }
        };
        let upload = async {
            if let Some(uploaders) = uploaders {
                uploaders.work(time).await;
            }
        };
        tokio::select! {
            () = progress => {}
            _ = async { tokio::join!(clients.submit_all(self.jobs, time), storm, upload, caps) } => {}
        }

        world.calm().await;
        let calm = Instant::now();
        self.say(began, "the storm is over");
        world.settle(self.patience).await;
        let settled_after = calm.elapsed();
        let takeovers = takeover::measure(&world, self.takeovers).await;
        self.say(began, "judging");
        let mut verdict = judge(&mut world, Unseen::Never).await;
        let queues = world.queues.as_ref().map(|queues| queues.seen().clone());
        verdict.violations.extend(queues.iter().flat_map(|seen| seen.violations.clone()));
        verdict.violations.extend(readers.judge(&world, READERS).await);
        let promises = promises::judge(&mut world).await;
        verdict.violations.extend(promises.broken.iter().map(|(promise, what)| format!("{promise}: {what}")));
        let (stored, wrong) = stored::judge(&world).await;
        verdict.violations.extend(wrong);

        let sum = |of: fn(&Replica) -> usize| world.replicas.iter().map(|replica| of(replica)).sum();
        let book = world.clients.book();
        let acts = world.deeds.lock().unwrap().counts.clone();
        Report {
            acts,
            queues,
            seed: self.seed,
            jobs: self.jobs,
            accepted: book.accepted.len(),
            in_doubt: book.in_doubt.len(),
            said_in_doubt: book.said_in_doubt,
            put_off: book.put_off,
            kills_asked: book.kills.len(),
            replicas: self.replicas,
            setting: self.setting,
            blows: self.blows.clone(),
            starts: sum(Replica::starts),
            replies_lost: sum(|replica| replica.database.replies_lost() + replica.cluster.replies_lost()),
            verdict,
            promises,
            stored,
            settled_after,
            takeovers,
            read: readers.counts(),
            took: began.elapsed(),
        }
    }

    fn say(&self, began: Instant, what: &str) {
        if self.talkative {
            eprintln!("{:>5.0} s  {what}", began.elapsed().as_secs_f64());
        }
    }
}

/// Returns the violations as a message, if there are any, and keeps the logs.
pub(crate) fn complaint(what: &str, violations: &[String]) -> Option<String> {
    const MOST: usize = 40;
    if violations.is_empty() {
        return None;
    }
    guard().keep();
    let shown: Vec<_> = violations.iter().take(MOST).cloned().collect();
    let more = violations.len().saturating_sub(MOST);
    let more = if more > 0 { format!("\nand {more} more") } else { String::new() };
    let (count, logs) = (violations.len(), guard().directory().display());
    Some(format!("{what}: {count} violations\n{}{more}\nlogs: {logs}", shown.join("\n")))
}
