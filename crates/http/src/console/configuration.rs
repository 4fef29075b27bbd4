//! The configuration of a submission: its request, its properties with their origin, and its Kubernetes objects.

use std::collections::BTreeMap;

use axum::{extract::State, http::Uri, response::Response};
use maud::{Markup, html};
use serde_json::Value;

use super::{
    compare::{Comparison, compared},
    heading::{Actions, heading},
    layout::{Frame, Section, facts, word},
    page::page,
    text::cut,
};
use sparkgate_spark::parse_properties;
use sparkgate_web::{
    id::{Id, find},
    problem::Problem,
    session::Caller,
    state::AppState,
};

/// The longest object that is shown, in bytes.
const LONGEST: usize = 256 << 10;

/// The origin of properties that the request itself set, and of those that Spark added to them.
const REQUEST: &str = "request";
const SPARK: &str = "spark-submit";

/// Shows the configuration.
pub(super) async fn show(
    State(state): State<AppState>,
    Caller(caller): Caller,
    Id { id }: Id,
    uri: Uri,
) -> Result<Response, Problem> {
    let submissions = &state.service.submissions;
    let of = find(&state.service, &caller, &id).await?;
    let (request, objects, origins) = tokio::try_join!(
        submissions.request(&caller, &id),
        submissions.manifest(&caller, &id, of.attempt),
        submissions.origins(&caller, &id),
    )?;
    let comparison = match &request {
        Some(request) => Some(Comparison::read(&state, &caller, &of, request, uri.query().unwrap_or_default()).await?),
        None => None,
    };
    let content = html! {
        (heading(&of, id.as_str(), "configuration", Actions::of(&caller, &of)))
        @if let Some(comparison) = &comparison { (compared(comparison)) }
        @if let Some(request) = &request {
            (application(request))
            (properties(request, objects.as_deref(), origins.as_ref()))
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

/// Shows the properties of the request with their origins, and those that Spark added to them in the driver's `ConfigMap`.
fn properties(request: &Value, objects: Option<&[Value]>, origins: Option<&BTreeMap<String, Vec<String>>>) -> Markup {
    let origin_of: BTreeMap<&str, &str> = origins
        .into_iter()
        .flatten()
        .flat_map(|(origin, keys)| keys.iter().map(move |key| (key.as_str(), origin.as_str())))
        .collect();
    let unknown = if origins.is_some() { REQUEST } else { "request or defaults" };
    let mut rows: BTreeMap<&str, (&str, &str)> = BTreeMap::new();
    let driver_properties = objects.map(driver_properties).unwrap_or_default();
    for (key, value) in &driver_properties {
        let of_ours = key.starts_with("spark.kubernetes.executor.label.sparkgate.dev/");
        rows.insert(key, (value, if of_ours { "sparkgate" } else { SPARK }));
    }
    for (key, value) in request["sparkProperties"].as_object().into_iter().flatten() {
        let origin = origin_of.get(key.as_str()).copied().unwrap_or(unknown);
        rows.insert(key, (value.as_str().unwrap_or_default(), origin));
    }
    html! {
        section #properties {
            h2 { "Properties " span.count { (rows.len()) } }
            p.quiet {
                "The origin says who set a property: the request, defaults of the operator, of a Spark line or of the tenant, "
                code { "forced" } " by the tenant, or Spark itself. Values that look like secrets are hidden."
            }
            table.plain.properties {
                thead { tr { th scope="col" { "Property" } th scope="col" { "Value" } th scope="col" { "Origin" } } }
                tbody {
                    @for (key, (value, origin)) in &rows {
                        tr { th scope="row" { (word(key)) } td.wide { (word(value)) } td.quiet { (word(origin)) } }
                    }
                }
            }
        }
    }
}

/// Returns the properties in the driver's `ConfigMap`.
fn driver_properties(objects: &[Value]) -> BTreeMap<String, String> {
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
