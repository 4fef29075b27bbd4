//! An admission webhook that the API server calls before it creates or changes a pod in one namespace.

use std::{
    net::Ipv4Addr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper_util::rt::TokioIo;
use k8s_openapi::api::{admissionregistration::v1::MutatingWebhookConfiguration, core::v1::Pod};
use kube::{
    Api, Client,
    api::{DeleteParams, PostParams},
};
use serde_json::{Value, json};
use tokio::{
    net::TcpListener,
    sync::watch,
    task::AbortHandle,
    time::{Instant, sleep},
};
use tokio_rustls::TlsAcceptor;

use crate::tls::SelfSigned;

/// How long the API server may take to apply the configuration.
const HEARD_OF: Duration = Duration::from_secs(30);
/// The longest timeout that Kubernetes allows for a webhook.
const LONGEST: u8 = 30;

/// How the webhook answers the creation of a pod. Changes of pods are allowed at once.
#[derive(Clone, Debug, PartialEq)]
pub enum Conduct {
    Allow,
    /// Allows it after a delay.
    Delay(Duration),
    /// Doesn't answer until the conduct changes.
    Hang,
    /// Doesn't answer changes of pods until the conduct changes, and allows each creation at once.
    HangChanges,
    /// Denies it with this HTTP status.
    Deny(u16),
    /// Denies only pods whose name contains this text, with this HTTP status.
    DenyNamed(String, u16),
    /// Allows it with this JSON patch: see [`side_car`], [`image`] and [`label`].
    Patch(Value),
}

/// Returns a patch that adds a container after the others.
pub fn side_car(name: &str) -> Value {
    json!([{"op": "add", "path": "/spec/containers/-", "value": {"name": name, "image": "side-car"}}])
}

/// Returns a patch that replaces the image of the first container.
pub fn image(name: &str) -> Value {
    json!([{"op": "replace", "path": "/spec/containers/0/image", "value": name}])
}

/// Returns a patch that adds a label.
pub fn label(key: &str, value: &str) -> Value {
    let key = key.replace('~', "~0").replace('/', "~1");
    json!([{"op": "add", "path": format!("/metadata/labels/{key}"), "value": value}])
}

/// The webhook. Its server ends when this is dropped. Its configuration stays, so that no pod can be created in the
/// namespace any more: see [`Webhook::remove`].
pub struct Webhook {
    conduct: watch::Sender<Conduct>,
    asked: Arc<AtomicUsize>,
    configurations: Api<MutatingWebhookConfiguration>,
    name: String,
    accepting: AbortHandle,
}

impl Webhook {
    /// Starts with [`Conduct::Allow`]; returns when the API server calls the webhook.
    ///
    /// # Panics
    /// The API server doesn't apply the configuration.
    pub async fn start(client: Client, namespace: &str) -> Self {
        let SelfSigned { config, certificate, .. } = SelfSigned::create();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let conduct = watch::Sender::new(Conduct::Allow);
        let asked = Arc::new(AtomicUsize::new(0));
        let accepting = tokio::spawn(accept(listener, TlsAcceptor::from(config), conduct.clone(), asked.clone()));
        let name = format!("webhook-of-{namespace}");
        let configuration = json!({
            "metadata": {"name": name},
            "webhooks": [{
                "name": "webhook.example.org", "admissionReviewVersions": ["v1"], "sideEffects": "None",
                "failurePolicy": "Fail", "timeoutSeconds": LONGEST,
                "clientConfig": {"url": format!("https://127.0.0.1:{port}/"),
                    "caBundle": STANDARD.encode(certificate)},
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
                "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"],
                    "resources": ["pods"]}],
            }]
        });
        let configurations = Api::all(client.clone());
        let configuration = serde_json::from_value(configuration).unwrap();
        configurations.create(&PostParams::default(), &configuration).await.unwrap();
        let webhook = Self { conduct, asked, configurations, name, accepting: accepting.abort_handle() };
        webhook.until_asked(client, namespace).await;
        webhook
    }

    async fn until_asked(&self, client: Client, namespace: &str) {
        let pods: Api<Pod> = Api::namespaced(client, namespace);
        let pod = json!({"metadata": {"name": "asks"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
        let pod = serde_json::from_value(pod).unwrap();
        let deadline = Instant::now() + HEARD_OF;
        while self.asked() == 0 {
            assert!(Instant::now() < deadline, "the API server doesn't call the webhook");
            let _ = pods.create(&PostParams { dry_run: true, ..PostParams::default() }, &pod).await;
            sleep(Duration::from_millis(20)).await;
        }
        self.asked.store(0, SeqCst);
    }

    /// Sets the conduct from now on, also for requests that are unanswered because of [`Conduct::Hang`].
    pub fn set(&self, conduct: Conduct) {
        self.conduct.send_replace(conduct);
    }

    /// Returns the number of creations and changes that it was called for.
    pub fn asked(&self) -> usize {
        self.asked.load(SeqCst)
    }

    /// Removes the configuration.
    pub async fn remove(self) {
        self.configurations.delete(&self.name, &DeleteParams::default()).await.unwrap();
    }
}

impl Drop for Webhook {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, tls: TlsAcceptor, conduct: watch::Sender<Conduct>, asked: Arc<AtomicUsize>) {
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        let (tls, conduct, asked) = (tls.clone(), conduct.clone(), asked.clone());
        tokio::spawn(async move {
            let Ok(stream) = tls.accept(stream).await else { return };
            let service = hyper::service::service_fn(move |request| {
                let (conduct, asked) = (conduct.subscribe(), asked.clone());
                async move { review(request, conduct, &asked).await }
            });
            let http = hyper::server::conn::http1::Builder::new();
            let _ = http.serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

/// Answers one `AdmissionReview`.
async fn review(
    request: Request<Incoming>,
    mut conduct: watch::Receiver<Conduct>,
    asked: &AtomicUsize,
) -> Result<Response<Full<Bytes>>, hyper::Error> {
    let body = request.into_body().collect().await?.to_bytes();
    let review: Value = serde_json::from_slice(&body).unwrap();
    let review = &review["request"];
    asked.fetch_add(1, SeqCst);
    let creates = review["operation"] == "CREATE";
    let hangs = if creates { Conduct::Hang } else { Conduct::HangChanges };
    let _ = conduct.wait_for(|now| *now != hangs).await;
    let now = if creates { conduct.borrow().clone() } else { Conduct::Allow };
    let mut answer = json!({"uid": review["uid"], "allowed": true});
    let mut deny = |code: u16| {
        answer["allowed"] = json!(false);
        answer["status"] = json!({"code": code, "message": "a denial of the test"});
    };
    match now {
        Conduct::Allow | Conduct::Hang | Conduct::HangChanges => {}
        Conduct::Delay(pause) => sleep(pause).await,
        Conduct::Deny(code) => deny(code),
        Conduct::DenyNamed(text, code) => {
            if review["name"].as_str().is_some_and(|name| name.contains(&text)) {
                deny(code);
            }
        }
        Conduct::Patch(patch) => {
            answer["patchType"] = json!("JSONPatch");
            answer["patch"] = json!(STANDARD.encode(patch.to_string()));
        }
    }
    let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": answer});
    let answer = Response::builder().header("content-type", "application/json");
    Ok(answer.body(Full::new(Bytes::from(review.to_string()))).unwrap())
}
