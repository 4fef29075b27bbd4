//! Sign-in of browsers with an API key.

use axum::{
    extract::{Extension, Request, State},
    http::header,
    response::Response,
};

use super::{
    form, refusal,
    sign_in::{FIRST, count_failed, limited, local, sent_to, sentence},
};
use crate::cookies::{self, SESSION};
use sparkgate_metrics::metrics;
use sparkgate_server::Peer;
use sparkgate_service::{Requester, Unauthenticated};
use sparkgate_web::{
    fetch_metadata::is_of_own_page,
    problem::{Code, Problem},
    request_log::{RequestId, text},
    state::AppState,
};

/// Takes an API key, and begins a session. A refused one gets the form again.
pub(super) async fn begin(
    State(state): State<AppState>,
    Extension(id): Extension<RequestId>,
    request: Request,
) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    if !is_of_own_page(&parts.headers) {
        let detail = "Only a page of this gateway can sign in with an API key, in a browser that reaches it by HTTPS, or at \
                      localhost: use the form of the page that you want to open.";
        return Err(Problem::new(Code::Forbidden, detail));
    }
    let fields = form::read(&parts.headers, body).await?;
    let to = local(form::field(&fields, "to")).unwrap_or(FIRST);
    let authenticator = &state.service.authenticator;
    let address = parts.extensions.get::<Peer>().map(Peer::client);
    let earlier = cookies::session(&parts.headers, None).map(|(value, _)| value);
    let from = Requester { address, request_id: text(&id) };
    match authenticator.sign_in_with_key(form::field(&fields, "key"), earlier, from).await {
        Ok(cookie) => {
            // The page that has the form says how the browser reached it.
            let origin = parts.headers.get(header::ORIGIN);
            let is_https = origin.is_none_or(|origin| !origin.as_bytes().starts_with(b"http:"));
            sent_to(&format!("../{to}"), [cookies::set(SESSION, &cookie, is_https, None)])
        }
        Err(why) => {
            metrics().logins_refused.with([why.kind()]).inc();
            if matches!(why, Unauthenticated::Invalid(_)) {
                count_failed(authenticator, address)?;
            }
            let problem = match &why {
                Unauthenticated::Limited(exceeded) => return Err(limited(exceeded)),
                Unauthenticated::Unavailable(_) => Problem::new(Code::AuthenticationUnavailable, sentence(&why)),
                _ => Problem::new(Code::Unauthenticated, sentence(&why)),
            };
            Ok(refusal::not_signed_in(&problem, parts.uri.path(), to, &authenticator.sign_in_ways(), &id))
        }
    }
}
