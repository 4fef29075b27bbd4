//! The export of traces over OTLP. It is off unless an endpoint is set. A collector that is slow or away delays nothing: spans wait
//! in a bounded queue, and are dropped when it is full.

mod exporter;

use std::{env, fs, time::Duration};

use anyhow::{Context, bail};
use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::{SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::{
    Resource,
    resource::EnvResourceDetector,
    trace::{BatchConfigBuilder, BatchSpanProcessor, SdkTracerProvider},
};
use reqwest::{Certificate, Client, redirect::Policy};
use rustls::crypto::ring;
use tokio::{runtime::Handle, task::spawn_blocking, time::timeout};
use uuid::Uuid;

use exporter::{Reported, Runtime};
use sparkgate_traces::{KeyValue, switch_on};

/// Timeout of one export, unless `OTEL_EXPORTER_OTLP_TIMEOUT` says another: OpenTelemetry's default.
const EXPORT: Duration = Duration::from_secs(10);
/// Spans that wait for their export, unless `OTEL_BSP_MAX_QUEUE_SIZE` says another number: a few megabytes.
const QUEUE: usize = 8192;
/// OpenTelemetry's names of samplers.
const SAMPLERS: [&str; 6] = [
    "always_on",
    "always_off",
    "traceidratio",
    "parentbased_always_on",
    "parentbased_always_off",
    "parentbased_traceidratio",
];

/// The export of this process.
pub(super) struct Traces(SdkTracerProvider);

impl Traces {
    /// Checks the setting `endpoint` and the variables of OpenTelemetry, and the certificates that they name.
    ///
    /// # Errors
    /// A setting that can't be used.
    pub(super) fn check(endpoint: Option<&str>) -> anyhow::Result<()> {
        collector(endpoint).map(drop)
    }

    /// Begins to record and to export spans, if `endpoint` or a variable of OpenTelemetry says where to. Runs in a Tokio runtime.
    ///
    /// # Errors
    /// A setting that can't be used.
    pub(super) fn begin(endpoint: Option<&str>) -> anyhow::Result<Option<Self>> {
        let Some((target, client)) = collector(endpoint)? else { return Ok(None) };
        let client = Runtime { handle: Handle::current(), client };
        let exporter = SpanExporter::builder().with_http().with_http_client(client);
        let exporter = match &target {
            Target::Setting(url) => exporter.with_endpoint(url),
            Target::Variables => exporter,
        };
        let exporter = exporter
            .build()
            .context("the export of traces can't begin: check its endpoint (docs/operate/traces.md)")?;
        let mut batches = BatchConfigBuilder::default();
        if variable("OTEL_BSP_MAX_QUEUE_SIZE").is_none() {
            batches = batches.with_max_queue_size(QUEUE);
        }
        let processor = BatchSpanProcessor::builder(Reported::new(exporter)).with_batch_config(batches.build()).build();
        let provider = SdkTracerProvider::builder().with_resource(resource()).with_span_processor(processor).build();
        switch_on(provider.tracer("sparkgate"));
        tracing::info!("traces are exported over OTLP");
        Ok(Some(Self(provider)))
    }

    /// Exports the spans that wait, for as long as `limit` at most.
    pub(super) async fn end(self, limit: Duration) {
        let ended = spawn_blocking(move || self.0.shutdown_with_timeout(limit));
        // The rest is lost, as it is when a process is killed.
        let _ = timeout(limit, ended).await;
    }
}

/// Where spans go.
#[derive(Debug, PartialEq, Eq)]
enum Target {
    /// This URL of the setting.
    Setting(String),
    /// Where the variables of OpenTelemetry say.
    Variables,
}

/// Returns where spans go and the client for it; `None` if traces are off.
fn collector(endpoint: Option<&str>) -> anyhow::Result<Option<(Target, Client)>> {
    let Some(target) = target(endpoint, variable) else { return Ok(None) };
    check(variable)?;
    if let Target::Setting(url) = &target
        && !["http://", "https://"].iter().any(|scheme| url.starts_with(scheme))
    {
        bail!("--otlp-endpoint {url:?} is no URL of a collector: expected one such as http://collector:4318");
    }
    Ok(Some((target, client()?)))
}

/// Returns where spans go; `None` if traces are off.
fn target(endpoint: Option<&str>, variable: impl Fn(&str) -> Option<String>) -> Option<Target> {
    let is_disabled = variable("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"));
    if is_disabled || variable("OTEL_TRACES_EXPORTER").is_some_and(|value| value == "none") {
        return None;
    }
    if let Some(endpoint) = endpoint {
        let base = endpoint.trim_end_matches('/');
        let url = if base.ends_with("/v1/traces") { base.to_owned() } else { format!("{base}/v1/traces") };
        return Some(Target::Setting(url));
    }
    let endpoints = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];
    endpoints.iter().any(|name| variable(name).is_some()).then_some(Target::Variables)
}

/// Checks variables of OpenTelemetry whose values the SDK would replace by others.
fn check(variable: impl Fn(&str) -> Option<String>) -> anyhow::Result<()> {
    for name in ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"] {
        if let Some(protocol) = variable(name).filter(|protocol| protocol != "http/protobuf") {
            bail!(
                "{name}={protocol}: traces are exported as http/protobuf only, which collectors receive on port 4318"
            );
        }
    }
    let Some(sampler) = variable("OTEL_TRACES_SAMPLER") else { return Ok(()) };
    if !SAMPLERS.contains(&sampler.as_str()) {
        bail!("OTEL_TRACES_SAMPLER={sampler}: it is none of {}", SAMPLERS.join(", "));
    }
    let ratio = variable("OTEL_TRACES_SAMPLER_ARG");
    let is_share = |text: &String| text.parse().is_ok_and(|ratio: f64| (0.0..=1.0).contains(&ratio));
    if sampler.ends_with("traceidratio") && !ratio.as_ref().is_some_and(is_share) {
        let given = ratio.unwrap_or_default();
        bail!("OTEL_TRACES_SAMPLER_ARG={given}: {sampler} needs the share of traces to record, from 0 to 1");
    }
    Ok(())
}

/// Returns a variable, unless it is empty.
fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

/// Returns what describes this process in each span. `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` override it.
fn resource() -> Resource {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let ours = Resource::builder_empty().with_attributes([
        KeyValue::new("service.name", "sparkgate"),
        KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
        KeyValue::new("service.instance.id", Uuid::new_v4().to_string()),
        KeyValue::new("host.name", host),
    ]);
    let name = variable("OTEL_SERVICE_NAME").map(|name| KeyValue::new("service.name", name));
    ours.with_detector(Box::new(EnvResourceDetector::new())).with_attributes(name).build()
}

/// Returns the client of the collector. It trusts the machine's certificates, and those of `OTEL_EXPORTER_OTLP_CERTIFICATE`.
fn client() -> anyhow::Result<Client> {
    // Fails if another one is installed already, which serves as well.
    let _ = ring::default_provider().install_default();
    let names = ["OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT"];
    let limit = names.iter().find_map(|name| variable(name)?.parse().ok()).map_or(EXPORT, Duration::from_millis);
    let mut builder = Client::builder().timeout(limit).redirect(Policy::none());
    let files = ["OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE", "OTEL_EXPORTER_OTLP_CERTIFICATE"];
    if let Some(path) = files.iter().find_map(|name| variable(name)) {
        let text = fs::read(&path).with_context(|| format!("reading the certificates {path} of the collector"))?;
        let all =
            Certificate::from_pem_bundle(&text).with_context(|| format!("{path} has no certificates in PEM format"))?;
        builder = builder.tls_certs_merge(all);
    }
    builder.build().context("the client of the collector can't be set up")
}

#[cfg(test)]
mod tests;
