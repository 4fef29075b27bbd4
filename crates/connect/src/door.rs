//! The door: requests of clients to the servers of their sessions.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::{BoxFuture, Either, select};
use http::{HeaderMap, HeaderName, Method, Request, Response};
use hyper::body::Body;
use tokio_util::sync::CancellationToken;

use super::{
    Connect,
    body::{BoxError, RelayBody},
    open::{ended, is_known_to, waiting},
    relay::{self, Held},
    status::{Code, Status, is_grpc},
    token,
};
use sparkgate_access::Action;
use sparkgate_common::error::{Error, error_chain};
use sparkgate_metrics::metrics;
use sparkgate_store::ConnectSession;
use sparkgate_submission::{State, SubmissionId};
use sparkgate_tenancy::session::Session;

/// The metadata that names the session: clients add it to their connection string. Without it, the first label of the host name does.
pub const SESSION: HeaderName = HeaderName::from_static("x-sparkgate-session");
/// The service of Spark Connect.
const SERVICE: &str = "/spark.connect.SparkConnectService/";
/// The same of all sessions of a tenant, on each replica.
const OF_TENANT: u32 = 512;

impl Connect {
    /// Answers a request of a caller. `until` ends its stream: the caller's credentials are no longer valid.
    pub async fn relay<B>(
        self: &Arc<Self>,
        caller: &Session,
        request: Request<B>,
        until: BoxFuture<'static, ()>,
    ) -> Response<RelayBody>
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        match self.relay_or_refuse(caller, request, until).await {
            Ok(response) => {
                metrics().connect_requests.with(["relayed"]).inc();
                response
            }
            Err(status) => {
                tracing::debug!(code = status.code.as_str(), "request to a session refused: {}", status.message);
                refused(&status)
            }
        }
    }

    async fn relay_or_refuse<B>(
        self: &Arc<Self>,
        caller: &Session,
        request: Request<B>,
        until: BoxFuture<'static, ()>,
    ) -> Result<Response<RelayBody>, Status>
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        check(&request)?;
        let id = session_of(request.headers(), request.uri().host())?;
        let session = self.session_for(caller, &id).await?;
        let slots = self.slots(&session)?;
        let digest = session.token_digest.as_deref().unwrap_or_default();
        let token = token::with_digest(&self.installation, &id, digest);
        let gone = "the gateway has no key to the server of the session any more: open another session";
        let token = token.ok_or_else(|| Status::new(Code::FailedPrecondition, gone))?;
        let address = self.address_of(&session).await.map_err(|error| failed(&error))?;
        let address = address.ok_or_else(|| Status::unavailable("the driver of the session has no address yet"))?;
        let outgoing = relay::outgoing(request, address, &token);
        let outgoing = outgoing.ok_or_else(|| Status::new(Code::Internal, "the request can't be passed on"))?;
        let mut end = either(self.closing.clone(), until);
        let answer = self.drivers.send(&id, address, outgoing);
        let response = tokio::select! {
            biased;
            () = &mut end => return Err(Status::unavailable("the gateway shuts down: try again")),
            response = answer => response?,
        };
        self.note_use(&id).await;
        Ok(relay::answered(response, Held { connect: self.clone(), session: id, slots, end }))
    }

    /// Returns the session that a request is for, if its server can be asked.
    async fn session_for(&self, caller: &Session, id: &SubmissionId) -> Result<ConnectSession, Status> {
        let found = self.store.all().connect_session(id).await.map_err(|error| failed(&error.into()))?;
        let Some(session) = found.filter(|session| is_known_to(caller, session)) else {
            caller.denied(Some(id), || "there is no such session, or it is another principal's".to_owned());
            let advice = "see `sparkgate session list`, or open one with `sparkgate connect`";
            return Err(Status::new(Code::NotFound, format!("you have no session {id}: {advice}")));
        };
        let submission = &session.submission;
        if !caller.access().may(caller.principal(), Action::Submit, &submission.tenant) {
            caller.denied(Some(id), || "the role doesn't permit it".to_owned());
            let (subject, tenant) = (caller.principal().subject(), &submission.tenant);
            let message = format!("{subject} needs the role {} in tenant {tenant}", Action::Submit.least_role());
            return Err(Status::new(Code::PermissionDenied, message));
        }
        match submission.state {
            State::Running => Ok(session),
            state if state.is_terminal() || state == State::Killing => {
                let message =
                    format!("the session {id} is over: {}; open another one with `sparkgate connect`", ended(&session));
                Err(Status::new(Code::FailedPrecondition, message))
            }
            _ => Err(Status::unavailable(format!("the session {id} is being opened: {}", waiting(&session)))),
        }
    }

    fn slots(&self, session: &ConnectSession) -> Result<relay::Slots, Status> {
        let submission = &session.submission;
        let of_session = self.of_sessions.take([(submission.id.as_str(), Some(relay::OF_SESSION))]);
        let of_tenant = self.of_tenants.take([(submission.tenant.as_str(), Some(OF_TENANT))]);
        let busy = |what| Status::unavailable(format!("too many requests of the {what} are under way: try again"));
        Ok((of_session.map_err(|_| busy("session"))?, of_tenant.map_err(|_| busy("tenant"))?))
    }
}

/// Counts a request that is refused, and returns its response.
pub fn refused(status: &Status) -> Response<RelayBody> {
    metrics().connect_requests.with([status.code.as_str()]).inc();
    status.response()
}

/// Refuses a request that isn't one of Spark Connect.
fn check<B>(request: &Request<B>) -> Result<(), Status> {
    let method = request.uri().path().strip_prefix(SERVICE).unwrap_or_default();
    let is_method = !method.is_empty() && method.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if request.method() == Method::POST && is_method && is_grpc(request.headers()) {
        return Ok(());
    }
    let message = "this address serves Spark Connect only: the API of the gateway is at another one";
    Err(Status::new(Code::Unimplemented, message))
}

/// Returns the session that a request names.
fn session_of(headers: &HeaderMap, host: Option<&str>) -> Result<SubmissionId, Status> {
    let invalid = |message: &str| {
        let advice = "add `;x-sparkgate-session=ID` to the connection string, as `sparkgate connect` prints it";
        Status::new(Code::InvalidArgument, format!("{message}: {advice}"))
    };
    let mut values = headers.get_all(SESSION).iter();
    let Some(value) = values.next() else {
        let label = host.and_then(|host| host.split('.').next());
        let id = label.and_then(|label| label.parse().ok());
        return id.ok_or_else(|| invalid("the request names no session"));
    };
    if values.next().is_some() {
        return Err(invalid("the request names more than one session"));
    }
    let id = value.to_str().ok().and_then(|text| text.parse().ok());
    id.ok_or_else(|| invalid("the request names a session by something that is no id"))
}

/// Returns the status of an error of the gateway's own.
fn failed(error: &Error) -> Status {
    if error.may_pass() {
        return Status::unavailable(format!("{error}: try again"));
    }
    tracing::error!("a request to a session failed: {}", error_chain(error));
    Status::new(Code::Internal, "a fault of the gateway: its log has the cause")
}

/// Completes when the process shuts down, or with `until`.
fn either(closing: CancellationToken, until: BoxFuture<'static, ()>) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        match select(Box::pin(closing.cancelled_owned()), until).await {
            Either::Left(_) | Either::Right(_) => {}
        }
    })
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn a_request_names_one_session() {
        let code = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(SESSION, HeaderValue::from_str(value).unwrap());
            }
            session_of(&headers, Some("gateway.example")).map_err(|status| status.code)
        };
        assert_eq!(code(&["driver-20260102030405-0001"]).unwrap().as_str(), "driver-20260102030405-0001");
        for values in [&[][..], &["x"], &[""], &["driver-20260102030405-0001", "driver-20260102030405-0001"]] {
            assert_eq!(code(values), Err(Code::InvalidArgument), "{values:?}");
        }
    }

    #[test]
    fn the_host_name_names_the_session_unless_metadata_does() {
        let mut headers = HeaderMap::new();
        let host = Some("driver-20260102030405-0002.connect.example");
        assert_eq!(session_of(&headers, host).unwrap().as_str(), "driver-20260102030405-0002");
        headers.insert(SESSION, HeaderValue::from_static("driver-20260102030405-0001"));
        assert_eq!(session_of(&headers, host).unwrap().as_str(), "driver-20260102030405-0001");
    }

    #[test]
    fn only_methods_of_spark_connect_pass() {
        let code = |method: &str, path: &str, media: &str| {
            let request = Request::builder().method(method).uri(path).header("content-type", media).body(()).unwrap();
            check(&request).map_err(|status| status.code)
        };
        assert_eq!(code("POST", "/spark.connect.SparkConnectService/ExecutePlan", "application/grpc"), Ok(()));
        for (method, path, media) in [
            ("GET", "/spark.connect.SparkConnectService/ExecutePlan", "application/grpc"),
            ("POST", "/spark.connect.SparkConnectService/ExecutePlan", "application/json"),
            ("POST", "/spark.connect.SparkConnectService/", "application/grpc"),
            ("POST", "/spark.connect.SparkConnectService/../x", "application/grpc"),
            ("POST", "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", "application/grpc"),
            ("POST", "/v1/submissions", "application/grpc"),
        ] {
            assert_eq!(code(method, path, media), Err(Code::Unimplemented), "{method} {path}");
        }
    }
}
