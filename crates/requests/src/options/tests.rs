use std::{collections::BTreeMap, time::Duration};

use super::{Caps, SubmissionOptions};

fn take(properties: &[(&str, &str)]) -> Result<SubmissionOptions, String> {
    let own = |(key, value): &(&str, &str)| (format!("spark.sparkgate.{key}"), (*value).to_owned());
    let mut properties: BTreeMap<String, String> = properties.iter().map(own).collect();
    properties.insert("spark.app.name".to_owned(), "x".to_owned());
    let options = SubmissionOptions::take(&mut properties).map_err(|refusal| refusal.to_string())?;
    assert_eq!(properties.len(), 1, "ours never reach a driver: {properties:?}");
    Ok(options)
}

#[test]
fn options_are_read_from_properties() {
    let options = take(&[
        ("idempotencyKey", "\"a b\""),
        ("uniqueName", "TRUE"),
        ("label.team", "data"),
        ("label.example.org/cost-centre", "7_1.x"),
        ("startTimeout", "10m"),
        ("runTimeout", "90"),
        ("killGrace", "0s"),
        ("maxRetries.infrastructure", "2"),
        ("sparkVersion", "4.1"),
    ])
    .unwrap();
    assert_eq!(options.spark_version.as_deref(), Some("4.1"));
    assert_eq!(options.idempotency_key.as_deref(), Some("a b"), "quotes are the header's syntax");
    assert_eq!((options.unique_name, options.labels.len()), (Some(true), 2));
    let seconds = [options.start_timeout, options.run_timeout, options.kill_grace].map(|time| time.unwrap().as_secs());
    assert_eq!(seconds, [600, 90, 0]);
    assert_eq!((options.retries.infrastructure, options.retries.application), (Some(2), None));
}

#[test]
fn an_invalid_option_is_refused_by_name() {
    for (key, value, says) in [
        ("idempotency_key", "x", "has no such property"),
        ("idempotencyKey", "é", "printable ASCII"),
        ("idempotencyKey", "\"\"", "printable ASCII"),
        ("uniqueName", "yes", "neither true nor false"),
        ("label.-x", "y", "not the key of a label"),
        ("label.A.B/x", "y", "not the key of a label"),
        ("label.x", "a b", "not the value of a label"),
        ("startTimeout", "1.5h", "not a time"),
        ("runTimeout", "99999999999999999999d", "not a time"),
        ("maxRetries.application", "101", "allows 100"),
    ] {
        let refusal = take(&[(key, value)]).unwrap_err();
        assert!(refusal.contains(key) && refusal.contains(says), "{refusal}");
    }
}

#[test]
fn options_above_the_operators_limits_are_refused() {
    let hour = Duration::from_secs(3600);
    let caps = Caps { run_timeout: Some(hour), retries: Some(1), ..Caps::default() };
    let asked = |run, retries: &str| take(&[("runTimeout", run), ("maxRetries.application", retries)]).unwrap();
    assert_eq!(asked("1h", "1").check(&caps), Ok(()));
    assert!(asked("2h", "1").check(&caps).unwrap_err().to_string().contains("more than the 3600"));
    assert!(asked("1h", "2").check(&caps).unwrap_err().to_string().contains("allows 1"));
    assert!(asked("0s", "0").check(&caps).is_err(), "a timeout of zero is refused");
    assert_eq!(SubmissionOptions::default().capped(&caps).run_timeout, Some(hour), "the cap is the default");
}

#[test]
fn a_lack_of_room_has_budgets_that_permit_another_attempt() {
    let options = take(&[("maxRetries.capacity", "3"), ("maxRetries.quota", "2")]).unwrap();
    assert_eq!((options.retries.capacity, options.retries.quota), (Some(3), Some(2)));
    assert!(options.may_repeat());
    assert!(!take(&[("maxRetries.quota", "0")]).unwrap().may_repeat());
    assert_eq!((options.kept().max_retries_capacity, options.kept().max_retries_quota), (3, 2));
    let caps = Caps { retries: Some(2), ..Caps::default() };
    let refused = options.check(&caps).unwrap_err().to_string();
    assert!(refused.contains("maxRetries.capacity") && refused.contains("allows 2"), "{refused}");
    assert!(take(&[("maxRetries.quota", "-1")]).unwrap_err().contains("not a number of retries"));
    let shown = format!("{:?}", options.retries);
    assert_eq!(shown, "Retries { infrastructure: None, application: None, capacity: 3, quota: 2 }");
}

#[test]
fn options_of_the_request_override_defaults() {
    let own = take(&[("label.a", "1"), ("startTimeout", "1m")]).unwrap();
    let others = take(&[("label.a", "2"), ("label.b", "2"), ("startTimeout", "2m"), ("runTimeout", "2m")]).unwrap();
    let both = own.or(others);
    assert_eq!(both.labels.values().collect::<Vec<_>>(), ["1", "2"]);
    assert_eq!((both.start_timeout.unwrap().as_secs(), both.run_timeout.unwrap().as_secs()), (60, 120));
}

#[test]
fn the_text_of_options_is_that_of_earlier_releases() {
    let options = SubmissionOptions::default();
    let text = "SubmissionOptions { idempotency_key: None, unique_name: None, labels: {}, start_timeout: None, \
                run_timeout: None, kill_grace: None, retries: Retries { infrastructure: None, application: None } }";
    assert_eq!(format!("{options:?}"), text, "the hash of a request must stay the same");
    let options = SubmissionOptions { spark_version: Some("4.1".to_owned()), ..options };
    assert!(format!("{options:?}").ends_with(", spark_version: \"4.1\" }"), "{options:?}");
}
