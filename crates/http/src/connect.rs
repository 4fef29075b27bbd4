//! The address for clients of Spark Connect: authenticates their requests, and hands them to the sessions.

use std::{sync::Arc, time::Duration};

use axum::{
    Extension, Router,
    body::Body,
    extract::{Request, State},
    http::{StatusCode, Version, header, request::Parts},
    response::{IntoResponse, Response},
    routing::any,
};
use tokio::time::sleep;

use super::authn::{bearer, only};
use sparkgate_metrics::metrics;
use sparkgate_server::Peer;
use sparkgate_service::{
    Authenticated, ConnectCode, ConnectStatus, Credentials, RequestedChange, Service, Session, Unauthenticated, Verdict,
};
use sparkgate_web::{
    request_log::{self, RequestId},
    routes::Routes,
};

/// When the credentials of a request under way are checked first.
const LOOK: Duration = Duration::from_secs(15);
const NOT_HTTP2: &str =
    "This address serves Spark Connect, which is gRPC over HTTP/2. The API of Sparkgate is at another address.\n";

/// The methods of Spark Connect, as `spark/connect/base.proto` names them.
const METHODS: &str = "/spark.connect.SparkConnectService/{method}";

/// Returns the router of the port for clients of Spark Connect. It serves nothing else.
pub fn connect_listener(service: Service) -> Router {
    let routes = Routes::default().route(METHODS, any(answer)).map(|router| router.fallback(answer));
    routes.with_state(Arc::new(service)).within(request_log::logged)
}

async fn answer(
    State(service): State<Arc<Service>>,
    Extension(id): Extension<RequestId>,
    request: Request,
) -> Response {
    if request.version() != Version::HTTP_2 {
        return (StatusCode::HTTP_VERSION_NOT_SUPPORTED, NOT_HTTP2).into_response();
    }
    // A body can't be shared by threads, as a request that is authenticated is.
    let (parts, body) = request.into_parts();
    let response = match caller(&service, &parts, request_log::text(&id)).await {
        Ok(caller) => {
            let end = service.authenticator.clone().end_of(caller.clone());
            // They were valid just now, and most requests are over soon.
            let until = async move {
                sleep(LOOK).await;
                end.await;
            };
            let response = service.connect.relay(&caller, Request::from_parts(parts, body), Box::pin(until)).await;
            // Only denials have entries.
            let asked = RequestedChange { action: "connect", subject: None, named: "" };
            service.audit.write(&caller, asked, Verdict::None).await;
            response
        }
        Err(status) => sparkgate_service::refused_by_connect(&status),
    };
    response.map(Body::new)
}

/// Authenticates a request, and counts it towards the limits of its caller.
async fn caller(service: &Service, request: &Parts, id: &str) -> Result<Session, ConnectStatus> {
    let headers = &request.headers;
    let peer = request.extensions.get::<Peer>();
    let address = peer.map(Peer::client);
    let credentials = Credentials {
        bearer: bearer(headers),
        certificate: peer.and_then(|peer| peer.certificate.as_deref()).map(AsRef::as_ref),
        header: &|name| only(headers, name),
        address,
        session: None,
    };
    let answer = match only(headers, header::AUTHORIZATION.as_str()) {
        Ok(_) => service.authenticator.authenticate(&credentials).await,
        Err(why) => Err(why),
    };
    let Authenticated { principal, tenancy, reviewed, .. } = answer.map_err(|why| {
        metrics().logins_refused.with([why.kind()]).inc();
        if let (Unauthenticated::Invalid(_), Some(address)) = (&why, address) {
            // The next one of this address is limited.
            let _ = service.authenticator.count_failed_login(address);
        }
        unauthenticated(&why)
    })?;
    tenancy.count(&principal, true, 0).map_err(|exceeded| {
        metrics().requests_limited.with([exceeded.limit]).inc();
        ConnectStatus::unavailable(format!("{exceeded}: try again"))
    })?;
    Ok(Session::new(principal, tenancy, address, id).with_review(reviewed))
}

fn unauthenticated(why: &Unauthenticated) -> ConnectStatus {
    match why {
        Unauthenticated::Missing | Unauthenticated::UnknownSession => {
            let message = "send a token or an API key: add `;token=…` to the connection string";
            ConnectStatus::new(ConnectCode::Unauthenticated, message)
        }
        Unauthenticated::Invalid(_) => ConnectStatus::new(ConnectCode::Unauthenticated, why.to_string()),
        Unauthenticated::Limited(_) | Unauthenticated::Unavailable(_) => {
            ConnectStatus::unavailable(format!("{why}: try again"))
        }
    }
}
