//! Options of a request that spark-submit doesn't have. `submit` and `rerun` share them.

use std::collections::BTreeMap;

use clap::Args;
use http::HeaderValue;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::label;
use crate::{error::Error, span::Span};

#[derive(Debug, Args)]
pub(super) struct RequestOptions {
    /// The Spark version of the driver, such as 4.1.4, or a line, 4.1 [default: that of the tenant or the gateway].
    #[arg(long, value_name = "VERSION")]
    spark_version: Option<String>,
    /// A label to filter submissions by; may be repeated.
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = label)]
    labels: Vec<(String, String)>,
    /// Your own id of the submission, unique in the tenant: `list --client-id` finds it.
    #[arg(long, value_name = "ID")]
    client_id: Option<String>,
    /// The namespace of the driver: `spark.kubernetes.namespace`.
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,
    /// The image of driver and executors: `spark.kubernetes.container.image`.
    #[arg(long, value_name = "IMAGE")]
    image: Option<String>,
    /// An environment variable of the driver; may be repeated.
    #[arg(long = "env", value_name = "NAME=VALUE", value_parser = label)]
    variables: Vec<(String, String)>,
    /// Refuse the submission while another one with the same name runs or waits in the same namespace. Only submissions with
    /// --unique-name are compared.
    #[arg(long)]
    unique_name: bool,
    /// A key that makes it safe to repeat the command: the same key and command line create one submission [default: a new
    /// key].
    #[arg(long, value_name = "KEY", value_parser = header_value)]
    idempotency_key: Option<HeaderValue>,
    /// Kill the submission if it isn't running after this time, such as 10m.
    #[arg(long, value_name = "TIME")]
    start_timeout: Option<Span>,
    /// Kill the submission if it is still running after this time, such as 2h.
    #[arg(long, value_name = "TIME")]
    run_timeout: Option<Span>,
    /// Time between SIGTERM and SIGKILL when the driver is killed, such as 30s.
    #[arg(long, value_name = "TIME")]
    kill_grace: Option<Span>,
    /// The priority of the submission among those of its tenant in its queue.
    #[arg(long, value_name = "N")]
    priority: Option<i32>,
    /// Maximum number of retries after failures that the application didn't cause, such as a lost node or an eviction.
    #[arg(long, value_name = "N")]
    retries: Option<u32>,
    /// Maximum number of retries after failures of the application, such as an exit code other than 0 or too little memory.
    #[arg(long, value_name = "N")]
    application_retries: Option<u32>,
    /// Maximum number of retries after the cluster had no room for the driver within the start timeout.
    #[arg(long, value_name = "N")]
    capacity_retries: Option<u32>,
    /// Maximum number of retries after a quota had no room for the driver.
    #[arg(long, value_name = "N")]
    quota_retries: Option<u32>,
}

impl RequestOptions {
    /// Returns the fields of the options that are given, as a merge patch of a request.
    pub(super) fn patch(&self) -> Value {
        let mut patch = Map::new();
        let mut set = |name: &str, value: Option<Value>| patch.extend(value.map(|value| (name.to_owned(), value)));
        let properties =
            [("spark.kubernetes.namespace", &self.namespace), ("spark.kubernetes.container.image", &self.image)];
        let properties: BTreeMap<_, _> =
            properties.into_iter().filter_map(|(key, value)| Some((key, value.as_ref()?))).collect();
        set("sparkProperties", (!properties.is_empty()).then(|| json!(properties)));
        set("environmentVariables", texts(&self.variables));
        set("labels", texts(&self.labels));
        set("sparkVersion", self.spark_version.clone().map(Value::from));
        set("clientId", self.client_id.clone().map(Value::from));
        set("uniqueName", self.unique_name.then_some(json!(true)));
        set("priority", self.priority.map(Value::from));
        let seconds = |span: Span| json!(span.seconds());
        set("startTimeoutSeconds", self.start_timeout.map(seconds));
        set("runTimeoutSeconds", self.run_timeout.map(seconds));
        set("killGraceSeconds", self.kill_grace.map(seconds));
        let retries = [
            ("infrastructure", self.retries),
            ("application", self.application_retries),
            ("capacity", self.capacity_retries),
            ("quota", self.quota_retries),
        ];
        let retries: BTreeMap<&str, u32> = retries.into_iter().filter_map(|(kind, most)| Some((kind, most?))).collect();
        set("maxRetries", (!retries.is_empty()).then(|| json!(retries)));
        Value::Object(patch)
    }

    /// Returns the idempotency key, or a new one: all retries of a call have the same, so that a lost response doesn't lead to a second
    /// submission.
    ///
    /// # Errors
    /// A new key can't be a header.
    pub(super) fn key(&self) -> Result<HeaderValue, Error> {
        let fresh = || HeaderValue::from_str(&Uuid::new_v4().to_string());
        let key = self.idempotency_key.clone().map_or_else(fresh, Ok);
        key.map_err(|error| Error::Here(format!("generating an idempotency key: {error}")))
    }
}

/// Returns pairs as an object, or `None` if there are none.
pub(super) fn texts(pairs: &[(String, String)]) -> Option<Value> {
    let texts: BTreeMap<&str, &str> = pairs.iter().map(|(key, value)| (&**key, &**value)).collect();
    (!texts.is_empty()).then(|| json!(texts))
}

fn header_value(text: &str) -> Result<HeaderValue, &'static str> {
    let fine = !text.is_empty() && text.len() <= 255 && text.chars().all(|c| matches!(c, ' '..='~'));
    let value = HeaderValue::from_str(text).ok().filter(|_| fine);
    value.ok_or("expected 1 to 255 printable ASCII characters")
}
