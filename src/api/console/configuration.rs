//! The configuration of a submission: its request, its properties with their origin, and its Kubernetes objects.

use std::collections::BTreeMap;

use axum::{extract::State, http::Uri, response::Response};
use maud::{Markup, html};
use serde_json::Value;

use super::{
    layout::{Frame, Section, facts, word},
    page,
    submission::heading,
    text::cut,
};
use crate::{
    api::{
        AppState,
        v1::{Caller, Id, Problem, find},
    },
    spark::parse_properties,
};

/// The longest object that is shown, in bytes.
const LONGEST: usize = 256 << 10;

/// Shows the configuration.
pub(super) async fn show(
    State(state): State<AppState>,
    Caller(caller): Caller,
    Id { id }: Id,
    uri: Uri,
) -> Result<Response, Problem> {
    let submissions = &state.service.submissions;
    let of = find(&state.service, &caller, &id).await?;
    let (request, objects) =
        tokio::try_join!(submissions.request(&caller, &id), submissions.manifest(&caller, &id, of.attempt))?;
    let content = html! {
        (heading(&of, id.as_str(), "configuration", false))
        @if let Some(request) = &request {
            (application(request))
            (properties(request, objects.as_deref()))
        }
        (manifest(objects.as_deref()))
    };
    let title = format!("Configuration of {}", of.name);
    let frame =
        Frame { title: &title, section: Section::Submissions, path: uri.path(), caller: Some(&caller), live: None };
    Ok(page(frame.around(&content)))
}

fn application(request: &Value) -> Markup {
    let text = |name: &str| request[name].as_str().filter(|text| !text.is_empty()).map(word);
    let arguments = request["appArgs"].as_array().filter(|list| !list.is_empty()).map(|list| {
        html! { @for argument in list { code { (word(argument.as_str().unwrap_or_default())) } " " } }
    });
    let environment = request["environmentVariables"].as_object().filter(|map| !map.is_empty()).map(|map| {
        html! { @for (name, value) in map { code { (word(&format!("{name}={}", value.as_str().unwrap_or_default()))) } " " } }
    });
    html! {
        section {
            h2 { "Application" }
            (facts(&[
                ("Resource", text("appResource")),
                ("Main class", text("mainClass")),
                ("Arguments", arguments),
                ("Environment", environment),
                ("Proxy user", text("proxyUser")),
                ("Client", text("clientSparkVersion")),
            ]))
        }
    }
}

/// Shows the properties of the request, and those that Spark added to them in the driver's `ConfigMap`.
fn properties(request: &Value, objects: Option<&[Value]>) -> Markup {
    let requested: BTreeMap<&str, &str> = request["sparkProperties"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default()))
        .collect();
    let of_driver = objects.map(of_driver).unwrap_or_default();
    let added: BTreeMap<&str, &str> = of_driver
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_str()))
        .filter(|(key, _)| !requested.contains_key(key))
        .collect();
    let rows = |properties: &BTreeMap<&str, &str>, origin: &str| {
        html! {
            @for (key, value) in properties {
                tr { th scope="row" { (word(key)) } td.wide { (word(value)) } td.quiet { (origin) } }
            }
        }
    };
    html! {
        section {
            h2 { "Properties " span.count { (requested.len() + added.len()) } }
            p.quiet { "Properties of the request include the operator's defaults. Values that look like secrets are hidden." }
            table.plain.properties {
                thead { tr { th scope="col" { "Property" } th scope="col" { "Value" } th scope="col" { "Origin" } } }
                tbody {
                    (rows(&requested, "request and defaults"))
                    (rows(&added, "spark-submit"))
                }
            }
        }
    }
}

/// Returns the properties in the driver's `ConfigMap`.
fn of_driver(objects: &[Value]) -> BTreeMap<String, String> {
    let files = objects.iter().filter(|object| object["kind"] == "ConfigMap");
    let text = files.filter_map(|object| object["data"]["spark.properties"].as_str()).next();
    text.map(|text| parse_properties(text).into_iter().collect()).unwrap_or_default()
}

fn manifest(objects: Option<&[Value]>) -> Markup {
    html! {
        section {
            h2 { "Kubernetes objects" }
            @match objects {
                None => p.quiet { "They are no longer stored: that is so from the time at which the driver's pod is deleted." },
                Some(objects) => {
                    @for object in objects {
                        @let name = object["metadata"]["name"].as_str().unwrap_or_default();
                        details.command {
                            summary { (word(object["kind"].as_str().unwrap_or("Object"))) " " span.quiet { (word(name)) } }
                            pre tabindex="0" { (cut(&format!("{object:#}"), LONGEST)) }
                        }
                    }
                }
            }
        }
    }
}
