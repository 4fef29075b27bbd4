//! What Spark hides from readers: the rule of `spark.redaction.regex`.

use std::{borrow::Cow, collections::BTreeMap};

use serde_json::Value;

use crate::CreateSubmissionRequest;

/// Stands for a hidden value, as in Spark (`Utils.REDACTION_REPLACEMENT_TEXT`).
pub const REDACTED: &str = "*********(redacted)";

/// Returns whether a value is to be hidden: as in Spark (`Utils.redact`), if its name or the value itself looks like a secret.
pub fn is_secret(name: &str, value: &str) -> bool {
    looks_secret(name) || looks_secret(value)
}

/// Returns whether a text matches the default of `spark.redaction.regex`: `(?i)secret|password|token|access[.]?key`.
pub fn looks_secret(text: &str) -> bool {
    let text = text.as_bytes();
    let begins =
        |at: usize, word: &[u8]| text.get(at..at + word.len()).is_some_and(|found| found.eq_ignore_ascii_case(word));
    text.iter().enumerate().any(|(at, byte)| match byte.to_ascii_lowercase() {
        b's' => begins(at, b"secret"),
        b'p' => begins(at, b"password"),
        b't' => begins(at, b"token"),
        b'a' => begins(at, b"accesskey") || begins(at, b"access.key"),
        _ => false,
    })
}

/// Returns a value as a message may quote it.
pub(crate) fn shown<'a>(name: &str, value: &'a str) -> &'a str {
    if is_secret(name, value) { REDACTED } else { value }
}

/// Returns an argument `name=value` without its value if that is to be hidden, and `None` if nothing is. Spark does this for
/// `-Dname=value` in command lines (`Utils.redactCommandLineArgs`).
pub fn redacted_argument(argument: &str) -> Option<String> {
    let (name, value) = argument.split_once('=')?;
    (value != REDACTED && is_secret(name, value)).then(|| format!("{name}={REDACTED}"))
}

impl CreateSubmissionRequest {
    /// Returns the request without the values of secret properties and variables, without those of arguments `name=value`, and
    /// without pod templates that contain something like a secret.
    pub fn redacted(&self) -> Cow<'_, Self> {
        let templates = [&self.driver_pod_template, &self.executor_pod_template];
        let has_secret = |values: &BTreeMap<String, String>| values.iter().any(|(name, value)| is_secret(name, value));
        let is_clean = !has_secret(&self.spark_properties)
            && !has_secret(&self.environment_variables)
            && !self.app_args.iter().any(|argument| redacted_argument(argument).is_some())
            && !templates.into_iter().flatten().any(is_secret_template);
        if is_clean {
            return Cow::Borrowed(self);
        }
        let mut request = self.clone();
        for values in [&mut request.spark_properties, &mut request.environment_variables] {
            let secret = values.iter_mut().filter(|(name, value)| is_secret(name, value));
            secret.for_each(|(_, value)| REDACTED.clone_into(value));
        }
        for argument in &mut request.app_args {
            if let Some(redacted) = redacted_argument(argument) {
                *argument = redacted;
            }
        }
        for template in [&mut request.driver_pod_template, &mut request.executor_pod_template] {
            if let Some(template) = template.as_mut().filter(|template| is_secret_template(template)) {
                *template = REDACTED.into();
            }
        }
        Cow::Owned(request)
    }
}

fn is_secret_template(template: &Value) -> bool {
    looks_secret(&template.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_are_recognized_as_by_the_expression_of_spark() {
        for secret in ["spark.ssl.keyPassword", "SECRET", "x-Tokens", "fs.s3a.access.key", "AwsAccessKeyId", "a token"]
        {
            assert!(looks_secret(secret), "{secret}");
        }
        for plain in ["", "spark.app.name", "access-key", "accesskoy", "secre", "pass", "\u{17f}ecret", "to\u{212a}en"]
        {
            assert!(!looks_secret(plain), "{plain}");
        }
        assert!(is_secret("spark.driver.extraJavaOptions", "-Dpassword=x"));
    }

    #[test]
    fn a_request_without_secrets_is_not_copied() {
        let request = CreateSubmissionRequest {
            app_args: vec!["--date=2026-01-01".to_owned(), "token".to_owned()],
            spark_properties: [("spark.app.name".to_owned(), "a".to_owned())].into(),
            driver_pod_template: Some(json!({"spec": {}})),
            ..Default::default()
        };
        assert!(matches!(request.redacted(), Cow::Borrowed(_)));
    }

    #[test]
    fn each_secret_of_a_request_is_hidden() {
        let property = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let request = CreateSubmissionRequest {
            app_args: ["--db-password=a", "-Dtoken=b", "--date=c", "d"].map(str::to_owned).into(),
            spark_properties: [property("spark.x.secret", "e"), property("spark.app.name", "f")].into(),
            environment_variables: [property("X_TOKEN", "g"), property("MODE", "h")].into(),
            driver_pod_template: Some(json!({"spec": {"containers": [{"env": [{"name": "PASSWORD", "value": "i"}]}]}})),
            executor_pod_template: Some(json!("spec: {}")),
            ..Default::default()
        };
        let redacted = request.redacted().into_owned();
        let arguments = [format!("--db-password={REDACTED}"), format!("-Dtoken={REDACTED}")];
        assert_eq!(redacted.app_args, [&arguments[0], &arguments[1], "--date=c", "d"]);
        assert_eq!(
            redacted.spark_properties,
            [property("spark.x.secret", REDACTED), property("spark.app.name", "f")].into()
        );
        assert_eq!(redacted.environment_variables, [property("X_TOKEN", REDACTED), property("MODE", "h")].into());
        assert_eq!(redacted.driver_pod_template, Some(REDACTED.into()));
        assert_eq!(redacted.executor_pod_template, request.executor_pod_template);
    }
}
