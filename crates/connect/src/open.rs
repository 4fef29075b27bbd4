//! Opens sessions, and shows them.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use chrono::{DateTime, Utc};
use tokio::{
    net::TcpStream,
    time::{sleep, timeout},
};

use super::{Connect, attach::SERVER};
use sparkgate_access::Action;
use sparkgate_common::{error::Error, pauses::Pauses};
use sparkgate_core::submissions::Submissions;
use sparkgate_requests::options::{Retries, SessionOptions, SubmissionOptions};
use sparkgate_spark::{CreateSubmissionRequest, Refusal};
use sparkgate_store::{ConnectSession, Error as StoreError, Scope};
use sparkgate_submission::{State, SubmissionId};
use sparkgate_tenancy::session::Session;

/// How long a server may take to accept a connection.
const REACHED: Duration = Duration::from_secs(1);
/// How often a session is looked for that another request has named, and the pauses between.
const LOOKS: u32 = 8;
const PAUSE: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// Executors come and go with the work, up to so many, unless the request says otherwise.
const MOST_EXECUTORS: &str = "10";
const NAMESPACE: &str = "spark.kubernetes.namespace";

/// Where a session is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionState {
    /// Its driver is being started.
    Opening,
    /// Its server accepts requests.
    Ready,
    Ended,
}

/// A session as it is now.
#[derive(Debug, Clone)]
pub struct OpenSession {
    pub session: ConnectSession,
    pub state: SessionState,
    /// What it waits for, or why it ended.
    pub message: Option<String>,
}

impl OpenSession {
    /// Returns whether requests of the caller to it are let through as long as it lives.
    pub fn is_open_to(&self, caller: &Session) -> bool {
        let may_submit = caller.access().may(caller.principal(), Action::Submit, &self.session.submission.tenant);
        may_submit && is_known_to(caller, &self.session)
    }

    /// Returns when it will be ended, unless a client uses it. Only of one that is ready.
    pub fn idle_at(&self) -> Option<DateTime<Utc>> {
        let session = &self.session;
        let since = session.used_at.max(session.ready_at).max(session.submission.started_at);
        since.filter(|_| self.state == SessionState::Ready).map(|since| since + session.idle_timeout)
    }
}

impl Connect {
    /// Returns the caller's live session of this name, or the shared one of its tenant, and whether it is new: it is submitted unless there
    /// is one.
    ///
    /// # Errors
    /// Those of a submission, and [`Error::Denied`] if there are too many sessions, or the tenant has no shared ones.
    pub async fn open(
        &self,
        submissions: &Arc<Submissions>,
        caller: &Session,
        request: CreateSubmissionRequest,
        options: SubmissionOptions,
    ) -> Result<(OpenSession, bool), Error> {
        caller.require(Action::Submit)?;
        let (request, options) = self.completed(request, options);
        if let Some(session) = self.live(caller, &request, options.session.as_ref()).await? {
            caller.changes_nothing();
            return Ok((self.seen(session).await?, false));
        }
        let (id, is_new) = match submissions.submit(caller, request, options, ()).await {
            Ok(accepted) => (accepted.submission.id, true),
            Err(Error::NameTaken { by, .. }) => {
                caller.changes_nothing();
                (by, false)
            }
            Err(error) => return Err(error),
        };
        // What was accepted isn't undone by a read that fails.
        let unread = |source| if is_new { Error::InDoubt { id: id.clone(), source } } else { Error::from(source) };
        Ok((self.named(&id, unread).await?, is_new))
    }

    /// Returns the session of a submission that was accepted, or will be in a moment: another request for the same name may be under way.
    async fn named(&self, id: &SubmissionId, unread: impl Fn(StoreError) -> Error) -> Result<OpenSession, Error> {
        let mut pauses = Pauses::new(PAUSE, PAUSE_MAX);
        for look in 0..=LOOKS {
            if look > 0 {
                sleep(pauses.next_pause()).await;
            }
            if let Some(session) = self.store.all().connect_session(id).await.map_err(&unread)? {
                return self.seen(session).await;
            }
        }
        Err(Error::Internal(format!("the session {id} has no record"), "it was just accepted".into()))
    }

    /// Returns the live session that is asked for. One of the caller's own in a namespace is found by its submission.
    async fn live(
        &self,
        caller: &Session,
        request: &CreateSubmissionRequest,
        session: Option<&SessionOptions>,
    ) -> Result<Option<ConnectSession>, Error> {
        let Some(session) = session else { return Ok(None) };
        let namespace = request.spark_properties.get(NAMESPACE).map(String::as_str);
        if session.is_shared {
            let tenant = tenant_of_shared(caller, namespace)?;
            let of_tenant = self.store.scoped(&Scope::of(vec![tenant.to_owned()], Vec::new(), ""));
            return Ok(of_tenant.connect_session_named(None, &session.name).await?);
        }
        if namespace.is_some() {
            return Ok(None);
        }
        let readable = self.store.scoped(&caller.readable());
        Ok(readable.connect_session_named(Some(caller.principal().subject()), &session.name).await?)
    }

    /// Makes a request for a driver of a request for a session.
    fn completed(
        &self,
        mut request: CreateSubmissionRequest,
        mut options: SubmissionOptions,
    ) -> (CreateSubmissionRequest, SubmissionOptions) {
        let session = options.session.get_or_insert_with(|| SessionOptions {
            name: "default".to_owned(),
            is_shared: false,
            idle_timeout: self.settings.idle_timeout,
        });
        SERVER.clone_into(&mut request.main_class);
        "spark-internal".clone_into(&mut request.app_resource);
        let properties = &mut request.spark_properties;
        properties.entry("spark.app.name".to_owned()).or_insert_with(|| session.name.clone());
        let is_sized = ["spark.executor.instances", "spark.dynamicAllocation.enabled", "spark.sparkgate.defaults"];
        if !is_sized.iter().any(|key| properties.contains_key(*key)) {
            properties.insert("spark.dynamicAllocation.enabled".to_owned(), "true".to_owned());
            let most = properties.entry("spark.dynamicAllocation.maxExecutors".to_owned());
            most.or_insert_with(|| MOST_EXECUTORS.to_owned());
        }
        // A client would lose its state unawares.
        options.retries = Retries { infrastructure: Some(0), application: Some(0), capacity: Some(0), quota: Some(0) };
        (request, options)
    }

    /// Returns a session that the caller may see, or `None` if none has this id.
    pub async fn session(&self, caller: &Session, id: &SubmissionId) -> Result<Option<OpenSession>, Error> {
        match self.store.scoped(&caller.readable()).connect_session(id).await? {
            Some(session) => Ok(Some(self.seen(session).await?)),
            None => Ok(None),
        }
    }

    /// Returns the sessions that the caller may see, the newest first: those that live, or all that are kept.
    pub async fn sessions(&self, caller: &Session, all: bool) -> Result<Vec<OpenSession>, Error> {
        let sessions = self.store.scoped(&caller.readable()).connect_sessions(all).await?;
        Ok(sessions.into_iter().map(shown).collect())
    }

    /// Returns a session as it is. That its server accepts connections is found out here, and recorded.
    async fn seen(&self, mut session: ConnectSession) -> Result<OpenSession, Error> {
        if session.ready_at.is_none()
            && session.submission.state == State::Running
            && let Some(address) = self.address_of(&session).await?
            && is_reached(address).await
        {
            self.store.note_connect_ready(&session.submission.id).await?;
            session.ready_at = Some(chrono::Utc::now());
        }
        Ok(shown(session))
    }

    /// Returns where the server of a session listens, if its driver runs.
    pub(crate) async fn address_of(&self, session: &ConnectSession) -> Result<Option<SocketAddr>, Error> {
        let submission = &session.submission;
        let Some(uid) = &submission.pod_uid else { return Ok(None) };
        self.address(&submission.namespace, &submission.names.driver_pod, uid).await
    }
}

/// Returns the tenant whose shared session a request asks for.
///
/// # Errors
/// [`Error::Denied`] if the operator of the tenant doesn't permit shared sessions, and [`Error::Refused`] if there is no such tenant.
fn tenant_of_shared<'a>(caller: &'a Session, namespace: Option<&str>) -> Result<&'a str, Error> {
    let tenant = caller.access().tenant_for(caller.principal(), namespace);
    let tenant = tenant.map_err(|error| Refusal::property(NAMESPACE, error.to_string()))?;
    if tenant.has_shared_sessions {
        return Ok(&tenant.name);
    }
    caller.aims_at(&tenant.name);
    let name = &tenant.name;
    Err(Error::Denied(format!(
        "tenant {name} has no shared sessions: its operator has to set `sessions: {{shared: true}}` in the access file"
    )))
}

async fn is_reached(address: SocketAddr) -> bool {
    matches!(timeout(REACHED, TcpStream::connect(address)).await, Ok(Ok(_)))
}

fn shown(session: ConnectSession) -> OpenSession {
    let state = match session.submission.state {
        state if state.is_terminal() || state == State::Killing => SessionState::Ended,
        State::Running if session.ready_at.is_some() => SessionState::Ready,
        _ => SessionState::Opening,
    };
    let message = match state {
        SessionState::Ready => None,
        SessionState::Opening => Some(waiting(&session)),
        SessionState::Ended => Some(ended(&session)),
    };
    OpenSession { session, state, message }
}

/// Says what a session waits for.
pub(crate) fn waiting(session: &ConnectSession) -> String {
    let submission = &session.submission;
    match (submission.state, &submission.message) {
        (State::Running, _) => "its driver runs, and its server doesn't accept connections yet".to_owned(),
        (state, Some(message)) => format!("its driver is {state}: {message}"),
        (state, None) => format!("its driver is {state}"),
    }
}

/// Says why a session ended.
pub(crate) fn ended(session: &ConnectSession) -> String {
    let submission = &session.submission;
    if session.idled_at.is_some() {
        return format!("it was ended after {} without a request", in_words(session.idle_timeout));
    }
    let cause = [submission.reason.as_deref(), submission.message.as_deref()];
    let cause: Vec<&str> = cause.into_iter().flatten().filter(|text| !text.is_empty()).collect();
    match cause.is_empty() {
        true => format!("its driver is {}", submission.state),
        false => format!("its driver is {}: {}", submission.state, cause.join(": ")),
    }
}

fn in_words(time: Duration) -> String {
    match time.as_secs() {
        seconds if seconds % 3600 == 0 => format!("{}h", seconds / 3600),
        seconds if seconds % 60 == 0 => format!("{}m", seconds / 60),
        seconds => format!("{seconds}s"),
    }
}

/// Returns whether a session is the caller's own, or a shared one of a tenant that it is a member of. The operator's word counts as it is now.
pub(crate) fn is_known_to(caller: &Session, session: &ConnectSession) -> bool {
    let submission = &session.submission;
    submission.principal == caller.principal().subject()
        || session.is_shared && caller.access().shares_sessions(caller.principal(), &submission.tenant)
}
