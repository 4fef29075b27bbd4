//! The gateway's client of the API server, which loses the reply to one request: the request is carried out.

use std::{io, sync::Arc};

use http::{Method, Request};
use http_body_util::BodyExt;
use kube::{Client, client::Body};

use crate::lost_replies::calls::Calls;

pub(crate) fn losing(real: Client, calls: Arc<Calls>) -> Client {
    let service = tower::service_fn(move |request: Request<Body>| {
        let (real, calls) = (real.clone(), calls.clone());
        async move {
            let what = name_of(&request);
            let lost = calls.made(&what);
            let answer = real.send(request).await?;
            if what == "POST pods" && answer.status() == 201 {
                let (head, body) = answer.into_parts();
                let body = body.collect().await?.to_bytes();
                let pod: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
                calls.created_pod(pod["metadata"]["name"].as_str().unwrap_or_default());
                return if lost {
                    Err(reset())
                } else {
                    Ok(http::Response::from_parts(head, Body::from(body.to_vec())))
                };
            }
            if lost { Err(reset()) } else { Ok(answer) }
        }
    });
    Client::new(service, "default")
}

fn reset() -> kube::Error {
    kube::Error::Service(io::Error::from(io::ErrorKind::ConnectionReset).into())
}

/// Returns the method with the kind of the object, such as `PATCH pods/*`: names differ from life to life.
fn name_of(request: &Request<Body>) -> String {
    let path = request.uri().path();
    let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    let of_namespace = parts.iter().position(|part| *part == "namespaces").filter(|at| parts.len() > at + 2);
    let object = match of_namespace {
        Some(at) => &parts[at + 2..],
        None => &parts[parts.len().min(2)..],
    };
    let mut object: Vec<_> = object.iter().map(|part| (*part).to_owned()).collect();
    if let Some(name) = object.get_mut(1) {
        "*".clone_into(name);
    }
    let query = request.uri().query().unwrap_or_default();
    let watch = if request.method() == Method::GET && query.contains("watch=") { " (watch)" } else { "" };
    format!("{} {}{watch}", request.method(), object.join("/"))
}
