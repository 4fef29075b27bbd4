use super::*;
use sparkgate_requests::submitter::Submitter;

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";

/// Returns the trace context of a request with these headers.
fn trace(tracestate: &str) -> TraceContext {
    TraceContext::from_headers(PARENT, tracestate).unwrap()
}

fn prepared(properties: &[(&str, &str)], variables: &[(&str, &str)]) -> PreparedSubmission {
    let map = |pairs: &[(&str, &str)]| pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
    let request = CreateSubmissionRequest {
        app_resource: "local:///app.jar".to_owned(),
        main_class: "Main".to_owned(),
        spark_properties: map(properties),
        environment_variables: map(variables),
        ..CreateSubmissionRequest::default()
    };
    let version = "4.3.0".parse().unwrap();
    let settings = SparkSettings::new(version, BTreeMap::new(), Submitter::default(), "tester".to_owned());
    PreparedSubmission::new(request, &settings).unwrap()
}

/// Returns the properties that a trace adds.
fn added(mut prepared: PreparedSubmission, trace: &TraceContext) -> Vec<String> {
    let before = prepared.properties().clone();
    prepared.continue_trace(trace);
    let added = prepared.properties().iter().filter(|(key, value)| before.get(*key) != Some(*value));
    let added: Vec<_> = added.map(|(key, value)| format!("{key}={value}")).collect();
    assert!(before.keys().all(|key| !prepared.origins.contains_key(key)));
    assert_eq!(prepared.origins.len(), added.len(), "each is a default");
    added
}

#[test]
fn a_trace_is_handed_to_driver_and_executors_as_defaults() {
    let expected = [
        format!("spark.executorEnv.TRACEPARENT={PARENT}"),
        "spark.executorEnv.TRACESTATE=a=b".to_owned(),
        format!("spark.kubernetes.driverEnv.TRACEPARENT={PARENT}"),
        "spark.kubernetes.driverEnv.TRACESTATE=a=b".to_owned(),
    ];
    assert_eq!(added(prepared(&[], &[]), &trace("a=b")), expected);
    assert_eq!(added(prepared(&[], &[]), &trace("a=${env:X}")).len(), 2, "Spark would replace it");
}

#[test]
fn a_trace_of_the_request_itself_stays() {
    let own = [("spark.kubernetes.driverEnv.TRACEPARENT", "00-1"), ("spark.executorEnv.TRACEPARENT", "00-2")];
    assert_eq!(added(prepared(&own, &[]), &trace("a=b")), [""; 0]);
    let of_driver = added(prepared(&own[1..], &[("TRACEPARENT", "00-3")]), &trace("a=b"));
    assert_eq!(of_driver, [""; 0]);
}

#[test]
fn an_option_of_a_command_line_that_has_no_effect_has_a_warning() {
    let of = |args: &[&str]| {
        let request = CreateSubmissionRequest {
            main_class: "org.apache.spark.deploy.SparkSubmit".to_owned(),
            app_args: args.iter().map(|arg| (*arg).to_owned()).collect(),
            ..CreateSubmissionRequest::default()
        };
        let version = "4.3.0".parse().unwrap();
        let settings = SparkSettings::new(version, BTreeMap::new(), Submitter::default(), "tester".to_owned());
        let prepared = PreparedSubmission::new(request, &settings).unwrap();
        (prepared.ignored().collect::<Vec<_>>(), prepared.options.restart)
    };
    let (ignored, restart) =
        of(&["--queue", "etl", "--class", "A", "--supervise", "--queue=b", "local:///a.jar", "--queue", "c"]);
    assert_eq!(ignored, [r#"--queue: "b" has no effect: the tenant has no queues"#]);
    assert_eq!(restart, Some(Restart::OnFailure), "as --supervise asks for");
    assert_eq!(of(&["--class", "A", "local:///a.jar", "--supervise"]), (Vec::new(), None), "its own");
}
