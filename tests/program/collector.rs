//! A real OpenTelemetry Collector, which writes the spans that it receives to a file.

use std::{
    collections::BTreeMap,
    fs,
    net::{SocketAddr, TcpStream},
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use serde_json::Value;
use sparkgate_testing::{gateway::until, process::free_address};
use tempfile::TempDir;

pub(crate) struct Collector {
    address: SocketAddr,
    child: Child,
    dir: TempDir,
}

/// A span as the collector received it.
#[derive(Debug, Clone)]
pub(crate) struct Span {
    pub(crate) trace: String,
    pub(crate) id: String,
    pub(crate) parent: String,
    pub(crate) name: String,
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) attributes: BTreeMap<String, String>,
    /// The names of its events.
    pub(crate) events: Vec<String>,
    pub(crate) links: usize,
    /// The process that recorded it.
    pub(crate) instance: String,
    pub(crate) is_error: bool,
}

impl Collector {
    pub(crate) fn start() -> Self {
        let program = std::env::var("SPARKGATE_COLLECTOR").expect("SPARKGATE_COLLECTOR is not set: run `make test`");
        let (dir, address) = (TempDir::with_prefix("sparkgate-collector-").unwrap(), free_address());
        let config = format!(
            "receivers: {{otlp: {{protocols: {{http: {{endpoint: '{address}'}}}}}}}}\n\
             exporters: {{file: {{path: '{}', flush_interval: 100ms}}}}\n\
             service:\n  pipelines: {{traces: {{receivers: [otlp], exporters: [file]}}}}\n  \
             telemetry: {{metrics: {{level: none}}, logs: {{level: error}}}}\n",
            dir.path().join("spans").display()
        );
        let file = dir.path().join("config.yaml");
        fs::write(&file, config).unwrap();
        let mut command = Command::new(program);
        command.arg("--config").arg(file).stdin(Stdio::null());
        let mut collector = Self { address, child: command.spawn().unwrap(), dir };
        until("the collector is ready", || {
            assert!(collector.child.try_wait().unwrap().is_none(), "the collector ended");
            TcpStream::connect(address).is_ok()
        });
        collector
    }

    /// Returns the URL for exporters.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns all that it has received, as text.
    pub(crate) fn text(&self) -> String {
        fs::read_to_string(self.file()).unwrap_or_default()
    }

    fn file(&self) -> PathBuf {
        self.dir.path().join("spans")
    }

    /// Returns the spans that it has received.
    pub(crate) fn spans(&self) -> Vec<Span> {
        // The last line may be incomplete.
        let batches = self.text().lines().filter_map(|line| serde_json::from_str(line).ok()).collect::<Vec<Value>>();
        let mut spans = Vec::new();
        for resource in batches.iter().flat_map(|batch| list(&batch["resourceSpans"])) {
            let instance = attributes(&resource["resource"]).remove("service.instance.id").unwrap_or_default();
            for span in list(&resource["scopeSpans"]).iter().flat_map(|scope| list(&scope["spans"])) {
                spans.push(Span::read(span, &instance));
            }
        }
        spans
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Span {
    fn read(span: &Value, instance: &str) -> Self {
        let time = |name: &str| span[name].as_str().and_then(|text| text.parse().ok()).unwrap_or_default();
        Self {
            trace: text(&span["traceId"]),
            id: text(&span["spanId"]),
            parent: text(&span["parentSpanId"]),
            name: text(&span["name"]),
            from: time("startTimeUnixNano"),
            to: time("endTimeUnixNano"),
            attributes: attributes(span),
            events: list(&span["events"]).iter().map(|event| text(&event["name"])).collect(),
            links: list(&span["links"]).len(),
            instance: instance.to_owned(),
            is_error: span["status"]["code"] == 2,
        }
    }

    /// Returns an attribute, or an empty text.
    pub(crate) fn get(&self, name: &str) -> &str {
        self.attributes.get(name).map_or("", String::as_str)
    }
}

fn attributes(of: &Value) -> BTreeMap<String, String> {
    let one = |attribute: &Value| {
        let value = attribute["value"].as_object().and_then(|value| value.values().next().cloned()).unwrap_or_default();
        (text(&attribute["key"]), text(&value))
    };
    list(&of["attributes"]).iter().map(one).collect()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
