//! What is hidden from readers: what Spark hides (`spark.redaction.regex`), and secrets that its rule misses, such as account keys of
//! cloud stores and passwords in URLs.

mod rules;

use std::{borrow::Cow, collections::BTreeMap};

use serde_json::Value;

use crate::{request::CreateSubmissionRequest, yaml};
pub(crate) use rules::has_secret_words;
pub use rules::{SECRET_RULES, SecretPattern, SecretRules, is_secret, is_secret_name, may_hold_secrets};

/// Stands for a hidden value, as in Spark (`Utils.REDACTION_REPLACEMENT_TEXT`).
pub const REDACTED: &str = "*********(redacted)";

/// Returns a value as a message may quote it.
pub(crate) fn shown<'a>(name: &str, value: &'a str) -> &'a str {
    if is_secret(name, value) { REDACTED } else { value }
}

/// Returns an argument without the secret in it, and `None` if it has none: of `name=value` the value is hidden, as Spark does it for
/// `-Dname=value` in command lines (`Utils.redactCommandLineArgs`), and another argument as a whole.
pub fn redacted_argument(argument: &str) -> Option<String> {
    if argument.strip_suffix(REDACTED).is_some_and(|rest| rest.is_empty() || rest.ends_with('=')) {
        return None;
    }
    match argument.split_once('=') {
        Some((name, value)) if !rules::is_secret_value(name) && is_secret(name, value) => {
            Some(format!("{name}={REDACTED}"))
        }
        _ => rules::is_secret_value(argument).then(|| REDACTED.to_owned()),
    }
}

/// Returns whether a text with lines, such as a file of a `ConfigMap`, has a secret in it.
pub fn has_secrets(text: &str) -> bool {
    let is_secret_line = |line: &str| {
        let (name, value) = line.split_once(['=', ':']).unwrap_or(("", line));
        is_secret(name.trim().trim_matches('"'), value.trim().trim_matches('"'))
    };
    may_hold_secrets(text) && (rules::looks_secret(text) || text.lines().any(is_secret_line))
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

/// Returns whether a pod template has something like a secret in it, at any depth.
fn is_secret_template(template: &Value) -> bool {
    let text = template.to_string();
    if !may_hold_secrets(&text) {
        return false;
    }
    rules::looks_secret(&text)
        || match template {
            // Text that can't be read is no driver's, and hidden.
            Value::String(text) => yaml::parse(text).map_or(true, |template| holds_secret(&template)),
            template => holds_secret(template),
        }
}

fn holds_secret(value: &Value) -> bool {
    match value {
        Value::Object(members) => {
            let named = match (members.get("name"), members.get("value")) {
                (Some(Value::String(name)), Some(Value::String(value))) => is_secret(name, value),
                _ => false,
            };
            named
                || members.iter().any(|(name, value)| match value {
                    Value::String(text) => is_secret(name, text),
                    value => holds_secret(value),
                })
        }
        Value::Array(values) => values.iter().any(|value| match value {
            Value::String(argument) => redacted_argument(argument).is_some(),
            value => holds_secret(value),
        }),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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

    #[test]
    fn an_argument_is_shown_without_its_secret() {
        let shown = |argument: &str| redacted_argument(argument).unwrap_or_else(|| argument.to_owned());
        for (argument, redacted) in [
            ("--api-key=a", format!("--api-key={REDACTED}")),
            ("--url=jdbc:postgresql://u:p@db/x", format!("--url={REDACTED}")),
            ("jdbc:postgresql://u:p@db/x", REDACTED.to_owned()),
            ("jdbc:postgresql://u:p@db/x?ssl=true", REDACTED.to_owned()),
            ("jdbc:postgresql://db/x?user=u&password=p", format!("jdbc:postgresql://db/x?user={REDACTED}")),
            ("--date=2026-01-01", "--date=2026-01-01".to_owned()),
            ("token", "token".to_owned()),
        ] {
            assert_eq!(shown(argument), redacted);
            assert_eq!(shown(&redacted), redacted, "nothing is left to hide");
        }
    }

    #[test]
    fn a_template_with_a_secret_that_spark_misses_is_hidden() {
        let hidden = |template: Value| {
            let request = CreateSubmissionRequest { driver_pod_template: Some(template), ..Default::default() };
            request.redacted().driver_pod_template == Some(REDACTED.into())
        };
        let env =
            |name: &str, value: &str| json!({"spec": {"containers": [{"env": [{"name": name, "value": value}]}]}});
        assert!(
            hidden(env("API_KEY", "a")) && hidden(env("X", "https://u:p@h")) && !hidden(env("PASS_THROUGH", "true"))
        );
        assert!(hidden(json!({"metadata": {"annotations": {"example.org/apikey": "a"}}})));
        assert!(hidden(json!({"spec": {"containers": [{"args": ["jdbc:x://u:p@h"]}]}})));
        assert!(hidden(json!("spec: {containers: [{env: [{name: DB_PASS, value: a}]}]}")));
        assert!(!hidden(json!("spec: {containers: [{env: [{name: BYPASS, value: a}]}]}")) && hidden(json!("pass: [")));
    }

    #[test]
    fn a_file_with_a_secret_in_it_is_recognized() {
        for text in
            ["a=b\napi.key = c", "\"private_key\": \"x\"", "url: https://u:p@h", "<name>fs.s3a.secret.key</name>"]
        {
            assert!(has_secrets(text), "{text}");
        }
        for text in ["rootLogger.level=info", "bypass: all", "pass: true", "key.file=/etc/x"] {
            assert!(!has_secrets(text), "{text}");
        }
    }
}
