use std::{
    sync::{LazyLock, Mutex},
    time::Duration,
};

use futures::executor::block_on;
use opentelemetry::trace::TracerProvider;
use opentelemetry_sdk::{
    error::OTelSdkResult,
    trace::{SdkTracerProvider, Span as SdkSpan, SpanData, SpanProcessor},
};

use super::*;
use crate::{TraceContext, switch_on};

static ENDED: Mutex<Vec<SpanData>> = Mutex::new(Vec::new());

#[derive(Debug)]
struct Kept;

impl SpanProcessor for Kept {
    fn on_start(&self, _: &mut SdkSpan, _: &Context) {}

    fn on_end(&self, span: SpanData) {
        ENDED.lock().unwrap().push(span);
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }
}

static ON: LazyLock<SdkTracerProvider> = LazyLock::new(|| {
    let provider = SdkTracerProvider::builder().with_span_processor(Kept).build();
    switch_on(provider.tracer("test"));
    provider
});

const NO_ATTRIBUTES: fn() -> [KeyValue; 0] = || [];

/// Returns the ended spans of a trace, by name.
fn ended(trace: &str) -> Vec<SpanData> {
    let mut all = ENDED.lock().unwrap().clone();
    all.retain(|span| span.span_context.trace_id().to_string() == trace);
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

fn child(name: &'static str) -> Span {
    Span::child(name, SpanKind::Internal, NO_ATTRIBUTES)
}

#[test]
fn spans_are_below_the_one_in_which_their_future_runs() {
    LazyLock::force(&ON);
    let trace = "0af7651916cd43dd8448eb211c80319c";
    let header = format!("00-{trace}-b7ad6b7169203331-01");
    let request = Span::for_request("request", Some(&header), "vendor=a,other=b", NO_ATTRIBUTES);
    let kept = block_on(request.enter(async {
        let inner = child("inner");
        inner.enter(async { drop(child("leaf")) }).await;
        TraceContext::current().unwrap()
    }));
    assert!(!child("outside").is_recorded(), "nothing is recorded outside of a span");
    request.end();
    let launch = Span::for_submission("launch", SpanKind::Consumer, Some(&kept.to_string()), NO_ATTRIBUTES);
    launch.fail("Refused");
    drop(launch);
    let spans = ended(trace);
    let [inner, launch, leaf, request] = &spans[..] else { panic!("{spans:?}") };
    assert_eq!(request.parent_span_id.to_string(), "b7ad6b7169203331");
    assert_eq!(inner.parent_span_id, request.span_context.span_id());
    assert_eq!(leaf.parent_span_id, inner.span_context.span_id());
    assert_eq!(launch.parent_span_id, request.span_context.span_id());
    assert_eq!((launch.status.clone(), launch.attributes[0].value.as_str().as_ref()), (Status::error(""), "Refused"));
    let parent = format!("00-{trace}-{}-01", request.span_context.span_id());
    let environment: Vec<_> = kept.environment().collect();
    assert_eq!(environment, [("TRACEPARENT", parent.as_str()), ("TRACESTATE", "vendor=a,other=b")]);
}

#[test]
fn a_trace_that_its_caller_does_not_record_is_kept_and_not_recorded() {
    LazyLock::force(&ON);
    let header = "00-11111111111111111111111111111111-b7ad6b7169203331-00";
    let request = Span::for_request("request", Some(header), "", NO_ATTRIBUTES);
    let (inner, kept) = block_on(request.enter(async { (child("inner"), TraceContext::current()) }));
    assert!(!request.is_recorded() && !inner.is_recorded());
    assert_eq!(kept.unwrap().to_string(), header);
    assert!(!Span::for_submission("launch", SpanKind::Consumer, Some(header), NO_ATTRIBUTES).is_recorded());
    drop((request, inner));
    assert_eq!(ended("11111111111111111111111111111111"), []);
}

#[test]
fn a_request_without_a_valid_trace_begins_one() {
    LazyLock::force(&ON);
    for header in [None, Some("00-zz"), Some("00-00000000000000000000000000000000-b7ad6b7169203331-01")] {
        let request = Span::for_request("request", header, "", NO_ATTRIBUTES);
        let kept = block_on(request.enter(async { TraceContext::current() })).unwrap().to_string();
        assert!(request.is_recorded() && kept.starts_with("00-") && kept.ends_with("-01"), "{kept}");
    }
    assert_eq!(TraceContext::current(), None);
}

#[test]
fn a_span_of_the_past_has_the_times_that_it_is_given() {
    LazyLock::force(&ON);
    let trace = "22222222222222222222222222222222";
    let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    let whole = Span::for_past("submission", &format!("00-{trace}-b7ad6b7169203331-01"), at(1), NO_ATTRIBUTES);
    whole.add([Moment { name: "RUNNING", at: at(3) }]);
    whole.past_child("attempt", at(2), NO_ATTRIBUTES).end_at(at(4));
    whole.end_at(at(5));
    let spans = ended(trace);
    let [attempt, whole] = &spans[..] else { panic!("{spans:?}") };
    assert_eq!((whole.start_time, whole.end_time), (at(1), at(5)));
    assert_eq!((attempt.start_time, attempt.end_time), (at(2), at(4)));
    assert_eq!(attempt.parent_span_id, whole.span_context.span_id());
    assert_eq!((whole.events.events[0].name.as_ref(), whole.events.events[0].timestamp), ("RUNNING", at(3)));
}
