//! Keeps secrets out of objects that are shown or stored as plain text, by the rules of `spark::redaction`.

use std::{fmt::Write, mem};

use serde_json::Value;

use sparkgate_cluster::Manifest;
use sparkgate_common::error::Error;
use sparkgate_spark::{
    CreateSubmissionRequest, REDACTED, has_secrets, is_secret, is_secret_name, may_hold_secrets, redacted_argument,
};

/// The length of the shortest value that is looked for in messages.
const SHORTEST: usize = 6;
/// The file with the driver's properties in its `ConfigMap`.
const PROPERTIES: &str = "spark.properties";
/// The file with the executors' pod template.
const TEMPLATE: &str = "podspec-configmap-key";

/// Returns the value of a property as it may be shown.
pub fn property(name: &str, value: String) -> String {
    if is_secret(name, &value) { REDACTED.to_owned() } else { value }
}

/// Returns a manifest without secrets; `None` if it has none.
///
/// # Errors
/// The text is no manifest.
pub fn manifest(text: &str) -> serde_json::Result<Option<String>> {
    if !may_hold_secrets(text) {
        return Ok(None);
    }
    let mut manifest: Manifest<Value> = serde_json::from_str(text)?;
    // What the objects were judged by is for their launch, which gets the text.
    let Manifest { before, pod, beside, judged } = &mut manifest;
    *judged = None;
    let is_changed = !objects(before.iter_mut().chain([pod]).chain(beside)).is_empty();
    is_changed.then(|| serde_json::to_string(&manifest)).transpose()
}

/// Returns the message of an API server about objects without the secrets in them, which it may quote.
pub fn message_about(manifest: &Manifest, message: String) -> String {
    let Manifest { before, pod, beside, judged: _ } = manifest;
    let all = before.iter().chain([pod]).chain(beside).map(|object| object.get()).filter(|text| may_hold_secrets(text));
    let mut all: Vec<Value> = all.filter_map(|text| serde_json::from_str(text).ok()).collect();
    without(message, &objects(&mut all))
}

/// Returns the secrets of a request, which its refusal may quote.
pub fn secrets_of(request: &CreateSubmissionRequest) -> Vec<String> {
    let named = request.spark_properties.iter().chain(&request.environment_variables);
    let named = named.map(|(name, value)| (name.as_str(), value.as_str()));
    let arguments = request.app_args.iter().filter_map(|argument| {
        let kept = redacted_argument(argument)?.len() - REDACTED.len();
        Some(argument[kept..].to_owned())
    });
    // The name of a file, if it is a text.
    let templates = [&request.driver_pod_template, &request.executor_pod_template].into_iter().flatten();
    let templates = templates.filter_map(Value::as_str).map(|text| ("", text));
    let secret = named.chain(templates).filter(|(name, value)| is_secret(name, value));
    secret.map(|(_, value)| value.to_owned()).chain(arguments).collect()
}

/// Returns the refusal of a request without its secrets.
pub fn refusal(mut error: Error, secrets: &[String]) -> Error {
    match &mut error {
        Error::Refused(refusal) => refusal.reason = without(mem::take(&mut refusal.reason), secrets),
        Error::Policy { violations, .. } => {
            for violation in violations {
                violation.message = without(mem::take(&mut violation.message), secrets);
            }
        }
        _ => {}
    }
    error
}

/// Returns a message without these secrets, whether it quotes them in lower case or not, and escaped or not. Shorter values than [`SHORTEST`] remain: they
/// are words and numbers that a message may contain anyway.
fn without(message: String, secrets: &[String]) -> String {
    let quoted = secrets.iter().filter_map(|secret| serde_json::to_string(secret.trim()).ok());
    let quoted = quoted.map(|secret| secret[1..secret.len() - 1].to_owned());
    secrets.iter().map(|secret| secret.trim().to_owned()).chain(quoted).filter(|secret| secret.len() >= SHORTEST).fold(
        message,
        |message, secret| {
            let (folded, secret) = (message.to_ascii_lowercase(), secret.to_ascii_lowercase());
            let mut rest = 0;
            let mut shown = String::new();
            for (at, _) in folded.match_indices(&secret) {
                shown.push_str(&message[rest..at]);
                shown.push_str(REDACTED);
                rest = at + secret.len();
            }
            if rest == 0 { message } else { shown + &message[rest..] }
        },
    )
}

/// Hides what looks like a secret in Kubernetes objects: the data of Secrets, the values of labels, annotations, variables, headers and
/// properties, arguments `name=value`, and other files in a `ConfigMap` as a whole. Names of Secrets and paths remain. Returns what was
/// hidden.
pub fn objects<'a>(objects: impl IntoIterator<Item = &'a mut Value>) -> Vec<String> {
    let mut hidden = Hidden(Vec::new());
    objects.into_iter().for_each(|object| hidden.redact(object));
    hidden.0
}

/// The values that were hidden.
struct Hidden(Vec<String>);

impl Hidden {
    fn redact(&mut self, object: &mut Value) {
        self.metadata(object);
        match object["kind"].as_str() {
            Some("Secret") => {
                self.members(object.get_mut("data"), |_, _| true);
                self.members(object.get_mut("stringData"), |_, _| true);
            }
            Some("ConfigMap") => self.files(object.get_mut("data")),
            // Spark selects the driver by its labels.
            Some("Service") => self.members(object.pointer_mut("/spec/selector"), |name, _| is_secret_name(name)),
            Some("Pod") => self.spec(object.get_mut("spec").unwrap_or(&mut Value::Null)),
            _ => {}
        }
    }

    /// Hides values of annotations, and of labels by their names: the value of a label is an identifier.
    fn metadata(&mut self, object: &mut Value) {
        self.members(object.pointer_mut("/metadata/annotations"), is_secret);
        self.members(object.pointer_mut("/metadata/labels"), |name, _| is_secret_name(name));
    }

    fn members(&mut self, members: Option<&mut Value>, is_hidden: impl Fn(&str, &str) -> bool) {
        for (name, value) in members.and_then(Value::as_object_mut).into_iter().flatten() {
            if value.as_str().is_some_and(|value| is_hidden(name, value)) {
                self.value(value);
            }
        }
    }

    fn value(&mut self, value: &mut Value) {
        if let Value::String(text) = value
            && text != REDACTED
        {
            self.0.push(mem::replace(text, REDACTED.to_owned()));
        }
    }

    fn files(&mut self, files: Option<&mut Value>) {
        for (name, file) in files.and_then(Value::as_object_mut).into_iter().flatten() {
            match name.as_str() {
                _ if !file.as_str().is_some_and(may_hold_secrets) => {}
                PROPERTIES => self.properties(file),
                TEMPLATE => self.template(file),
                _ if file.as_str().is_some_and(has_secrets) => self.value(file),
                _ => {}
            }
        }
    }

    fn properties(&mut self, file: &mut Value) {
        let Value::String(text) = file else { return };
        let mut shown = String::with_capacity(text.len());
        for line in text.lines() {
            match line.split_once('=') {
                Some((key, value)) if !line.starts_with('#') && is_secret(key, value) && value != REDACTED => {
                    let _ = writeln!(shown, "{key}={REDACTED}");
                    self.0.push(value.to_owned());
                }
                _ => {
                    shown.push_str(line);
                    shown.push('\n');
                }
            }
        }
        *text = shown;
    }

    /// Hides the secrets of a pod template. Text that is no YAML is hidden as a whole.
    fn template(&mut self, file: &mut Value) {
        let Ok(mut template) = serde_saphyr::from_str::<Value>(file.as_str().unwrap_or_default()) else {
            return self.value(file);
        };
        let before = self.0.len();
        self.metadata(&mut template);
        self.spec(template.get_mut("spec").unwrap_or(&mut Value::Null));
        if self.0.len() > before {
            *file = template.to_string().into();
        }
    }

    /// Hides values that have names (variables, headers), and arguments `name=value`, at any depth.
    fn spec(&mut self, value: &mut Value) {
        match value {
            Value::Array(values) => values.iter_mut().for_each(|value| self.spec(value)),
            Value::Object(members) => {
                let is_hidden = match (members.get("name"), members.get("value")) {
                    (Some(Value::String(name)), Some(Value::String(value))) => is_secret(name, value),
                    _ => false,
                };
                for (name, value) in members {
                    match name.as_str() {
                        "value" if is_hidden => self.value(value),
                        "args" | "command" => self.arguments(value),
                        _ => self.spec(value),
                    }
                }
            }
            _ => {}
        }
    }

    fn arguments(&mut self, arguments: &mut Value) {
        for argument in arguments.as_array_mut().into_iter().flatten() {
            if let Value::String(text) = argument
                && let Some(redacted) = redacted_argument(text)
            {
                let kept = redacted.len() - REDACTED.len();
                self.0.push(text[kept..].to_owned());
                *text = redacted;
            }
        }
    }
}

#[cfg(test)]
mod tests;
