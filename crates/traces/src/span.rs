//! A span, and the futures that run in it.

use std::{
    borrow::Cow,
    future::Future,
    pin::Pin,
    task::{self, Poll},
    time::SystemTime,
};

use opentelemetry::{
    Context, KeyValue, Value,
    trace::{SpanBuilder, SpanKind, Status, TraceContextExt, Tracer},
};
use pin_project_lite::pin_project;

use crate::{
    TRACER,
    attribute::ERROR_TYPE,
    context::{from_headers, from_row},
};

/// A span that is recorded, or none. It ends when the last clone is dropped, unless it was ended before. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Span(Option<Context>);

/// A named moment of a span.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moment {
    pub name: &'static str,
    pub at: SystemTime,
}

impl Span {
    /// Returns the span in which the current future runs.
    pub fn current() -> Self {
        Self(Context::map_current(|current| current.has_active_span().then(|| current.clone())))
    }

    /// Starts the span of a request, below the span that its headers name, if they do.
    pub fn for_request<A: IntoIterator<Item = KeyValue>>(
        name: impl Into<Cow<'static, str>>,
        traceparent: Option<&str>,
        tracestate: &str,
        attributes: impl FnOnce() -> A,
    ) -> Self {
        let caller = traceparent.map(|traceparent| from_headers(traceparent, tracestate)).unwrap_or_default();
        let span = Self::start(name.into(), SpanKind::Server, &caller, None, attributes);
        // A trace that its caller doesn't record is passed on as it came.
        if span.is_recorded() || !caller.has_active_span() { span } else { Self(Some(caller)) }
    }

    /// Starts a span below the current one, if that is recorded.
    pub fn child<A: IntoIterator<Item = KeyValue>>(
        name: impl Into<Cow<'static, str>>,
        kind: SpanKind,
        attributes: impl FnOnce() -> A,
    ) -> Self {
        let current = Context::map_current(|current| is_recorded(current).then(|| current.clone()));
        current.map(|current| Self::start(name.into(), kind, &current, None, attributes)).unwrap_or_default()
    }

    /// Starts a span in the trace that a submission keeps, if that is recorded.
    pub fn for_submission<A: IntoIterator<Item = KeyValue>>(
        name: &'static str,
        kind: SpanKind,
        trace: Option<&str>,
        attributes: impl FnOnce() -> A,
    ) -> Self {
        Self::for_submission_since(name, kind, trace, None, attributes)
    }

    /// Records a span of the past in the trace that a submission keeps. The caller ends it.
    pub fn for_past<A: IntoIterator<Item = KeyValue>>(
        name: &'static str,
        trace: &str,
        from: SystemTime,
        attributes: impl FnOnce() -> A,
    ) -> Self {
        Self::for_submission_since(name, SpanKind::Internal, Some(trace), Some(from), attributes)
    }

    /// Records a span of the past below this one. The caller ends it.
    pub fn past_child<A: IntoIterator<Item = KeyValue>>(
        &self,
        name: &'static str,
        from: SystemTime,
        attributes: impl FnOnce() -> A,
    ) -> Self {
        let parent = self.0.as_ref().filter(|parent| is_recorded(parent));
        let start = |parent| Self::start(name.into(), SpanKind::Internal, parent, Some(from), attributes);
        parent.map(start).unwrap_or_default()
    }

    fn for_submission_since<A: IntoIterator<Item = KeyValue>>(
        name: &'static str,
        kind: SpanKind,
        trace: Option<&str>,
        from: Option<SystemTime>,
        attributes: impl FnOnce() -> A,
    ) -> Self {
        let Some(trace) = trace.filter(|_| crate::are_on()) else { return Self(None) };
        let cause = from_row(trace);
        if is_recorded(&cause) { Self::start(name.into(), kind, &cause, from, attributes) } else { Self(None) }
    }

    fn start<A: IntoIterator<Item = KeyValue>>(
        name: Cow<'static, str>,
        kind: SpanKind,
        parent: &Context,
        from: Option<SystemTime>,
        attributes: impl FnOnce() -> A,
    ) -> Self {
        let Some(tracer) = TRACER.get() else { return Self(None) };
        let mut builder = SpanBuilder::from_name(name).with_kind(kind).with_attributes(attributes());
        builder.start_time = from;
        Self(Some(parent.with_span(tracer.build_with_context(builder, parent))))
    }

    /// Returns whether it is exported.
    pub fn is_recorded(&self) -> bool {
        self.0.as_ref().is_some_and(is_recorded)
    }

    /// Sets an attribute.
    pub fn set(&self, name: &'static str, value: impl Into<Value>) {
        if let Some(context) = &self.0 {
            context.span().set_attribute(KeyValue::new(name, value));
        }
    }

    /// Sets its name.
    pub fn rename(&self, name: impl Into<Cow<'static, str>>) {
        if let Some(context) = &self.0 {
            context.span().update_name(name);
        }
    }

    /// Marks it as failed. Takes only the kind of the error: messages may quote what users sent.
    pub fn fail(&self, kind: impl Into<Value>) {
        if let Some(context) = &self.0 {
            let span = context.span();
            span.set_attribute(KeyValue::new(ERROR_TYPE, kind));
            span.set_status(Status::error(""));
        }
    }

    /// Links it to the trace that a submission keeps.
    pub fn link(&self, trace: &str) {
        if let Some(context) = self.0.as_ref().filter(|context| is_recorded(context)) {
            let other = from_row(trace);
            if other.has_active_span() {
                context.span().add_link(other.span().span_context().clone(), Vec::new());
            }
        }
    }

    /// Adds moments of the past.
    pub fn add(&self, moments: impl IntoIterator<Item = Moment>) {
        if let Some(context) = &self.0 {
            for Moment { name, at } in moments {
                context.span().add_event_with_timestamp(name, at, Vec::new());
            }
        }
    }

    /// Ends it now. It can still be the parent of others.
    pub fn end(&self) {
        if let Some(context) = &self.0 {
            context.span().end();
        }
    }

    /// Ends it at a time of the past.
    pub fn end_at(&self, at: SystemTime) {
        if let Some(context) = &self.0 {
            context.span().end_with_timestamp(at);
        }
    }

    /// Runs a future in this span: spans that the future starts are below it.
    pub fn enter<F: Future>(&self, future: F) -> InSpan<F> {
        InSpan { future, span: self.0.clone() }
    }
}

fn is_recorded(context: &Context) -> bool {
    context.has_active_span() && context.span().span_context().is_sampled()
}

pin_project! {
    /// A future that runs in a span, or in that of its caller if there is none.
    #[must_use = "futures do nothing unless polled"]
    pub struct InSpan<F> {
        #[pin]
        future: F,
        span: Option<Context>,
    }
}

impl<F: Future> Future for InSpan<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let _current = this.span.clone().map(Context::attach);
        this.future.poll(cx)
    }
}

#[cfg(test)]
mod tests;
