//! Submissions: accepts them, shows them, and takes requests to kill them. What changes one runs to its end in a task of its own,
//! whatever becomes of the client.

pub mod comparison;
pub mod document;
pub mod failure_reason;
mod fingerprint;
pub mod jobs;
mod limits;
mod livy;
pub mod plan;
mod rendering;
pub mod startup;
pub mod status;
pub mod submit;
pub mod waiting;

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;
use uuid::Uuid;

use crate::{
    encryption::EncryptionKeys, ports::Attachments, redaction, signing_keys::made_lately, wakeups::Wakeups,
    witness::Witness,
};
use sparkgate_access::Action;
use sparkgate_cluster::{Cluster, Manifest};
use sparkgate_common::{detached::to_its_end, error::Error, shares::Shares};
use sparkgate_requests::settings::{Settings, SparkSettings};
use sparkgate_spark::SparkVersion;
use sparkgate_store::{AttemptRecord, Filter, KillAnswer, Page, StateCounts, Store, Submission};
use sparkgate_submission::{ExecutorRecord, Installation, SubmissionId};
use sparkgate_tenancy::session::Session;
use sparkgate_traces::{KeyValue, Span, SpanKind, attribute};

/// The signed identity of a driver pod.
const IDENTITY: &str = "/metadata/annotations/sparkgate.dev~1identity";

/// The submissions of all replicas.
pub struct Submissions {
    store: Store,
    cluster: Cluster,
    /// The installation that owns the pods of this database.
    installation: Arc<Installation>,
    settings: Settings,
    wakeups: Arc<Wakeups>,
    witness: Arc<dyn Witness>,
    keys: Arc<EncryptionKeys>,
    attachments: Arc<Attachments>,
    /// Threads on which large drivers are built, by tenant.
    rendering: Shares,
}

impl Submissions {
    #[expect(clippy::too_many_arguments, reason = "each is a part of its own")]
    pub fn new(
        store: Store,
        cluster: Cluster,
        installation: Arc<Installation>,
        settings: Settings,
        wakeups: Arc<Wakeups>,
        witness: Arc<dyn Witness>,
        keys: Arc<EncryptionKeys>,
        attachments: Arc<Attachments>,
    ) -> Self {
        let rendering = rendering::shares();
        Self { store, cluster, installation, settings, wakeups, witness, keys, attachments, rendering }
    }

    /// Returns the id in the label that marks this installation's pods.
    pub fn instance(&self) -> Uuid {
        self.installation.id
    }

    /// Returns the keys of the cursors of lists: the first encrypts, all decrypt.
    pub fn cursor_keys(&self) -> Vec<[u8; 32]> {
        let keys = self.installation.keys_for("cursor");
        keys.iter().filter(|key| key.counts_at(made_lately())).map(|key| key.key).collect()
    }

    /// Returns the gateway's own Spark release: that of its protocol, and of submissions for which nothing else selects one.
    pub fn spark_version(&self) -> SparkVersion {
        self.spark().version
    }

    fn spark(&self) -> &SparkSettings {
        &self.settings.spark
    }

    /// Returns a submission that the caller may see, or `None` if none has that id. Includes submissions that Spark's `clear`
    /// hides.
    pub async fn submission(&self, caller: &Session, id: &SubmissionId) -> Result<Option<Submission>, Error> {
        Ok(self.store.scoped(&caller.readable()).submission(id).await?)
    }

    /// Returns up to `limit` submissions that the caller may see and that match a filter, newest first, starting before `number` if one is given.
    pub async fn submissions(
        &self,
        caller: &Session,
        filter: &Filter,
        before: Option<i64>,
        limit: u32,
    ) -> Result<Page, Error> {
        Ok(self.store.scoped(&caller.readable()).submissions(filter, before, limit).await?)
    }

    /// Returns how many submissions match a filter.
    pub async fn count(&self, caller: &Session, filter: &Filter) -> Result<u64, Error> {
        Ok(self.store.scoped(&caller.readable()).count(filter).await?)
    }

    /// Returns how many of those that the caller may see and that match a filter are in each state, of the newest thousands.
    ///
    /// # Errors
    /// The database is not available.
    pub async fn count_states(&self, caller: &Session, filter: &Filter) -> Result<StateCounts, Error> {
        Ok(self.store.scoped(&caller.readable()).count_states(filter).await?)
    }

    /// Returns the number of the newest submission that the caller may see, if there is one.
    pub async fn newest(&self, caller: &Session) -> Result<Option<i64>, Error> {
        Ok(self.store.scoped(&caller.readable()).newest().await?)
    }

    /// Returns the objects of an attempt in the order of their creation, without secrets; `None` if they aren't stored (any more).
    pub async fn manifest(
        &self,
        caller: &Session,
        id: &SubmissionId,
        attempt: i32,
    ) -> Result<Option<Vec<Value>>, Error> {
        let manifest = self.store.scoped(&caller.readable()).manifest(id, attempt).await?;
        let mut objects = manifest.as_deref().map(objects).transpose()?;
        for object in objects.iter_mut().flatten() {
            // Hidden: another client could create a pod with this annotation before the gateway does, and the gateway would
            // adopt that pod.
            if let Some(identity) = object.pointer_mut(IDENTITY) {
                *identity = "…".into();
            }
        }
        if let Some(objects) = &mut objects {
            redaction::objects(objects);
        }
        Ok(objects)
    }

    /// Returns the request of a submission as it was stored: with all defaults and without secrets, as JSON. `None` if no submission
    /// has this id.
    pub async fn request(&self, caller: &Session, id: &SubmissionId) -> Result<Option<Value>, Error> {
        Ok(self.store.scoped(&caller.readable()).request(id).await?)
    }

    /// Returns the keys of the properties that the request itself didn't set, by origin: those of the operator's defaults, such as
    /// `spark-defaults` or `defaults/<name>`, and `forced`. `None` if that isn't known.
    pub async fn origins(
        &self,
        caller: &Session,
        id: &SubmissionId,
    ) -> Result<Option<BTreeMap<String, Vec<String>>>, Error> {
        Ok(self.store.scoped(&caller.readable()).origins(id).await?)
    }

    /// Returns all attempts of a submission, the current one last; none if no submission has this id.
    pub async fn attempts(&self, caller: &Session, id: &SubmissionId) -> Result<Vec<AttemptRecord>, Error> {
        Ok(self.store.scoped(&caller.readable()).attempts(id).await?)
    }

    /// Returns up to `limit` executors of a submission, ordered by attempt and id, starting after `after`.
    pub async fn executors(
        &self,
        caller: &Session,
        id: &SubmissionId,
        after: Option<(i32, i64)>,
        limit: u32,
    ) -> Result<Vec<ExecutorRecord>, Error> {
        Ok(self.store.scoped(&caller.readable()).executors(id, after, limit).await?)
    }

    /// Requests the kill of a submission. Returns `false` if no submission has that id or it has ended already.
    ///
    /// # Errors
    /// As for [`Submissions::request_kill`].
    pub async fn kill(self: &Arc<Self>, caller: &Session, id: &SubmissionId) -> Result<bool, Error> {
        Ok(self.request_kill(caller, id).await?.live)
    }

    /// Requests the kill of a submission and returns the result.
    ///
    /// # Errors
    /// [`Error::Denied`] if the caller may see the submission but not kill it.
    pub async fn request_kill(self: &Arc<Self>, caller: &Session, id: &SubmissionId) -> Result<KillAnswer, Error> {
        let id = id.clone();
        self.to_its_end(caller, |this, caller| async move { this.record_kill(&caller, &id).await }).await
    }

    /// Requests the kill of several submissions, one after the other, and returns the result of each.
    ///
    /// # Errors
    /// Only if none has a result. Each has the errors of [`Submissions::request_kill`].
    pub async fn request_kills(
        self: &Arc<Self>,
        caller: &Session,
        ids: Vec<SubmissionId>,
    ) -> Result<Vec<Result<KillAnswer, Error>>, Error> {
        self.to_its_end(caller, |this, caller| async move {
            let mut answers = Vec::with_capacity(ids.len());
            for id in ids {
                answers.push(this.record_kill(&caller, &id).await);
            }
            Ok(answers)
        })
        .await
    }

    /// Runs a use case in a task of its own.
    async fn to_its_end<T, F>(
        self: &Arc<Self>,
        caller: &Session,
        work: impl FnOnce(Arc<Self>, Session) -> F,
    ) -> Result<T, Error>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Error>> + Send + 'static,
    {
        to_its_end(work(self.clone(), caller.clone()), Error::BrokenOff).await
    }

    async fn record_kill(&self, caller: &Session, id: &SubmissionId) -> Result<KillAnswer, Error> {
        let span =
            Span::child("kill", SpanKind::Internal, || [KeyValue::new(attribute::SUBMISSION_ID, id.to_string())]);
        let answer = span.enter(self.kill_visible(caller, id)).await;
        if let Err(error) = &answer {
            span.fail(error.kind());
        }
        answer
    }

    async fn kill_visible(&self, caller: &Session, id: &SubmissionId) -> Result<KillAnswer, Error> {
        let visible = self.store.scoped(&caller.readable());
        let answer = visible.request_kill(id, &caller.killable(), caller.actor().as_ref()).await?;
        caller.check_permitted(id, answer.submission.as_ref().map(|_| answer.allowed), "kill")?;
        if answer.live {
            self.link_to(id).await;
            tracing::info!(submission = %id, "kill requested");
            self.wakeups.work_is_due();
            self.wakeups.state_changed();
        }
        Ok(answer)
    }

    /// Links the current span, which is recorded in the trace of another request, to the trace of a submission.
    async fn link_to(&self, id: &SubmissionId) {
        let span = Span::current();
        if span.is_recorded()
            && let Ok(traces) = self.store.traces(&[id]).await
        {
            traces.values().for_each(|trace| span.link(trace));
        }
    }

    /// Requests the kill of every live submission that the caller may kill.
    ///
    /// # Errors
    /// [`Error::Denied`] if the caller may kill none in any tenant.
    pub async fn kill_all(self: &Arc<Self>, caller: &Session) -> Result<(), Error> {
        self.to_its_end(caller, |this, caller| async move { this.record_kill_of_all(&caller).await }).await
    }

    async fn record_kill_of_all(&self, caller: &Session) -> Result<(), Error> {
        caller.require(Action::KillOwn)?;
        let killable = self.store.scoped(&caller.killable());
        let killed = killable.request_kill_of_all(caller.actor().as_ref()).await;
        // Some may be killed although others could not be.
        self.wakeups.work_is_due();
        self.wakeups.state_changed();
        // Not within the macro, which evaluates its fields only if the line is logged.
        let killed = killed?;
        tracing::info!(submissions = killed, "kill of all submissions requested");
        Ok(())
    }

    /// Hides the ended submissions that the caller may clear from Spark's protocol. Their records stay.
    ///
    /// # Errors
    /// [`Error::Denied`] if the caller may clear none in any tenant.
    pub async fn clear(self: &Arc<Self>, caller: &Session) -> Result<(), Error> {
        self.to_its_end(caller, |this, caller| async move { this.hide_ended(&caller).await }).await
    }

    async fn hide_ended(&self, caller: &Session) -> Result<(), Error> {
        caller.require(Action::ClearOwn)?;
        let clearable = self.store.scoped(&caller.clearable());
        let cleared = clearable.clear_ended(caller.actor().as_ref()).await?;
        tracing::info!(cleared, "ended submissions cleared");
        Ok(())
    }
}

/// Returns the objects of a stored manifest.
fn objects(manifest: &str) -> Result<Vec<Value>, Error> {
    let manifest: Manifest<Value> = serde_json::from_str(manifest)
        .map_err(|error| Error::Internal("reading the objects of a submission".into(), error.into()))?;
    let Manifest { before, pod, beside, .. } = manifest;
    Ok(before.into_iter().chain([pod]).chain(beside).collect())
}
