//! The loop that queues deliveries and sends what is due, on the replica that holds the lease.

use std::{
    collections::HashMap,
    future::ready,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use backon::{BackoffBuilder, ExponentialBuilder};
use chrono::Utc;
use futures::StreamExt;
use tokio::{
    sync::Notify,
    time::{Instant, sleep},
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use super::{
    Webhooks,
    destinations::{Admission, Destinations, Turn},
    message::Message,
    secrets::Secrets,
    send::{Failed, Sender},
};
use sparkgate_common::{
    error::{Error, error_chain},
    shares::Place,
};
use sparkgate_metrics::metrics;
use sparkgate_requests::options::webhook::MessageFormat;
use sparkgate_store::{DueDelivery, DueWebhook, Settled, TriedDelivery};

const LEASE: &str = "webhooks";
/// Events that are queued in one statement.
const PAGE: u32 = 500;
/// The longest pause between two rounds: for what other replicas queued again. New events, ends of turns and the time of the next try
/// begin a round sooner.
const POLL: Duration = Duration::from_secs(5);
/// The pause if deliveries of a webhook ended and more may be due.
const GAP: Duration = Duration::from_millis(10);
const RETRY: Duration = Duration::from_secs(1);
/// Interval of the clean-up, and how many rows it deletes at once.
const CLEAN_UP: Duration = Duration::from_secs(60);
const CLEANED_AT_ONCE: u32 = 5000;
/// Webhooks of a tenant that are read at once: so many that wait, and so many whose receivers fail.
const READ_AT_ONCE: u32 = 32;
/// Webhooks that are looked at in one statement, for those without a turn.
const RESTORED_AT_ONCE: u32 = 5000;
/// How long a receiver has to fail until deliveries to it are given up that weren't tried.
const GIVES_UP: Duration = Duration::from_secs(600);
/// Deliveries of one webhook in one turn, and the messages that it gets at the same time.
const TURN: u32 = 100;
const ABREAST: usize = 8;
/// How long a turn begins deliveries. Then other webhooks have theirs.
const TURN_TIME: Duration = Duration::from_secs(10);
/// Pauses between the tries of a delivery: each is lengthened at random, up to twice its length.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LAST_PAUSE: Duration = Duration::from_secs(300);
/// A delivery is tried for a day.
const PATIENCE: Duration = Duration::from_secs(24 * 3600);

/// Where messages of a webhook go.
struct Receiver<'a> {
    sender: &'a Sender,
    url: &'a str,
    /// Or why there are none.
    secrets: Result<Secrets, String>,
}

/// The state of the rounds of this replica.
#[derive(Debug, Default)]
struct Rounds {
    /// The turns of webhooks that are being served. There are as many as places at most.
    turns: HashMap<String, AbortOnDropHandle<()>>,
    destinations: Destinations,
    /// Notified when a turn ends.
    ended: Arc<Notify>,
    cleaned: Option<Instant>,
    /// How far webhooks without a turn were looked for.
    restored: String,
    /// Whether the webhook of the installation is as the settings have it, and each webhook with pending deliveries waits for a turn.
    is_settled: bool,
}

impl Webhooks {
    /// Queues and sends while this replica holds the lease, until `stop`.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) {
        let leases = self.leases.clone();
        // Turns belong to the rounds: they end with the lease.
        leases.while_held(LEASE, &stop, || ready(Ok(true)), || self.clone().rounds()).await;
    }

    async fn rounds(self: Arc<Self>) {
        let mut rounds = Rounds::default();
        let mut numbered = self.events.numbered();
        loop {
            // What is numbered from here on begins another round.
            numbered.mark_unchanged();
            let pause = match self.round(&mut rounds).await {
                Ok(pause) => pause,
                Err(error) => {
                    tracing::warn!(retry_in = ?RETRY, "queueing deliveries of webhooks failed: {}", error_chain(&error));
                    sleep(RETRY).await;
                    continue;
                }
            };
            tokio::select! {
                () = sleep(pause) => {}
                _ = numbered.changed() => {}
                () = self.replayed.notified() => {}
                // Ends of turns are collected for a moment.
                () = rounds.ended.notified() => sleep(GAP).await,
            }
        }
    }

    /// Queues a page of events, and begins turns of the webhooks with due deliveries. Returns how long nothing is due, as far as this
    /// replica knows.
    async fn round(self: &Arc<Self>, rounds: &mut Rounds) -> Result<Duration, Error> {
        if !rounds.is_settled {
            self.follow_settings().await?;
            while self.restore_turns(rounds).await? {}
            rounds.is_settled = true;
        }
        let behind = self.store.events_behind_webhooks().await?;
        metrics().webhook_events_behind.set(behind as f64);
        let mut more = false;
        if behind > 0 {
            let queued = self.store.queue_deliveries(PAGE).await?;
            more = queued.events == i64::from(PAGE);
        }
        rounds.turns.retain(|_, turn| !turn.is_finished());
        more |= self.begin_turns(rounds).await?;
        let next = self.store.next_turn().await?;
        if rounds.cleaned.is_none_or(|at| at.elapsed() >= CLEAN_UP) {
            rounds.cleaned = Some(Instant::now());
            rounds.destinations.forget_unused();
            let restored = self.restore_turns(rounds).await.map(drop);
            let cleaned = self.store.clean_up_webhooks(CLEANED_AT_ONCE).await.map(drop).map_err(Error::from);
            // Deliveries don't wait for either.
            for error in [restored, cleaned].into_iter().filter_map(Result::err) {
                tracing::warn!(retry_in = ?CLEAN_UP, "cleaning up deliveries of webhooks failed: {}", error_chain(&error));
            }
        }
        Ok(if more { Duration::ZERO } else { next.map_or(POLL, |next| next.min(POLL)) })
    }

    /// Looks for webhooks that wait for no turn although they should. Returns whether there may be more.
    async fn restore_turns(&self, rounds: &mut Rounds) -> Result<bool, Error> {
        let last = self.store.restore_turns(&rounds.restored, RESTORED_AT_ONCE).await?;
        let more = last.is_some();
        rounds.restored = last.unwrap_or_default();
        Ok(more)
    }

    /// Begins turns of webhooks with due deliveries, as far as there are places. Returns whether others may be due.
    async fn begin_turns(self: &Arc<Self>, rounds: &mut Rounds) -> Result<bool, Error> {
        let served: Vec<String> = rounds.turns.keys().cloned().collect();
        let (mut read, mut advanced) = (HashMap::<_, u32>::new(), false);
        let mut postponed = HashMap::<_, (Vec<String>, Duration, Instant)>::new();
        for due in self.store.due_webhooks(READ_AT_ONCE, &served).await? {
            let (id, tenant) = (due.webhook.id.clone(), due.webhook.tenant.clone());
            *read.entry((tenant.clone(), due.is_failing)).or_default() += 1;
            let kind = if due.is_failing { "failing" } else { "steady" };
            let Some(place) = self.shares.try_acquire(&tenant, kind) else { continue };
            match rounds.destinations.admit(&tenant, &due.webhook.url) {
                Admission::Turn(turn) => {
                    let turn = self.clone().turn(due, turn, place, rounds.ended.clone());
                    rounds.turns.insert(id, AbortOnDropHandle::new(tokio::spawn(turn)));
                    advanced = true;
                }
                Admission::Full => {}
                Admission::Failing { since, pause } => {
                    let same = postponed.entry((tenant, due.webhook.url)).or_insert((Vec::new(), pause, since));
                    same.0.push(id);
                }
            }
        }
        for (webhooks, pause, since) in postponed.into_values() {
            // They aren't tried themselves: as long as any of them is tried and fails, their time passes, too.
            let patience = (since.elapsed() >= GIVES_UP).then_some(PATIENCE);
            let dead = self.store.postpone_turns(&webhooks, pause, patience).await?;
            if dead > 0 {
                tracing::warn!(
                    webhooks = webhooks.len(),
                    deliveries = dead,
                    "deliveries of webhooks given up: their receiver fails"
                );
            }
            advanced = true;
        }
        Ok(advanced && read.into_values().any(|count| count >= READ_AT_ONCE))
    }

    /// Sends what is due to one webhook, for a limited time.
    async fn turn(self: Arc<Self>, due: DueWebhook, turn: Turn, place: Place, ended: Arc<Notify>) {
        let id = &due.webhook.id;
        let had_failed = due.is_failing || turn.had_failed;
        let served = async {
            self.store.begin_turn(id).await?;
            self.serve(&due, had_failed).await
        };
        let served = served.await;
        let takes = !matches!(served, Ok(false));
        // An error of the database says nothing of the receiver.
        let is_failing = served.as_ref().map_or(due.is_failing, |takes| !takes);
        if let Err(error) = served {
            tracing::warn!(webhook = id, retry_in = ?RETRY, "serving a webhook failed: {}", error_chain(&error));
            sleep(RETRY).await;
        }
        // Also after an error, and until it is recorded: a webhook without a turn waits for the next look for such webhooks.
        while let Err(error) = self.store.end_turn(id, is_failing).await {
            tracing::warn!(webhook = id, retry_in = ?RETRY, "ending a turn of a webhook failed: {}", error_chain(&error));
            sleep(RETRY).await;
        }
        if takes {
            turn.ended_well();
        } else {
            drop(turn);
        }
        drop(place);
        ended.notify_one();
    }

    /// Sends deliveries of a webhook and returns whether its receiver takes messages: not if as many in a row failed as it gets at the
    /// same time, or if all did. Then no further one is begun in this turn, and one is tried in the next.
    async fn serve(&self, due: &DueWebhook, had_failed: bool) -> Result<bool, Error> {
        let (limit, abreast) = if had_failed { (1, 1) } else { (TURN, ABREAST) };
        let deliveries = self.store.due_deliveries(&due.webhook.id, limit).await?;
        let receiver = &self.receiver(due).await?;
        let (in_a_row, any) = (AtomicUsize::new(0), AtomicBool::new(false));
        let until = Instant::now() + TURN_TIME;
        let (failures, arrived) = (&in_a_row, &any);
        let results: Vec<Result<(), Error>> = futures::stream::iter(deliveries)
            .map(|delivery| async move {
                if failures.load(Ordering::Relaxed) >= ABREAST || Instant::now() >= until {
                    return Ok(());
                }
                match self.deliver(receiver, due, delivery).await? {
                    true => {
                        failures.store(0, Ordering::Relaxed);
                        arrived.store(true, Ordering::Relaxed);
                    }
                    false => {
                        failures.fetch_add(1, Ordering::Relaxed);
                    }
                }
                Ok(())
            })
            .buffer_unordered(abreast)
            .collect()
            .await;
        results.into_iter().collect::<Result<(), Error>>()?;
        let failures = in_a_row.into_inner();
        Ok(failures < ABREAST && (failures == 0 || any.into_inner()))
    }

    /// Tries one delivery and records the result. Returns whether it arrived.
    async fn deliver(&self, receiver: &Receiver<'_>, due: &DueWebhook, delivery: DueDelivery) -> Result<bool, Error> {
        let begun = Instant::now();
        let sent = self.send(receiver, due, delivery.event).await;
        let format = due.webhook.format.parse().map_or("unknown", MessageFormat::as_str);
        metrics().webhook_seconds.observe(begun.elapsed().as_secs_f64());
        let failed = match sent {
            Ok(status) => {
                self.store.delivered(delivery.id, i32::from(status)).await?;
                metrics().webhook_deliveries.with([format, "delivered"]).inc();
                return Ok(true);
            }
            Err(failed) => failed,
        };
        let tried = TriedDelivery {
            http_status: failed.status.map(i32::from),
            pause: failed.pause.unwrap_or_default().max(pause(delivery.tries)),
            is_final: failed.is_final(),
            error: failed.reason,
        };
        let settled = self.store.not_delivered(delivery.id, &tried, PATIENCE).await?;
        let result = if settled == Settled::Dead { "dead" } else { "failed" };
        metrics().webhook_deliveries.with([format, result]).inc();
        if settled == Settled::Dead {
            let (webhook, submission, sequence) = (&due.webhook.id, delivery.submission_id, delivery.sequence);
            tracing::warn!(webhook, submission, sequence, reason = tried.error, "delivery of a webhook given up");
        }
        Ok(false)
    }

    async fn send(&self, receiver: &Receiver<'_>, due: &DueWebhook, event: serde_json::Value) -> Result<u16, Failed> {
        let failed = |reason: String| Failed { status: None, reason, pause: None };
        let format: MessageFormat = due.webhook.format.parse().map_err(|error| failed(format!("{error}")))?;
        let message = Message::new(format, event, self.installation.id, due.webhook.is_of_installation());
        let message = message.map_err(|error| failed(format!("its event can't be read: {error}")))?;
        let message = message.ok_or_else(|| failed(format!("{format} has no message for this state")))?;
        let secrets = receiver.secrets.as_ref().map_err(|reason| failed(reason.clone()))?;
        let with_previous = due.webhook.previous_until.is_some_and(|until| Utc::now() < until);
        receiver.sender.send(receiver.url, &message, secrets, with_previous).await
    }

    /// Returns where messages of a webhook go.
    async fn receiver<'a>(&'a self, due: &'a DueWebhook) -> Result<Receiver<'a>, Error> {
        if due.webhook.is_of_installation() {
            let sender = self.lineage_sender()?;
            let Some(server) = &self.lineage else {
                let secrets = Err("this replica's settings name no lineage server".to_owned());
                return Ok(Receiver { sender, url: &due.webhook.url, secrets });
            };
            let secrets = server.token().await.map(|token| Secrets::unsigned(token.as_ref()));
            return Ok(Receiver { sender, url: &server.url, secrets });
        }
        let secrets = Secrets::unseal(&due.webhook.id, due.secrets.clone(), &self.keys);
        if let Err(error) = &secrets {
            tracing::error!(webhook = due.webhook.id, "a webhook can't be signed: {}", error_chain(error));
        }
        let secrets =
            secrets.map_err(|_| "its secrets can't be decrypted with the gateway's encryption keys".to_owned());
        Ok(Receiver { sender: self.sender()?, url: &due.webhook.url, secrets })
    }

    fn sender(&self) -> Result<&Sender, Error> {
        if let Some(sender) = self.sender.get() {
            return Ok(sender);
        }
        let sender = Sender::new(self.settings.clone());
        let sender =
            sender.map_err(|error| Error::Internal("creating the client of webhooks".to_owned(), error.into()))?;
        Ok(self.sender.get_or_init(|| sender))
    }
}

/// Returns the pause after so many tries.
fn pause(tries: i32) -> Duration {
    let pauses = ExponentialBuilder::new().with_min_delay(FIRST_PAUSE).with_max_delay(LAST_PAUSE).with_jitter();
    let tries = usize::try_from(tries).unwrap_or_default().min(32);
    pauses.without_max_times().build().nth(tries).unwrap_or(LAST_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_some_minutes() {
        for (tries, least) in [(0, FIRST_PAUSE), (3, 8 * FIRST_PAUSE), (20, LAST_PAUSE), (i32::MAX, LAST_PAUSE)] {
            let pause = pause(tries);
            assert!(pause >= least && pause <= 2 * least, "{tries}: {pause:?}");
        }
    }
}
