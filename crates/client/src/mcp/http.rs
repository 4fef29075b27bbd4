//! The streamable HTTP transport. Every request stands by itself: there are no sessions that another caller could take over.

use std::net::SocketAddr;

use axum::{
    Router,
    extract::{Request, State},
    http::{HeaderMap, StatusCode, header},
    middleware::{Next, from_fn_with_state},
    response::{IntoResponse, Response},
};
use rmcp::transport::streamable_http_server::{
    StreamableHttpServerConfig, StreamableHttpService, session::never::NeverSessionManager,
};
use secrecy::SecretString;
use std::sync::Arc;
use tokio::{net::TcpListener, signal::ctrl_c};

use super::{Allowed, Callers, Tools, without_credentials};
use crate::{
    api::{Api, Call},
    error::Error,
    options::Gateway,
    screen::note,
};

const PATH: &str = "/mcp";
/// The largest request, in bytes. A submission may have pod templates.
const LARGEST: usize = 1 << 20;

/// Where the server listens, and under which names.
pub(in crate::mcp) type Names = Vec<String>;

/// The settings of the HTTP server.
pub(crate) struct HttpSettings {
    pub(crate) address: SocketAddr,
    /// Names in `Host`, besides localhost and the address itself.
    pub(crate) allowed_hosts: Names,
}

/// Serves HTTP until Ctrl-C.
///
/// # Errors
/// The settings of the gateway can't be used, or the address is taken.
pub(crate) async fn serve_http(gateway: &Gateway, allowed: Allowed, settings: HttpSettings) -> Result<(), Error> {
    let connection = without_credentials(gateway)?;
    let api = Arc::new(Api::without_token(&connection)?);
    let tools = Tools::new(Callers::Requests(Arc::clone(&api)), allowed, &connection.trust);
    let failed = |error: std::io::Error| Error::Here(format!("listening on {}: {error}", settings.address));
    let listener = TcpListener::bind(settings.address).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    note(&format!("serving the Model Context Protocol at http://{address}{PATH}"));
    let router = router(api, tools, address, settings.allowed_hosts);
    let stopped = async {
        // Without a handler of signals the process ends at once, which is as good.
        let _ = ctrl_c().await;
    };
    axum::serve(listener, router).with_graceful_shutdown(stopped).await.map_err(failed)
}

fn router(api: Arc<Api>, tools: Tools, address: SocketAddr, names: Names) -> Router {
    // A page can resolve its own name to this address (DNS rebinding), so only known names are served. A browser sends `Origin`: no page
    // may call tools.
    let own = [address.ip().to_string()];
    let hosts = ["localhost", "127.0.0.1", "::1"].map(str::to_owned).into_iter().chain(own).chain(names);
    let config = StreamableHttpServerConfig::default()
        .with_allowed_hosts(hosts)
        .enforce_origin_validation()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_max_request_body_bytes(LARGEST);
    let service =
        StreamableHttpService::new(move || Ok(tools.clone()), Arc::new(NeverSessionManager::default()), config);
    Router::new().route_service(PATH, service).layer(from_fn_with_state(api, authenticated))
}

/// Returns the bearer token of a request.
pub(super) fn token(headers: &HeaderMap) -> Option<SecretString> {
    let (scheme, token) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim().to_owned().into())
}

/// Answers a request with 401 if the gateway doesn't know its caller: clients of the protocol expect that of the server itself.
async fn authenticated(State(api): State<Arc<Api>>, request: Request, next: Next) -> Response {
    let known = match api.for_caller(token(request.headers())) {
        Ok(api) => api.send(&Call::get("asking who the caller is", &["me"])).await.map(drop),
        Err(error) => Err(error),
    };
    match known {
        Err(Error::Problem(problem)) if problem.status == 401 => {
            let challenge = [(header::WWW_AUTHENTICATE, "Bearer")];
            (StatusCode::UNAUTHORIZED, challenge, problem.to_string()).into_response()
        }
        // A gateway that can't be reached is an error of the tool.
        _ => next.run(request).await,
    }
}
