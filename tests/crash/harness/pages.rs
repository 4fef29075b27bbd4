//! A proxy of the kind that stands in front of an API server and speaks HTTP itself: while it reloads, or can't reach the server, it
//! answers with pages of its own.

use std::{
    io::Write,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    http::{Response, StatusCode},
};
use http_body_util::BodyExt;
use kube::{
    Client,
    config::{KubeConfigOptions, Kubeconfig},
};
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;

/// An answer of the proxy itself: a status and a text.
pub(crate) type Page = (u16, &'static str);

pub(crate) const PAGES: &[Page] = &[
    (404, "404 page not found\n"),
    (403, "<html><body><h1>403 Forbidden</h1></body></html>\n"),
    (502, "<html><head><title>502 Bad Gateway</title></head></html>\n"),
    (503, "no available server\n"),
];

pub(crate) struct PageProxy {
    address: SocketAddr,
    page: Arc<Mutex<Option<Page>>>,
    _served: AbortOnDropHandle<()>,
}

impl PageProxy {
    /// Starts a proxy that reaches the API server as this kubeconfig says.
    pub(crate) async fn start(kubeconfig: &str) -> Self {
        let config = Kubeconfig::from_yaml(kubeconfig).unwrap();
        let mut config = kube::Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await.unwrap();
        (config.default_retry, config.read_timeout) = (false, None);
        let upstream = Client::try_from(config).unwrap();
        let page = Arc::<Mutex<Option<Page>>>::default();
        let router = Router::new().fallback(answer).with_state((upstream, page.clone()));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let served = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { address, page, _served: AbortOnDropHandle::new(served) }
    }

    /// Writes the kubeconfig of a client that goes through this proxy.
    pub(crate) fn write_kubeconfig(&self, to: &mut impl Write) {
        let server = self.address;
        let text = format!(
            "{{apiVersion: v1, kind: Config, current-context: crash, \
             clusters: [{{name: crash, cluster: {{server: 'http://{server}'}}}}], users: [{{name: crash, user: {{}}}}], \
             contexts: [{{name: crash, context: {{cluster: crash, user: crash, namespace: default}}}}]}}"
        );
        to.write_all(text.as_bytes()).unwrap();
    }

    /// Answers everything with this page from now on; `None` ends that.
    pub(crate) fn set(&self, page: Option<Page>) {
        *self.page.lock().unwrap() = page;
    }
}

async fn answer(
    State((upstream, page)): State<(Client, Arc<Mutex<Option<Page>>>)>,
    request: Request,
) -> Response<Body> {
    let now = *page.lock().unwrap();
    if let Some((status, text)) = now {
        return of((status, text));
    }
    let (mut head, body) = request.into_parts();
    // The client of the other side adds its own.
    head.headers.remove("host");
    let Ok(body) = body.collect().await else { return of(PAGES[2]) };
    let request = http::Request::from_parts(head, kube::client::Body::from(body.to_bytes().to_vec()));
    match upstream.send(request).await {
        Ok(answer) => answer.map(Body::new),
        Err(_) => of(PAGES[2]),
    }
}

fn of((status, text): (u16, &'static str)) -> Response<Body> {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    response.headers_mut().insert("content-type", http::HeaderValue::from_static("text/html"));
    response
}
