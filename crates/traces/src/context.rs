//! The trace context of W3C as text: how a request brings it, a row keeps it, and a driver gets it.

use std::fmt;

use opentelemetry::{
    Context,
    propagation::{Extractor, Injector, TextMapPropagator},
    trace::TraceContextExt,
};
use opentelemetry_sdk::propagation::TraceContextPropagator;

const TRACEPARENT: &str = "traceparent";
const TRACESTATE: &str = "tracestate";

/// The trace that work belongs to, and the span that caused it. Displayed as it is stored: `traceparent`, and after a space
/// `tracestate`, unless that is empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceContext {
    traceparent: String,
    tracestate: String,
}

impl TraceContext {
    /// Returns the context of the current span, to be kept: if its trace is recorded, or if a caller began it. A trace that this
    /// process began and doesn't record has no span.
    pub fn current() -> Option<Self> {
        Context::map_current(|current| {
            let span = current.span();
            let context = span.span_context();
            let is_kept = context.is_valid() && (context.is_sampled() || context.is_remote());
            is_kept.then(|| Self::of(current))
        })
    }

    /// Returns the context that the headers of a request stand for, if they are valid.
    pub fn from_headers(traceparent: &str, tracestate: &str) -> Option<Self> {
        let context = from_headers(traceparent, tracestate);
        context.has_active_span().then(|| Self::of(&context))
    }

    /// Returns the variables that hand it to a process, by OpenTelemetry's convention.
    pub fn environment(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let state = (!self.tracestate.is_empty()).then_some(("TRACESTATE", self.tracestate.as_str()));
        [("TRACEPARENT", self.traceparent.as_str())].into_iter().chain(state)
    }

    fn of(context: &Context) -> Self {
        let mut carrier = Carrier::default();
        TraceContextPropagator::new().inject_context(context, &mut carrier);
        Self { traceparent: carrier.traceparent, tracestate: carrier.tracestate }
    }
}

impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { traceparent, tracestate } = self;
        let space = if tracestate.is_empty() { "" } else { " " };
        write!(f, "{traceparent}{space}{tracestate}")
    }
}

/// Returns the context that the headers `traceparent` and `tracestate` of a request stand for, without a span if they are invalid.
pub(crate) fn from_headers(traceparent: &str, tracestate: &str) -> Context {
    let carrier = Carrier { traceparent: traceparent.to_owned(), tracestate: tracestate.to_owned() };
    TraceContextPropagator::new().extract_with_context(&Context::new(), &carrier)
}

/// Returns the context that a row keeps.
pub(crate) fn from_row(text: &str) -> Context {
    let (traceparent, tracestate) = text.split_once(' ').unwrap_or((text, ""));
    from_headers(traceparent, tracestate)
}

#[derive(Default)]
struct Carrier {
    traceparent: String,
    tracestate: String,
}

impl Extractor for Carrier {
    fn get(&self, key: &str) -> Option<&str> {
        match key {
            TRACEPARENT => Some(&self.traceparent),
            TRACESTATE => Some(&self.tracestate).filter(|state| !state.is_empty()).map(String::as_str),
            _ => None,
        }
    }

    fn keys(&self) -> Vec<&str> {
        vec![TRACEPARENT, TRACESTATE]
    }
}

impl Injector for Carrier {
    fn set(&mut self, key: &str, value: String) {
        match key {
            TRACEPARENT => self.traceparent = value,
            TRACESTATE => self.tracestate = value,
            _ => {}
        }
    }
}
