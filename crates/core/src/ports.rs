//! Ports: what a feature may do in the life of a submission, and when.
//!
//! The core accepts and launches submissions, and knows no feature. A feature is an [`Attachment`]: the core calls the attachments one
//! after the other, in the order in which `Service` lists them, at these points:
//!
//! | port | when | what the argument requires of it |
//! |---|---|---|
//! | `validate` | a request was read | no effect; also for a dry run |
//! | `check` | before a number is allocated | reads only; also for a dry run |
//! | `queue` | after the driver was built | reads only; also for a dry run. The columns of the queue are part of the commit that accepts the submission |
//! | `attach` | right before the commit that accepts the submission | may write what refers to the id; a crash may follow at once, so a sweep finds what no submission refers to |
//! | `detach` | after a commit that accepted nothing under this id, or failed | undoes `attach`. A failure is tried again for some minutes; then a sweep finds what is left. Not called while the commit is in doubt |
//! | `resolve` | under the claim, before anything of the attempt is created | may change the objects, in the same way at each try, but for their names; the result isn't stored, but changes that it returns are. May create what starts no driver and is found by a sweep |
//! | `withdraw` | under the claim, after the quota of the namespace had no room for the attempt | gives back what `resolve` took elsewhere, unless a pod of the attempt exists; the next try takes it again |
//!
//! A port that has nothing to do returns `None`, which costs nothing.
//!
//! What a feature keeps for submissions outlives some of them: a [`Sweep`] deletes what no submission refers to any more. One replica
//! sweeps for all, under a lease.

use std::{sync::Arc, time::Duration};

use futures::future::BoxFuture;
use serde::Serialize;
use tokio::{sync::Semaphore, time::sleep};

use crate::leadership::clock::DatabaseClock;
use sparkgate_cluster::{Manifest, Overlay, OverlayError};
use sparkgate_common::{
    error::{Error, error_chain},
    pauses::Pauses,
};
use sparkgate_policy::ApplicationSize;
use sparkgate_requests::options::SubmissionOptions;
use sparkgate_spark::{CreateSubmissionRequest, Refusal, SparkVersion};
use sparkgate_store::InQueue;
use sparkgate_submission::SubmissionId;

/// What is left to do at a port.
pub type Step<'a, T> = Option<BoxFuture<'a, Result<T, Error>>>;

/// A feature, at the points of a submission's life at which it may act.
pub trait Attachment: Send + Sync {
    /// Checks the request by itself.
    fn validate(&self, _: &Proposed<'_>) -> Result<(), Refusal> {
        Ok(())
    }

    /// Checks the request against what is stored.
    fn check<'a>(&'a self, _: &'a Proposed<'a>) -> Step<'a, ()> {
        None
    }

    /// Returns the queue that has to admit the submission, and what it costs there.
    fn queue<'a>(&'a self, _: &'a Proposed<'a>, _: &'a ApplicationSize) -> Step<'a, Option<InQueue>> {
        None
    }

    /// Stores what belongs to the submission.
    fn attach<'a>(&'a self, _: &'a SubmissionId, _: &'a Proposed<'a>) -> Step<'a, ()> {
        None
    }

    /// Removes what was attached to a submission that isn't accepted. Called only if `attach` had something to do.
    fn detach<'a>(&'a self, _: &'a SubmissionId) -> Step<'a, ()> {
        None
    }

    /// Completes the objects of an attempt, or says why it can't be launched.
    fn resolve<'a>(&'a self, _: &'a Attempt<'a>, _: &'a mut Manifest) -> Step<'a, Resolution> {
        None
    }

    /// Gives back what `resolve` took for an attempt that now waits for room in its namespace.
    fn withdraw<'a>(&'a self, _: &'a Attempt<'a>) -> Step<'a, ()> {
        None
    }
}

/// The clean-up of what a feature keeps.
pub trait Sweep: Send + Sync {
    /// The name of the lease.
    fn lease(&self) -> &'static str;

    /// Whether the feature keeps anything now. It is asked as long as no replica holds the lease.
    fn is_needed(&self) -> bool;

    /// Runs rounds without an end. Nothing is deleted for its age while the clock of the database is doubted.
    fn rounds<'a>(&'a self, clock: &'a DatabaseClock) -> BoxFuture<'a, ()>;
}

/// A submission that isn't accepted yet.
pub struct Proposed<'a> {
    pub tenant: &'a str,
    pub principal: &'a str,
    pub request: &'a CreateSubmissionRequest,
    pub options: &'a SubmissionOptions,
    /// The Spark release of its driver.
    pub version: SparkVersion,
    /// The field of the request that names the queue in `options`.
    pub queue_field: &'a str,
}

/// A claimed attempt that is about to be launched.
pub struct Attempt<'a> {
    pub id: &'a SubmissionId,
    /// Its number.
    pub number: i32,
    pub namespace: &'a str,
    /// The queue of the access file that admitted it.
    pub queue: Option<&'a str>,
    /// The name of its pod.
    pub pod: &'a str,
    /// An earlier try has created the pod.
    pub is_begun: bool,
}

/// Whether an attempt can be launched.
#[derive(Debug)]
pub enum Resolution {
    Ready,
    /// It can be, with these changes of its objects, which are made. They are recorded with the attempt.
    Changed(Box<LaunchChange>),
    /// Not now: the same attempt is tried again later.
    Wait(Wait),
    /// Not now, and this is no failure: a queue holds the attempt back. It is tried again when the queue says so, or some time later.
    Held(Wait),
    /// Not now: the quota of the namespace has no room, with the API server's message.
    NoRoom(String),
    /// Never: the submission ends.
    Refused(NoLaunch),
}

/// What a feature changed in the objects of an attempt at its launch.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LaunchChange {
    /// The feature.
    pub by: &'static str,
    #[serde(flatten)]
    pub overlay: Overlay,
}

/// Why a launch waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    /// A word for the row.
    pub reason: &'static str,
    /// The `result` in metrics.
    pub result: &'static str,
    pub message: String,
}

/// Why an attempt is not launched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoLaunch {
    /// A word for the row.
    pub reason: &'static str,
    pub message: String,
}

impl NoLaunch {
    /// The stored objects can't be used.
    pub fn unreadable(message: String) -> Self {
        Self { reason: "Unreadable", message }
    }
}

impl From<OverlayError> for NoLaunch {
    fn from(error: OverlayError) -> Self {
        Self::unreadable(error.to_string())
    }
}

/// The attachments of a service, in their order.
pub struct Attachments {
    all: Vec<Arc<dyn Attachment>>,
    /// For those of refused submissions that are removed in the background.
    late: Arc<Semaphore>,
}

/// The attachments that stored something for a submission.
#[must_use]
pub struct Attached {
    submission: SubmissionId,
    by: Vec<Arc<dyn Attachment>>,
    late: Arc<Semaphore>,
}

/// The first pause before what was attached to a refused submission is removed again, the longest one, and how many there are.
const DETACH_PAUSE: Duration = Duration::from_millis(200);
const DETACH_PAUSE_MAX: Duration = Duration::from_secs(10);
const DETACH_TRIES: u32 = 20;
/// Removals in the background at a time: they share their connections with requests.
const LATE_DETACHES: usize = 2;

impl Attachments {
    pub fn new(all: Vec<Arc<dyn Attachment>>) -> Self {
        Self { all, late: Arc::new(Semaphore::new(LATE_DETACHES)) }
    }

    fn each(&self) -> impl Iterator<Item = &dyn Attachment> {
        self.all.iter().map(|one| &**one)
    }

    /// # Errors
    /// The first refusal.
    pub fn validate(&self, proposed: &Proposed<'_>) -> Result<(), Refusal> {
        self.each().try_for_each(|one| one.validate(proposed))
    }

    /// # Errors
    /// The first.
    pub async fn check(&self, proposed: &Proposed<'_>) -> Result<(), Error> {
        for step in self.each().filter_map(|one| one.check(proposed)) {
            step.await?;
        }
        Ok(())
    }

    /// Returns the first queue that an attachment names.
    ///
    /// # Errors
    /// The first.
    pub async fn queue(&self, proposed: &Proposed<'_>, size: &ApplicationSize) -> Result<Option<InQueue>, Error> {
        for step in self.each().filter_map(|one| one.queue(proposed, size)) {
            if let Some(queue) = step.await? {
                return Ok(Some(queue));
            }
        }
        Ok(None)
    }

    /// # Errors
    /// The first. What the others stored is removed.
    pub async fn attach(&self, id: &SubmissionId, proposed: &Proposed<'_>) -> Result<Attached, Error> {
        let mut attached = Attached { submission: id.clone(), by: Vec::new(), late: self.late.clone() };
        for one in &self.all {
            let Some(step) = one.attach(id, proposed) else { continue };
            attached.by.push(one.clone());
            if let Err(error) = step.await {
                tokio::spawn(attached.detach());
                return Err(error);
            }
        }
        Ok(attached)
    }

    /// Returns the first resolution that isn't [`Resolution::Ready`] or [`Resolution::Changed`], if there is one, and the changes.
    ///
    /// # Errors
    /// The first.
    pub async fn resolve(
        &self,
        attempt: &Attempt<'_>,
        manifest: &mut Manifest,
    ) -> Result<(Resolution, Vec<LaunchChange>), Error> {
        let mut changes = Vec::new();
        for one in self.each() {
            let Some(step) = one.resolve(attempt, manifest) else { continue };
            match step.await? {
                Resolution::Ready => {}
                Resolution::Changed(change) => changes.push(*change),
                other => return Ok((other, changes)),
            }
        }
        Ok((Resolution::Ready, changes))
    }

    /// # Errors
    /// The first; the others are called nevertheless.
    pub async fn withdraw(&self, attempt: &Attempt<'_>) -> Result<(), Error> {
        let mut withdrawn = Ok(());
        for step in self.each().filter_map(|one| one.withdraw(attempt)) {
            withdrawn = withdrawn.and(step.await);
        }
        withdrawn
    }
}

impl Attached {
    /// Removes what was stored for a submission that isn't accepted. What can't be removed at once is tried again for some minutes in
    /// the background: until then a name of a session is taken. After that a sweep finds it.
    ///
    /// # Errors
    /// The first of what can't be removed at once.
    pub async fn detach(self) -> Result<(), Error> {
        let (mut left, error) = self.tried().await;
        let Some(error) = error else { return Ok(()) };
        tokio::spawn(async move {
            let mut pauses = Pauses::new(DETACH_PAUSE, DETACH_PAUSE_MAX);
            for _ in 0..DETACH_TRIES {
                sleep(pauses.next_pause()).await;
                let late = left.late.clone();
                let Ok(_one) = late.acquire().await else { return };
                let error;
                (left, error) = left.tried().await;
                if error.is_none() {
                    return;
                }
            }
        });
        Err(error)
    }

    /// Removes what can be removed, and returns the rest with the first error.
    async fn tried(self) -> (Self, Option<Error>) {
        let Self { submission, by, late } = self;
        let (mut left, mut first) = (Vec::new(), None);
        for one in by {
            let Some(step) = one.detach(&submission) else { continue };
            if let Err(error) = step.await {
                tracing::debug!(%submission, "removing what was stored for a refused submission failed: {}", error_chain(&error));
                left.push(one);
                first.get_or_insert(error);
            }
        }
        (Self { submission, by: left, late }, first)
    }
}
