//! Reading a request as leniently as Spark's own parser (Jackson) does: scalars become strings, unknown fields are
//! ignored, and so is `action`.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::spark::CreateSubmissionRequest;

pub(super) fn parse(text: &str) -> Result<CreateSubmissionRequest, serde_json::Error> {
    serde_json::from_str::<Input>(text).map(Into::into)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Input {
    #[serde(default)]
    client_spark_version: Option<Text>,
    #[serde(default)]
    app_resource: Option<Text>,
    #[serde(default)]
    main_class: Option<Text>,
    #[serde(default)]
    app_args: Option<Vec<Text>>,
    #[serde(default)]
    spark_properties: Option<BTreeMap<String, Text>>,
    #[serde(default)]
    environment_variables: Option<BTreeMap<String, Text>>,
    #[serde(default)]
    proxy_user: Option<Text>,
    #[serde(default)]
    driver_pod_template: Option<Value>,
    #[serde(default)]
    executor_pod_template: Option<Value>,
}

/// A string, or a scalar that Jackson would take for one.
struct Text(String);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::String(text) => Ok(Self(text)),
            Value::Number(number) => Ok(Self(number.to_string())),
            Value::Bool(truth) => Ok(Self(truth.to_string())),
            other => Err(serde::de::Error::custom(format!("expected a string, a number or a boolean, not {other}"))),
        }
    }
}

impl From<Input> for CreateSubmissionRequest {
    fn from(input: Input) -> Self {
        let text = |text: Option<Text>| text.map_or_else(String::new, |text| text.0);
        let texts = |map: Option<BTreeMap<String, Text>>| {
            map.unwrap_or_default().into_iter().map(|(key, value)| (key, value.0)).collect()
        };
        Self {
            client_spark_version: text(input.client_spark_version),
            app_resource: text(input.app_resource),
            main_class: text(input.main_class),
            app_args: input.app_args.unwrap_or_default().into_iter().map(|arg| arg.0).collect(),
            spark_properties: texts(input.spark_properties),
            environment_variables: texts(input.environment_variables),
            proxy_user: input.proxy_user.map(|user| user.0),
            driver_pod_template: input.driver_pod_template,
            executor_pod_template: input.executor_pod_template,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_become_strings_and_unknown_fields_are_ignored() {
        let text = r#"{"appResource": "a.py", "mainClass": null, "appArgs": [1, true, "x"], "extra": {},
                       "sparkProperties": {"spark.driver.cores": 2}}"#;
        let request = parse(text).unwrap();
        assert_eq!(request.app_args, ["1", "true", "x"]);
        assert_eq!(request.spark_properties["spark.driver.cores"], "2");
        assert_eq!(request.main_class, "");
    }

    #[test]
    fn nested_values_are_no_strings() {
        let error = parse(r#"{"sparkProperties": {"a": [1]}}"#).unwrap_err();
        assert!(error.to_string().contains("expected a string"), "{error}");
    }
}
