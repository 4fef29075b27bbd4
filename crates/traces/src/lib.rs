//! Traces: the spans that the layers record, and the trace context that a submission keeps. The only crate that uses the API of
//! OpenTelemetry; the command `serve` sets up the export.
//!
//! A span is recorded only below another one. The server span of a request, and work for a submission that has a trace context,
//! are where recording begins, so that the gateway's own loops record nothing. While traces are off nothing is allocated.

pub mod attribute;
mod context;
mod span;

use std::sync::OnceLock;

use opentelemetry_sdk::trace::SdkTracer;

pub use context::TraceContext;
pub use opentelemetry::{KeyValue, Value, trace::SpanKind};
pub use span::{InSpan, Moment, Span};

/// Creates the spans of this process. Without one, traces are off.
static TRACER: OnceLock<SdkTracer> = OnceLock::new();

/// Switches traces on until the process ends. A second call changes nothing.
pub fn switch_on(tracer: SdkTracer) {
    let _ = TRACER.set(tracer);
}

/// Returns whether traces are on.
pub fn are_on() -> bool {
    TRACER.get().is_some()
}
