//! Recognizes a repeated request: a digest of all that it asks for, independent of its notation, beside the idempotency key. It covers
//! secrets that aren't stored, so it has a key: a copy of the table alone doesn't tell whether a guessed secret is right.

use std::{collections::BTreeMap, mem};

use ring::hmac;
use serde::Serialize;
use sha2::{Digest, Sha256};

use sparkgate_common::error::Error;
use sparkgate_requests::options::{
    Retries, SubmissionOptions,
    again::{AfterNodeLoss, MemoryGrowth, Restart},
    webhook::SubmissionWebhook,
};
use sparkgate_spark::CreateSubmissionRequest;

/// The first byte of a digest of the second version. Those of the first have 32 bytes, and this one has 33.
const VERSION: u8 = 2;

/// The digest of a request, in the form that is stored, and in that of earlier releases.
#[derive(Debug, Clone)]
pub(super) struct Fingerprint {
    stored: Vec<u8>,
    first: [u8; 32],
}

/// The options of a request as the second version has them. A field that later releases add is left out while it has no value, so
/// that digests that are stored stay valid.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Options<'a> {
    unique_name: Option<bool>,
    labels: &'a BTreeMap<String, String>,
    start_timeout: Option<u64>,
    run_timeout: Option<u64>,
    kill_grace: Option<u64>,
    retries: [Option<u32>; 2],
    /// Those after there was no room: in the cluster, and in a quota.
    #[serde(skip_serializing_if = "Option::is_none")]
    room_retries: Option<[Option<u32>; 2]>,
    client_id: Option<&'a str>,
    wire: Option<&'static str>,
    spark_version: Option<&'a str>,
    webhooks: Vec<Webhook<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    queue: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    priority: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_growth: Option<(Option<u32>, Option<f64>, Option<i64>)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    restart: Option<&'static str>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    after_node_loss: &'a BTreeMap<String, Option<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expected_duration: Option<u64>,
}

#[derive(Serialize)]
struct Webhook<'a> {
    url: &'a str,
    format: &'static str,
    states: Vec<&'static str>,
}

impl<'a> Options<'a> {
    fn of(options: &'a SubmissionOptions) -> Self {
        // The key itself isn't part of it.
        let SubmissionOptions {
            idempotency_key: _,
            client_id,
            wire,
            unique_name,
            labels,
            start_timeout,
            run_timeout,
            kill_grace,
            retries: Retries { infrastructure, application, capacity, quota },
            memory_growth,
            restart,
            after_node_loss: AfterNodeLoss { node_selector },
            expected_duration,
            spark_version,
            queue,
            priority,
            webhooks,
            // A session is found again by its name: requests for one have no key.
            session: _,
        } = options;
        let MemoryGrowth { retries, factor, max_mib } = *memory_growth;
        let webhook = |SubmissionWebhook { url, format, states, secret: _ }: &'a SubmissionWebhook| Webhook {
            url,
            format: format.as_str(),
            states: states.iter().map(|state| state.as_str()).collect(),
        };
        Self {
            unique_name: *unique_name,
            labels,
            start_timeout: start_timeout.map(|time| time.as_secs()),
            run_timeout: run_timeout.map(|time| time.as_secs()),
            kill_grace: kill_grace.map(|time| time.as_secs()),
            retries: [*infrastructure, *application],
            room_retries: capacity.or(*quota).is_some().then_some([*capacity, *quota]),
            client_id: client_id.as_deref(),
            wire: wire.map(|wire| wire.as_str()),
            spark_version: spark_version.as_deref(),
            webhooks: webhooks.iter().map(webhook).collect(),
            queue: queue.as_deref(),
            priority: *priority,
            memory_growth: (*memory_growth != MemoryGrowth::default()).then_some((retries, factor, max_mib)),
            restart: restart.map(Restart::as_str),
            after_node_loss: node_selector,
            expected_duration: expected_duration.map(|time| time.as_secs()),
        }
    }
}

impl Fingerprint {
    /// Returns that of a request with its options. It excludes the version of the client, which may be upgraded between two tries,
    /// and the time that spark-submit adds to each of them.
    pub(super) fn of(
        request: &mut CreateSubmissionRequest,
        options: &SubmissionOptions,
        key: &[u8; 32],
    ) -> Result<Self, Error> {
        let client = mem::take(&mut request.client_spark_version);
        let time = request.spark_properties.remove_entry("spark.app.submitTime");
        let json = serde_json::to_vec(request);
        request.client_spark_version = client;
        request.spark_properties.extend(time);
        let unwritten = |error: serde_json::Error| Error::Internal("writing the request as JSON".into(), error.into());
        let json = json.map_err(unwritten)?;
        let own = serde_json::to_vec(&Options::of(options)).map_err(unwritten)?;
        let mut mac = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, key));
        // Each is a whole document, so no two requests have the same bytes.
        [&[VERSION], json.as_slice(), own.as_slice()].iter().for_each(|part| mac.update(part));
        let stored = [&[VERSION], mac.sign().as_ref()].concat();
        // Earlier releases wrote the options as they are shown for debugging.
        let shown = SubmissionOptions { idempotency_key: None, ..options.clone() };
        let first = Sha256::new().chain_update(json).chain_update(format!("{shown:?}")).finalize().into();
        Ok(Self { stored, first })
    }

    /// Returns the form that is stored.
    pub(super) fn stored(&self) -> &[u8] {
        &self.stored
    }

    /// Returns whether a stored one is of the same request.
    pub(super) fn is_of(&self, stored: &[u8]) -> bool {
        stored == self.stored || stored == self.first
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use sparkgate_requests::options::webhook::MessageFormat;
    use sparkgate_submission::{State, Wire};

    fn request() -> CreateSubmissionRequest {
        let property = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
        CreateSubmissionRequest {
            client_spark_version: "4.3.0".to_owned(),
            app_resource: "local:///a.jar".to_owned(),
            main_class: "A".to_owned(),
            app_args: vec!["1".to_owned()],
            spark_properties: [("spark.a", "b"), ("spark.app.submitTime", "7")].map(property).into(),
            ..CreateSubmissionRequest::default()
        }
    }

    fn all_options() -> SubmissionOptions {
        let seconds = |count| Some(Duration::from_secs(count));
        SubmissionOptions {
            idempotency_key: Some("k".to_owned()),
            client_id: Some("u-1".to_owned()),
            wire: Some(Wire::Kubeflow),
            unique_name: Some(true),
            labels: [("team".to_owned(), "data".to_owned())].into(),
            start_timeout: seconds(60),
            run_timeout: seconds(3600),
            kill_grace: seconds(5),
            retries: Retries { infrastructure: Some(2), ..Retries::default() },
            memory_growth: MemoryGrowth::default(),
            restart: None,
            after_node_loss: AfterNodeLoss::default(),
            expected_duration: None,
            spark_version: Some("4.1".to_owned()),
            queue: None,
            priority: None,
            webhooks: vec![SubmissionWebhook {
                url: "https://example.org".to_owned(),
                format: MessageFormat::CloudEvents,
                states: vec![State::Finished],
                secret: "whsec".to_owned().into(),
            }],
            session: None,
        }
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn of(options: &SubmissionOptions) -> Fingerprint {
        Fingerprint::of(&mut request(), options, &[7; 32]).unwrap()
    }

    /// What releases have stored. A change here makes a repeated request a different one.
    #[test]
    fn stored_digests_stay_valid() {
        let found = [SubmissionOptions::default(), all_options()].map(|options| {
            let fingerprint = of(&options);
            assert!(fingerprint.is_of(&fingerprint.first) && fingerprint.is_of(fingerprint.stored()));
            [hex(&fingerprint.first), hex(fingerprint.stored())]
        });
        let stored = [
            [
                "f2206dee814f3d8d251b1edc6aac1db0ef893c21a0dc15b7e060a8cb60cf135e",
                "02919c3d9eb9301141677544340fe0fcd4b3a3ffc43cd0bcc068a94e488ad9968f",
            ],
            [
                "6bd5beae7ef06611b6a4395b6d0f2e2c378825b25731aec53fa19f19ed870fa2",
                "02a47ce640378ed909b15963404e53f39fcce4dee382431256a1a79b9a12353442",
            ],
        ];
        assert_eq!(found, stored.map(|each| each.map(str::to_owned)));
    }

    /// The texts are those that the last release before the second version hashed for these requests: the request as JSON, then its
    /// options as they were shown for debugging.
    #[test]
    fn a_digest_that_an_earlier_release_stored_is_recognized() {
        let request = r#"{"clientSparkVersion":"","appResource":"local:///a.jar","mainClass":"A","appArgs":["1"],"sparkProperties":{"spark.a":"b"},"environmentVariables":{}}"#;
        let none = "SubmissionOptions { idempotency_key: None, unique_name: None, labels: {}, start_timeout: None, run_timeout: None, \
                    kill_grace: None, retries: Retries { infrastructure: None, application: None } }";
        let all = "SubmissionOptions { idempotency_key: None, unique_name: Some(true), labels: {\"team\": \"data\"}, \
                   start_timeout: Some(60s), run_timeout: Some(3600s), kill_grace: Some(5s), retries: Retries { infrastructure: Some(2), \
                   application: None }, client_id: \"u-1\", wire: Kubeflow, spark_version: \"4.1\", webhook: \
                   (\"https://example.org\", CloudEvents, [Finished]) }";
        for (shown, options) in [(none, SubmissionOptions::default()), (all, all_options())] {
            let stored = Sha256::new().chain_update(request).chain_update(shown).finalize();
            assert!(of(&options).is_of(&stored), "{shown}");
        }
        let other = Sha256::new().chain_update(request).chain_update(none).finalize();
        assert!(!of(&all_options()).is_of(&other));
    }

    #[test]
    fn a_digest_is_of_one_request_with_one_key_of_the_installation() {
        let fingerprint = of(&all_options());
        let other_key = SubmissionOptions { idempotency_key: Some("other".to_owned()), ..all_options() };
        assert!(of(&other_key).is_of(fingerprint.stored()));
        let mut later = request();
        later.client_spark_version = "4.4.0".to_owned();
        later.spark_properties.insert("spark.app.submitTime".to_owned(), "8".to_owned());
        assert!(Fingerprint::of(&mut later, &all_options(), &[7; 32]).unwrap().is_of(fingerprint.stored()));
        let mut different = request();
        different.app_args.push("2".to_owned());
        assert!(!Fingerprint::of(&mut different, &all_options(), &[7; 32]).unwrap().is_of(fingerprint.stored()));
        let elsewhere = Fingerprint::of(&mut request(), &all_options(), &[8; 32]).unwrap();
        assert!(!elsewhere.is_of(fingerprint.stored()) && elsewhere.is_of(&fingerprint.first));
        assert!(!of(&SubmissionOptions::default()).is_of(fingerprint.stored()) && !fingerprint.is_of(&[]));
    }
}
