//! Accepts submissions.

mod behind;
mod bounds;
mod draw;
pub(super) mod groups;
mod in_queue;
mod insert;
mod new_submission;
mod spares;
mod statement;
mod tenant_bounds;

use std::{io, sync::Arc};

use sqlx::Row;

use super::{
    error::{Error, mark, statement_span, within},
    group_commit::Unanswered,
    row::parse,
    store::Store,
    submissions::{COLUMNS, ExecutorCounts, Found, Submission},
};
use insert::Inserter;
use sparkgate_submission::{State, SubmissionId};

pub use bounds::ReachedBound;
pub use in_queue::{Cost, InQueue};
pub use insert::accept_on;
pub use new_submission::{NewSubmission, Options};
pub use spares::Drawn;
pub use tenant_bounds::TenantBounds;

/// The connections that allocating and accepting share.
pub(super) const CONNECTIONS: u32 = 3;

impl From<NewSubmission> for Submission {
    /// Returns the document of a submission that was just accepted.
    fn from(new: NewSubmission) -> Self {
        let NewSubmission { drawn, options, .. } = new;
        Self {
            id: drawn.id,
            number: drawn.number,
            name: new.name,
            state: State::Queued,
            owner: new.owner,
            tenant: new.tenant,
            principal: new.principal,
            namespace: new.namespace,
            client_id: options.client_id,
            labels: options.labels,
            spark_version: new.spark_version.to_string(),
            attempt: 1,
            names: new.names,
            pod_uid: None,
            node: None,
            pod_ip: None,
            exit_code: None,
            reason: None,
            message: None,
            created_at: drawn.at,
            started_at: None,
            finished_at: None,
            executors: ExecutorCounts::default(),
            start_timeout: options.start_timeout,
            run_timeout: options.run_timeout,
            kill_grace: options.kill_grace,
            max_retries_infrastructure: options.max_retries_infrastructure,
            max_retries_application: options.max_retries_application,
            max_retries_capacity: options.max_retries_capacity,
            max_retries_quota: options.max_retries_quota,
            failed_tries: 0,
            priority: new.queue.as_ref().map(|queue| queue.priority),
            queue: new.queue.map(|queue| queue.queue),
            admitted_at: None,
            held: None,
        }
    }
}

/// The callers that share idempotency keys: a key names one submission among those that a principal submitted for an owner.
#[derive(Debug, Clone)]
pub struct KeySpace<'a> {
    pub tenant: &'a str,
    pub principal: &'a str,
    /// Any of these: that of a new submission, and the one under which an earlier release recorded the same request.
    pub owners: Vec<&'a str>,
}

impl<'a> KeySpace<'a> {
    fn of(new: &'a NewSubmission) -> Self {
        Self { tenant: &new.tenant, principal: &new.principal, owners: vec![&new.owner] }
    }
}

/// How often a conflicting submission may turn out to be gone when it is looked up.
const TRIES: u32 = 5;

/// The result of accepting a submission.
#[derive(Debug)]
pub enum Accepted {
    /// It is committed. The reply needs no further read, and no later failure can contradict it.
    New(Submission),
    /// Its principal used the same idempotency key before: for this submission, with this fingerprint.
    SameKey(Found, Vec<u8>),
    /// This submission of the tenant has the same id of a client.
    SameClientId(SubmissionId),
    /// This live submission has the same name, and both ask for a unique one.
    SameName(SubmissionId),
    /// The tenant has reached a bound.
    Full(ReachedBound),
    /// Another submission has the same number: the sequence is behind the rows. It needs another number, and so other names.
    Taken(Box<NewSubmission>),
    /// The connection broke after the statement was sent: it may be committed, under this id.
    InDoubt(SubmissionId, Error),
}

impl Store {
    /// Writes the submission, its objects and its first event in one statement, unless it conflicts with an earlier one. The
    /// submission is committed when this returns. Concurrent submissions share the statement. Of two concurrent ones with the
    /// same key, the later waits for the earlier. If the caller is dropped in the meantime, the statement is carried out
    /// anyway.
    ///
    /// # Errors
    /// In these cases, nothing of the submission is stored.
    pub async fn accept(&self, new: NewSubmission) -> Result<Accepted, Error> {
        let new = Arc::new(new);
        for _ in 0..TRIES {
            match self.insert_with_others(new.clone()).await {
                Ok(true) => return Ok(Accepted::New(Arc::unwrap_or_clone(new).into())),
                Ok(false) => {}
                Err(error @ Error::InDoubt { .. }) => return Ok(Accepted::InDoubt(new.drawn.id.clone(), error)),
                Err(error) => return Err(error),
            }
            if let Some(key) = &new.options.idempotency_key
                && let Some((found, fingerprint)) = self.find_by_key(&KeySpace::of(&new), key).await?
            {
                return Ok(Accepted::SameKey(found, fingerprint));
            }
            if let Some(client_id) = &new.options.client_id
                && let Some(id) = self.find_by_client_id(&new.tenant, client_id).await?
            {
                return Ok(Accepted::SameClientId(id));
            }
            if new.options.unique_name
                && let Some(id) = self.live_of_name(&new.namespace, &new.name).await?
            {
                return Ok(Accepted::SameName(id));
            }
            if self.is_taken(&new.drawn).await? {
                return Ok(Accepted::Taken(Box::new(Arc::unwrap_or_clone(new))));
            }
            if let Some(bound) = self.bound_of(&new).await? {
                return Ok(Accepted::Full(bound));
            }
            // The conflicting submission is gone now, or there is room again.
        }
        if let Some(InQueue { queue, max_queued: Some(most), .. }) = &new.queue {
            return Ok(Accepted::Full(ReachedBound::Backlog { queue: queue.clone(), most: *most }));
        }
        if let Some(most) = new.bounds.queued {
            return Ok(Accepted::Full(ReachedBound::Queued { most }));
        }
        let why = io::Error::other("it conflicted repeatedly with other submissions");
        Err(Error::row(new.drawn.id.as_str(), why))
    }

    /// Inserts a submission. `false` if it conflicts with a unique key of another submission.
    async fn insert_with_others(&self, new: Arc<NewSubmission>) -> Result<bool, Error> {
        // From the call to its answer: the statement is written by a task of its own, for several submissions.
        let span = statement_span(insert::ACTION);
        // A submission with a unique name, or an id of its client, may wait for another for more than one reason: two groups might
        // wait for each other.
        let inserted = if new.options.unique_name || new.options.client_id.is_some() {
            let inserter = Inserter(self.clone());
            let alone = tokio::spawn(async move { inserter.insert_all(&[new]).await.pop() });
            alone.await.ok().flatten().ok_or(Unanswered::Ended)
        } else {
            let writer = || Inserter(self.clone());
            self.groups.accept.accepting.call(new, Some(self.patience / 2), writer).await
        };
        let inserted = inserted.unwrap_or_else(|why| Err(Error::unanswered(insert::ACTION, why)));
        mark(&span, &inserted);
        inserted
    }

    /// Returns the submission with an idempotency key, and the fingerprint of its request.
    pub async fn find_by_key(&self, space: &KeySpace<'_>, key: &str) -> Result<Option<(Found, Vec<u8>)>, Error> {
        let action = "looking for an idempotency key";
        let mut connection = self.connection(action).await?;
        let statement = format!(
            "SELECT {COLUMNS}, coalesce(fingerprint, '') AS fingerprint FROM submissions
             WHERE owner = ANY($1) AND idempotency_key = $2 AND tenant = $3 AND principal = $4
             ORDER BY number LIMIT 1"
        );
        let statement = sqlx::query(sqlx::AssertSqlSafe(statement));
        let statement = statement.bind(&space.owners).bind(key).bind(space.tenant).bind(space.principal);
        let Some(row) = within(action, statement.fetch_optional(&mut *connection)).await? else { return Ok(None) };
        let (id, fingerprint): (String, Vec<u8>) =
            within(action, async { Ok((row.try_get("id")?, row.try_get("fingerprint")?)) }).await?;
        Ok(Some((Found::read(parse(&id, &id)?, &row), fingerprint)))
    }

    /// Returns the submission of a tenant that has this id of a client.
    pub async fn find_by_client_id(&self, tenant: &str, client_id: &str) -> Result<Option<SubmissionId>, Error> {
        let action = "looking for a client's id";
        let mut connection = self.connection(action).await?;
        let statement = sqlx::query_scalar("SELECT id FROM submissions WHERE tenant = $1 AND client_id = $2")
            .bind(tenant)
            .bind(client_id)
            .fetch_optional(&mut *connection);
        let id: Option<String> = within(action, statement).await?;
        id.map(|id| parse(&id, &id)).transpose()
    }

    async fn live_of_name(&self, namespace: &str, name: &str) -> Result<Option<SubmissionId>, Error> {
        let action = "looking for a live submission's name";
        let mut connection = self.connection(action).await?;
        let statement = sqlx::query_scalar(
            "SELECT id FROM submissions WHERE namespace = $1 AND name = $2 AND unique_name
             AND state IN ('QUEUED', 'LAUNCHING', 'PENDING', 'RUNNING', 'KILLING')",
        )
        .bind(namespace)
        .bind(name)
        .fetch_optional(&mut *connection);
        let id: Option<String> = within(action, statement).await?;
        id.map(|id| parse(&id, &id)).transpose()
    }
}
