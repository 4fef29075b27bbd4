//! The metrics of this process, in the conventions of Prometheus. `catalogue.rs` is the list: every name, its labels and its
//! meaning. Each layer counts where something happens, in [`metrics`]; what is a state and not an event is set right before a
//! scrape.
//!
//! The instruments belong to the process, as a log does: they are atomic numbers, so counting allocates nothing, whether they are
//! ever read or not.

mod catalogue;
mod instruments;
mod process;

use std::{
    collections::HashSet,
    fmt,
    sync::{Arc, LazyLock, PoisonError, RwLock},
    time::{SystemTime, UNIX_EPOCH},
};

use instruments::Registrar;
use prometheus_client::{encoding::text::encode, registry::Registry};

pub use catalogue::Metrics;
pub use instruments::{Counter, Counters, Description, Gauge, Gauges, Histogram, Histograms, Kind, Value};

/// The media type of [`exposition`].
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

static ALL: LazyLock<All> = LazyLock::new(All::new);

struct All {
    registry: Registry,
    descriptions: Vec<Description>,
    metrics: Metrics,
    /// Texts that are label values, so that a repeated one isn't allocated again.
    texts: RwLock<HashSet<Arc<str>>>,
}

impl All {
    fn new() -> Self {
        let mut registrar = Registrar::default();
        let metrics = Metrics::register(&mut registrar);
        let Registrar { registry, descriptions } = registrar;
        Self { registry, descriptions, metrics, texts: RwLock::default() }
    }
}

/// Returns the instruments of this process.
pub fn metrics() -> &'static Metrics {
    &ALL.metrics
}

/// Returns what is known of every metric, in the order of the catalogue.
pub fn descriptions() -> &'static [Description] {
    &ALL.descriptions
}

/// Returns a label value for a text from a bounded set, such as the tenants of the access file.
pub fn text(text: &str) -> Value {
    let texts = ALL.texts.read().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = texts.get(text) {
        return Value::Shared(known.clone());
    }
    drop(texts);
    let new: Arc<str> = text.into();
    ALL.texts.write().unwrap_or_else(PoisonError::into_inner).insert(new.clone());
    Value::Shared(new)
}

/// Returns the values of all metrics as text, after it has read those of the process.
///
/// # Errors
/// Never: a string takes any text.
pub fn exposition() -> Result<String, fmt::Error> {
    process::read(&ALL.metrics);
    let mut text = String::new();
    encode(&mut text, &ALL.registry)?;
    Ok(text)
}

/// Records the result of reading a file of the operator's.
pub fn file_read(file: &'static str, is_usable: bool) {
    let metrics = metrics();
    metrics.file_reload_ok.with([file]).set(f64::from(u8::from(is_usable)));
    if is_usable {
        metrics.file_reloaded.with([file]).set(now());
    }
}

/// Returns the seconds since 1970.
fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_the_conventions_of_prometheus() {
        let mut names = HashSet::new();
        for Description { name, kind, help, labels, .. } in descriptions() {
            assert!(names.insert(name), "{name} is there twice");
            assert!(name.starts_with("sparkgate_") || name.starts_with("process_"), "{name}");
            assert_eq!(name.ends_with("_total"), *kind == Kind::Counter, "{name}");
            assert!(
                !["_ms", "_milliseconds", "_minutes", "_count", "_sum"].iter().any(|end| name.ends_with(end)),
                "{name}"
            );
            assert!(help.ends_with('.') && !help.contains("  "), "{name}: {help}");
            assert!(
                labels.iter().all(|label| label.bytes().all(|byte| byte == b'_' || byte.is_ascii_lowercase())),
                "{name}"
            );
            // Prometheus' own discovery sets labels of these names.
            for taken in ["namespace", "pod", "container", "endpoint", "service", "instance", "job"] {
                assert!(!labels.contains(&taken), "{name}: {taken} would be renamed by the scraper");
            }
            for forbidden in ["user", "owner", "principal", "id", "submission", "path"] {
                assert!(!labels.contains(&forbidden), "{name} has a label without a bound: {forbidden}");
            }
        }
    }

    #[test]
    fn a_repeated_text_is_the_same_value() {
        let (Value::Shared(one), Value::Shared(other)) = (text("analytics"), text("analytics")) else { panic!() };
        assert!(Arc::ptr_eq(&one, &other));
        metrics().accepted.with([Value::Text("analytics")]).inc();
        metrics().accepted.with([text("analytics")]).inc();
        assert_eq!(metrics().accepted.with(["analytics"]).get(), 2, "how a value is held doesn't matter");
    }

    #[test]
    fn the_exposition_has_the_process_and_ends_as_openmetrics_asks() {
        metrics().launch_tries.with(["launch", "done"]).inc();
        let text = exposition().unwrap();
        assert!(text.contains("sparkgate_launch_tries_total{task=\"launch\",result=\"done\"} 1\n"), "{text}");
        assert!(text.contains("# TYPE process_resident_memory_bytes gauge\n"), "{text}");
        let value = |name: &str| -> f64 {
            let line =
                text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_else(|| panic!("{name}: {text}"));
            line.trim().parse().unwrap()
        };
        assert!(value("process_resident_memory_bytes ") > 1e6 && value("process_open_fds ") > 2.0, "{text}");
        assert!((now() - value("process_start_time_seconds ")) < 3600.0 && value("process_threads ") >= 1.0, "{text}");
        assert!(text.ends_with("# EOF\n"), "{text}");
    }
}
