//! The use case "submit": checks a submission and accepts it.

use std::{collections::BTreeMap, io, mem, sync::Arc};

use super::{Submissions, fingerprint::Fingerprint, plan::proposed};
use crate::{encryption::StoredObjects, prepared::PreparedSubmission, redaction};
use sparkgate_access::{Provider, TenantLimits};
use sparkgate_common::{detached::to_its_end, error::Error};
use sparkgate_metrics::{metrics, text};
use sparkgate_requests::options::SubmissionOptions;
use sparkgate_spark::CreateSubmissionRequest;
use sparkgate_store::{self, Drawn, Found, KeySpace, NewSubmission, ReachedBound, TenantBounds};
use sparkgate_submission::SubmissionId;
use sparkgate_tenancy::{session::Session, tenancy::TenantRules};
use sparkgate_traces::{Span, SpanKind, TraceContext, attribute};

/// The origin of properties that a tenant forces.
const FORCED: &str = "forced";

/// How often an allocated number may turn out to be taken. The first time moves the sequence past all taken numbers.
const TRIES: u32 = 5;

/// An accepted submission.
#[derive(Debug)]
pub struct Accepted {
    pub submission: Found,
    /// Whether it was accepted before, with the same idempotency key.
    pub replayed: bool,
    /// Properties of the request that are probably misspelt, each with the one that was meant.
    pub warnings: Vec<String>,
}

/// A request that nothing speaks against but its driver.
struct Checked<'a> {
    caller: &'a Session,
    rules: &'a Arc<TenantRules>,
    prepared: PreparedSubmission,
    owner: String,
    bounds: TenantBounds,
    fingerprint: Fingerprint,
}

/// What became of a request under one number.
struct Tried {
    accepted: sparkgate_store::Accepted,
    /// The namespace and the name of the driver pod.
    pod: String,
    /// The name, with its namespace, that no other live submission may have.
    wanted: Option<(String, String)>,
}

/// The parts of a request that probably aren't meant as they are.
struct Remarks {
    /// Properties that no Spark release knows.
    unknown: String,
    /// Parts without effect.
    ignored: String,
    /// The same for the client; of unknown properties those that have a likely correction.
    warnings: Vec<String>,
}

impl Remarks {
    fn of(prepared: &PreparedSubmission) -> Self {
        let misspelt = prepared.misspelt();
        let unknown = prepared.unknown(&misspelt).join(", ");
        let ignored = prepared.ignored().collect::<Vec<_>>().join("; ");
        Self { unknown, ignored, warnings: prepared.warnings(misspelt) }
    }

    fn log(&self, id: &SubmissionId) {
        let Self { unknown, ignored, .. } = self;
        if !unknown.is_empty() {
            tracing::info!(submission = %id, unknown, "unknown Spark properties: are they misspelt?");
        }
        if !ignored.is_empty() {
            tracing::info!(submission = %id, ignored, "parts of the request have no effect");
        }
    }
}

impl Submissions {
    /// Calls [`Submissions::submit`] for a request whose options are all in its properties.
    ///
    /// # Errors
    /// The same.
    pub async fn create(
        self: &Arc<Self>,
        caller: &Session,
        request: CreateSubmissionRequest,
    ) -> Result<SubmissionId, Error> {
        Ok(self.submit(caller, request, SubmissionOptions::default(), ()).await?.submission.id)
    }

    /// Checks the request by building its driver once, fixes all names and commits the submission. The launch follows
    /// asynchronously. `options` override those in the properties. `held` is what the request takes until then, such as a share of the
    /// memory for bodies. All of it runs in a task of its own, so that a client that disconnects can't leave the submission half accepted.
    ///
    /// # Errors
    /// [`Error::Refused`] for a request that can't become a driver; nothing of it is stored. [`Error::KeyReused`] and
    /// [`Error::ClientIdTaken`] and [`Error::NameTaken`] for a request that conflicts with an earlier one. [`Error::InDoubt`] if the database
    /// doesn't confirm the write, and [`Error::SubmitBrokenOff`]: the submission may have been accepted.
    pub async fn submit(
        self: &Arc<Self>,
        caller: &Session,
        request: CreateSubmissionRequest,
        options: SubmissionOptions,
        held: impl Send + 'static,
    ) -> Result<Accepted, Error> {
        let (this, caller) = (self.clone(), caller.clone());
        let submit = async move {
            let accepted = this.check_and_accept(&caller, request, options).await;
            drop(held);
            accepted
        };
        to_its_end(submit, Error::SubmitBrokenOff).await
    }

    async fn check_and_accept(
        &self,
        caller: &Session,
        mut request: CreateSubmissionRequest,
        options: SubmissionOptions,
    ) -> Result<Accepted, Error> {
        let fingerprint = Fingerprint::of(&mut request, &options, &self.installation.key_for("fingerprints"))?;
        let secrets = redaction::secrets_of(&request);
        let span = Span::child("submit", SpanKind::Internal, || []);
        let accepted = span.enter(self.accept(caller, request, options, fingerprint)).await;
        mark(&span, &accepted);
        if let Err(error) = &accepted {
            metrics().refused.with([error.kind()]).inc();
        }
        let accepted = accepted.map_err(|error| redaction::refusal(error, &secrets));
        match &accepted {
            // The entry is that of the first request.
            Ok(accepted) if accepted.replayed => caller.changes_nothing(),
            Err(error) => deny(caller, error),
            Ok(_) => {}
        }
        accepted
    }

    async fn accept(
        &self,
        caller: &Session,
        request: CreateSubmissionRequest,
        options: SubmissionOptions,
        fingerprint: Fingerprint,
    ) -> Result<Accepted, Error> {
        let (prepared, rules) = self.prepare(caller, request, options)?;
        let owner = self.owner(caller, &prepared.request.request);
        let (tenant, principal) = (&rules.tenant.name, caller.principal().subject());
        // Earlier releases recorded requests that name no owner under the gateway's account: a repeated one finds the first.
        let accounts = stated_owner(&prepared.request.request).is_none().then(|| self.spark().user.as_str());
        let owners: Vec<&str> = [owner.as_str()].into_iter().chain(accounts).collect();
        let space = KeySpace { tenant, principal, owners };
        let remarks = Remarks::of(&prepared);
        if let Some(key) = &prepared.options.idempotency_key
            && let Some((found, before)) = self.store.find_by_key(&space, key).await?
        {
            return replay(found, &before, &fingerprint, key, remarks.warnings);
        }
        let TenantLimits { queued, record_bytes, .. } = rules.tenant.limits;
        let bounds = TenantBounds { queued, record_bytes };
        if let Some(bound) = self.store.reached_bound(tenant, &bounds).await? {
            return Err(full(tenant, bound));
        }
        if rules.policy.is_some() {
            rules.file.generation.number(&self.store).await?;
        }
        self.attachments.check(&proposed(caller, &rules, &prepared)).await?;
        let mut checked = Checked { caller, rules: &rules, prepared, owner, bounds, fingerprint };
        let mut drawn = self.store.draw().await?;
        for _ in 0..TRIES {
            let Tried { accepted, pod, wanted } = self.accept_as(&mut checked, drawn).await?;
            let prepared = &mut checked.prepared;
            match accepted {
                sparkgate_store::Accepted::New(submission) => {
                    let id = submission.id.clone();
                    metrics().accepted.with([text(&submission.tenant)]).inc();
                    tracing::info!(submission = %id, %pod, "submission accepted");
                    remarks.log(&id);
                    self.wakeups.work_is_due();
                    self.wakeups.state_changed();
                    return Ok(Accepted {
                        submission: Found { id, document: Ok(submission) },
                        replayed: false,
                        warnings: remarks.warnings,
                    });
                }
                sparkgate_store::Accepted::SameKey(found, before) => {
                    let key = prepared.options.idempotency_key.as_deref().unwrap_or_default();
                    return replay(found, &before, &checked.fingerprint, key, remarks.warnings);
                }
                sparkgate_store::Accepted::SameClientId(by) => {
                    let client_id = prepared.options.client_id.take().unwrap_or_default();
                    return Err(Error::ClientIdTaken { client_id, by });
                }
                sparkgate_store::Accepted::SameName(by) => {
                    let (name, namespace) = wanted.unwrap_or_default();
                    return Err(Error::NameTaken { name, namespace, by });
                }
                sparkgate_store::Accepted::Full(bound) => return Err(full(tenant, bound)),
                sparkgate_store::Accepted::InDoubt(id, source) => return Err(Error::InDoubt { id, source }),
                // Names and labels contain the number, so they are built again.
                sparkgate_store::Accepted::Taken(new) => {
                    drawn = self.store.draw_beyond(&new.drawn).await?;
                    prepared.request.request = new.request;
                }
            }
        }
        let why = io::Error::other("each allocated number was already taken");
        Err(Error::Internal("allocating a number for a submission failed".to_owned(), why.into()))
    }

    /// Builds the driver of a number, and writes the row. What the attachments did for a row that wasn't written is undone.
    async fn accept_as(&self, checked: &mut Checked<'_>, drawn: Drawn) -> Result<Tried, Error> {
        let Checked { caller, rules, prepared, .. } = checked;
        // Before anything is kept for it: most refusals are of the driver.
        let rendered = self.render(rules, prepared, &drawn).await?;
        let queue = match &rendered.size {
            Some(size) => self.attachments.queue(&proposed(caller, rules, prepared), size).await?,
            None => None,
        };
        let StoredObjects { objects, sealed } = self.keys.seal(rendered.manifest, &drawn.id, 1)?;
        let attached = self.attachments.attach(&drawn.id, &proposed(caller, rules, prepared)).await?;
        let pod = format!("{}/{}", rendered.driver.namespace, rendered.names.driver_pod);
        let new = NewSubmission {
            name: short(&prepared.request.app_name),
            owner: checked.owner.clone(),
            tenant: rules.tenant.name.clone(),
            principal: caller.principal().subject().to_owned(),
            actor: caller.actor(),
            trace: TraceContext::current().map(|trace| trace.to_string()),
            spark_user: self.spark().user.clone(),
            spark_version: prepared.version,
            options: prepared.options.kept(),
            bounds: checked.bounds,
            queue,
            // Only a repeated key needs it, and it would tell whether a guessed secret is right.
            fingerprint: match &prepared.options.idempotency_key {
                Some(_) => checked.fingerprint.stored().to_vec(),
                None => Vec::new(),
            },
            drawn,
            origins: origins(prepared, rules),
            request: mem::take(&mut prepared.request.request),
            namespace: rendered.driver.namespace,
            names: rendered.names,
            manifest: objects,
            sealed,
        };
        let wanted = prepared.options.unique_name.unwrap_or(false).then(|| (new.name.clone(), new.namespace.clone()));
        let accepted = self.store.accept(new).await;
        match &accepted {
            Ok(sparkgate_store::Accepted::New(_) | sparkgate_store::Accepted::InDoubt(..)) => {}
            // Under its next number it would find what it attached under this one, such as the name of a session.
            Ok(sparkgate_store::Accepted::Taken(_)) => attached.detach().await?,
            Ok(_) => drop(attached.detach().await),
            // The database may be away, and the caller doesn't wait for it.
            Err(_) => drop(tokio::spawn(attached.detach())),
        }
        Ok(Tried { accepted: accepted?, pod, wanted })
    }

    /// Returns the user that the submission is recorded under: the one that the request names, else its caller; the gateway's own
    /// account where callers aren't authenticated.
    fn owner(&self, caller: &Session, request: &CreateSubmissionRequest) -> String {
        let principal = caller.principal();
        short(stated_owner(request).unwrap_or_else(|| match principal.provider() {
            Provider::Anonymous => &self.spark().user,
            _ => principal.owner(),
        }))
    }
}

/// Returns the user that a request names.
fn stated_owner(request: &CreateSubmissionRequest) -> Option<&str> {
    let stated = request.proxy_user.as_ref().or_else(|| request.environment_variables.get("SPARK_USER"));
    stated.map(String::as_str)
}

fn full(tenant: &str, bound: ReachedBound) -> Error {
    let tenant = tenant.to_owned();
    match bound {
        ReachedBound::Queued { most } => Error::Full { tenant, most },
        ReachedBound::Backlog { queue, most } => Error::BacklogFull { queue, most },
        ReachedBound::RecordBytes { bytes, most } => Error::RecordsFull { tenant, bytes, most },
    }
}

/// Notes for the audit why a submission was denied. A reason of an invalid request may quote its values, so only the field is noted.
fn deny(caller: &Session, error: &Error) {
    match error {
        Error::Refused(refusal) | Error::QueueRefused(refusal) => {
            caller.denied(None, || format!("the request is invalid: {}", refusal.field))
        }
        Error::Denied(_)
        | Error::Policy { .. }
        | Error::KeyReused { .. }
        | Error::ClientIdTaken { .. }
        | Error::NameTaken { .. } => caller.denied(None, || error.to_string()),
        Error::Full { .. }
        | Error::BacklogFull { .. }
        | Error::WouldWait { .. }
        | Error::RecordsFull { .. }
        | Error::Busy { .. }
        | Error::Unavailable(_)
        | Error::InDoubt { .. }
        | Error::PerhapsDone(_)
        | Error::ClusterUnavailable(_)
        | Error::Unanswered(_)
        | Error::FilesUnavailable(_)
        | Error::BrokenOff(_)
        | Error::SubmitBrokenOff(_)
        | Error::Internal(..) => {}
    }
}

/// Returns the keys of the properties that the request itself doesn't set, by origin.
fn origins(prepared: &PreparedSubmission, rules: &TenantRules) -> BTreeMap<String, Vec<String>> {
    let mut keys = BTreeMap::<String, Vec<String>>::new();
    for (key, origin) in &prepared.origins {
        // The gateway's own options don't reach the driver.
        if prepared.properties().contains_key(key) {
            let is_forced = rules.tenant.properties.contains_key(key);
            keys.entry(if is_forced { FORCED } else { origin }.to_owned()).or_default().push(key.clone());
        }
    }
    keys
}

/// Adds the result of a submit to its span.
fn mark(span: &Span, accepted: &Result<Accepted, Error>) {
    if !span.is_recorded() {
        return;
    }
    match accepted {
        Ok(Accepted { submission: Found { id, document }, replayed, .. }) => {
            span.set(attribute::SUBMISSION_ID, id.to_string());
            span.set(attribute::REPLAYED, *replayed);
            if let Ok(document) = document {
                span.set(attribute::TENANT, document.tenant.clone());
                span.set(attribute::K8S_NAMESPACE_NAME, document.namespace.clone());
            }
        }
        Err(error) => span.fail(error.kind()),
    }
}

/// Returns the searchable part of a name: an index entry is limited to some thousand bytes.
fn short(name: &str) -> String {
    const LONGEST: usize = 253;
    name[..name.floor_char_boundary(LONGEST)].replace('\0', "\u{fffd}")
}

fn replay(found: Found, before: &[u8], now: &Fingerprint, key: &str, warnings: Vec<String>) -> Result<Accepted, Error> {
    if now.is_of(before) {
        tracing::info!(submission = %found.id, "submission already accepted with the same idempotency key");
        return Ok(Accepted { submission: found, replayed: true, warnings });
    }
    Err(Error::KeyReused { key: key.to_owned(), by: found.id })
}
