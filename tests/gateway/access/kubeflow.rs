//! The submitter of Kubeflow's operator behind an access file: the operator authenticates by its client certificate.

use std::{fs, io, sync::Arc};

use axum::http::{StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::{Request, body::Bytes, client::conn::http1};
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, api::PostParams};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use serde_json::{Value, json};
use sparkgate::{
    access::Role,
    server::{ServerSettings, Tls, TlsFiles, serve},
};
use sqlx::PgPool;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::{
    TlsConnector,
    rustls::{
        ClientConfig, RootCertStore,
        crypto::ring,
        pki_types::{PrivateKeyDer, ServerName},
    },
};
use tokio_util::sync::CancellationToken;

use crate::access::world::{TWO_TENANTS, World};

const PATH: &str = "/api/v1/spark-submit";

fn application(id: &str, namespace: &str) -> Value {
    let namespace = format!("spark.kubernetes.namespace={namespace}");
    let owner = json!({"apiVersion": "sparkoperator.k8s.io/v1beta2", "kind": "SparkApplication", "name": "a", "uid": "u", "controller": true});
    json!({
        "submission_id": id,
        "driver_pod_template": {"metadata": {"ownerReferences": [owner]}, "spec": {"containers": null}},
        "spark_submit_args": ["--master", "k8s://https://10.96.0.1:443", "--class", "A", "--conf", namespace, "local:///a.jar"],
    })
}

type Authority = CertifiedIssuer<'static, KeyPair>;

/// A certificate and its key.
struct Issued {
    certificate: rcgen::Certificate,
    key: KeyPair,
}

fn issue(authority: &Authority, name: &str) -> Issued {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    Issued { certificate: params.signed_by(&key, authority).unwrap(), key }
}

/// Sends an application over TLS, with a client certificate or without.
async fn submit(
    address: std::net::SocketAddr,
    authority: &Authority,
    client: Option<&Issued>,
    body: &Value,
) -> io::Result<(StatusCode, Value)> {
    let mut roots = RootCertStore::empty();
    roots.add(authority.der().clone()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let config = match client {
        None => config.with_no_client_auth(),
        Some(Issued { certificate, key }) => {
            let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
            config.with_client_auth_cert(vec![certificate.der().clone()], key).unwrap()
        }
    };
    let stream = TcpStream::connect(address).await?;
    let stream =
        TlsConnector::from(Arc::new(config)).connect(ServerName::try_from("localhost").unwrap(), stream).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let request =
        Request::post(PATH).header(header::HOST, "localhost").header(header::CONTENT_TYPE, "application/json");
    let response = sender.send_request(request.body(Full::new(Bytes::from(body.to_string()))).unwrap()).await.unwrap();
    let status = response.status();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    Ok((status, serde_json::from_slice(&body).unwrap()))
}

#[sqlx::test]
async fn the_operator_submits_with_its_client_certificate(pool: PgPool) {
    let folder = tempfile::tempdir().unwrap();
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = Authority::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path
    };
    let server = issue(&authority, "localhost");
    let client_ca = file("ca.pem", &authority.pem());
    let files = TlsFiles {
        certificate: file("server.pem", &server.certificate.pem()),
        key: file("key.pem", &server.key.serialize_pem()),
        client_ca: Some(client_ca.clone()),
    };
    let access = format!(
        "
authentication:
  certificates: {{caFile: {}}}
tenants:
  red:
    namespaces: [red]
    members: [{{role: submitter, subjects: [\"certificate:spark-operator\"], ownsPods: true}}]
  blue: {{namespaces: [blue]}}
",
        client_ca.display()
    );
    let world = World::new(pool, &access).await;
    let namespace: Namespace = serde_json::from_value(json!({"metadata": {"name": "red"}})).unwrap();
    Api::all(world.client.clone()).create(&PostParams::default(), &namespace).await.unwrap();
    let stop = CancellationToken::new();
    tokio::spawn(world.service.leadership.clone().run_renewal(stop.clone()));
    tokio::spawn(world.service.launcher.clone().run(stop.clone()));
    tokio::spawn(world.service.events.clone().run(stop.clone()));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let settings = ServerSettings { tls: Some(Tls::load(files).await.unwrap()), ..ServerSettings::default() };
    tokio::spawn(serve(listener, world.router.clone(), settings, stop.clone()));
    let _running = stop.drop_guard();

    let operator = issue(&authority, "spark-operator");
    let (status, answer) = submit(address, &authority, Some(&operator), &application("u-1", "red")).await.unwrap();
    assert_eq!((status.as_u16(), &answer["submission_id"]), (201, &json!("u-1")), "{answer}");
    let principal =
        "SELECT principal FROM submissions WHERE client_id = 'u-1' AND tenant = 'red' AND wire = 'kubeflow'";
    let principal: String = sqlx::query_scalar(principal).fetch_one(&world.pool).await.unwrap();
    assert_eq!(principal, "certificate:spark-operator");

    let stranger = issue(&authority, "stranger");
    for (client, namespace, expected, code) in [
        (None, "red", 401, "BAD_REQUEST"),
        (Some(&stranger), "red", 403, "BAD_REQUEST"),
        (Some(&operator), "blue", 400, "INVALID_SPARK_SUBMIT_ARGS"),
    ] {
        let (status, error) = submit(address, &authority, client, &application("u-2", namespace)).await.unwrap();
        assert_eq!((status.as_u16(), error["error_code"].as_str().unwrap()), (expected, code), "{error}");
        assert!(!error["message"].as_str().unwrap().is_empty(), "{error}");
    }
    let foreign = issue(
        &{
            let mut params = CertificateParams::default();
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            Authority::self_signed(params, KeyPair::generate().unwrap()).unwrap()
        },
        "spark-operator",
    );
    let refused =
        tokio::spawn(async move { submit(address, &authority, Some(&foreign), &application("u-2", "red")).await });
    assert!(
        refused.await.is_err_and(|error| error.is_panic()),
        "a certificate of another authority ends the connection"
    );
}

#[sqlx::test]
async fn a_caller_submits_in_its_tenants_only(pool: PgPool) {
    let world = World::new(pool, TWO_TENANTS).await;
    for (role, namespace, expected) in
        [(None, "red", 401), (Some(Role::Viewer), "red", 403), (Some(Role::Operator), "blue", 400)]
    {
        let key = match role {
            Some(role) => Some(world.key(role, Some("red")).await),
            None => None,
        };
        let answer = world.send(key.as_deref(), "POST", PATH, Some(&application("u", namespace))).await;
        let error = answer.json();
        assert_eq!((answer.status, &error["status"]), (expected, &json!(expected)), "{error}");
        let retried = ["INTERNAL_SERVER_ERROR", "SUBMITTER_OVERLOADED"];
        assert!(!retried.contains(&error["error_code"].as_str().unwrap()), "{error}");
    }
    assert_eq!(
        world.send(None, "GET", PATH, None).await.status,
        401,
        "any answer tells the operator that the gateway is there"
    );
}
