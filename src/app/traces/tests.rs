use super::*;

fn of<'a>(all: &'a [(&'a str, &'a str)]) -> impl Fn(&str) -> Option<String> + 'a {
    move |name| all.iter().find(|(given, _)| *given == name).map(|(_, value)| (*value).to_owned())
}

#[test]
fn traces_are_off_without_an_endpoint() {
    let setting = |url: &str| Some(Target::Setting(url.to_owned()));
    assert_eq!(target(None, of(&[])), None);
    assert_eq!(target(None, of(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://a:4318")])), Some(Target::Variables));
    assert_eq!(target(Some("http://a:4318/"), of(&[])), setting("http://a:4318/v1/traces"));
    assert_eq!(target(Some("http://a/x/v1/traces"), of(&[])), setting("http://a/x/v1/traces"));
    for off in [("OTEL_SDK_DISABLED", "TRUE"), ("OTEL_TRACES_EXPORTER", "none")] {
        assert_eq!(target(Some("http://a:4318"), of(&[off])), None, "{off:?}");
    }
}

#[test]
fn a_variable_that_cannot_be_meant_is_refused() {
    let refused = |all: &[(&str, &str)]| check(of(all)).map_err(|error| error.to_string()).err();
    assert_eq!(
        refused(&[("OTEL_TRACES_SAMPLER", "always_on"), ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")]),
        None
    );
    assert_eq!(refused(&[("OTEL_TRACES_SAMPLER", "traceidratio"), ("OTEL_TRACES_SAMPLER_ARG", "0.1")]), None);
    for (wrong, part) in [
        (&[("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")][..], "http/protobuf only"),
        (&[("OTEL_TRACES_SAMPLER", "alwayson")], "none of always_on, always_off"),
        (&[("OTEL_TRACES_SAMPLER", "parentbased_traceidratio")], "from 0 to 1"),
        (&[("OTEL_TRACES_SAMPLER", "traceidratio"), ("OTEL_TRACES_SAMPLER_ARG", "10")], "OTEL_TRACES_SAMPLER_ARG=10"),
    ] {
        let error = refused(wrong).unwrap_or_default();
        assert!(error.contains(part), "{wrong:?}: {error}");
    }
}
