//! Keeps secrets out of what is shown: Spark's own rule (`spark.redaction.regex`), for objects and properties.

use std::fmt::Write;

use serde_json::Value;

/// Stands for a secret, as in Spark (`Utils.REDACTION_REPLACEMENT_TEXT`).
const REDACTED: &str = "*********(redacted)";
/// Spark's default expression is `(?i)secret|password|token|access[.]?key`.
const WORDS: [&str; 5] = ["secret", "password", "token", "accesskey", "access.key"];
/// The file with the driver's properties in its `ConfigMap`.
const PROPERTIES: &str = "spark.properties";

/// Returns whether a value is to be hidden: as in Spark, if its name or the value itself has one of the words.
fn is_secret(name: &str, value: &str) -> bool {
    let has_word = |text: &str| {
        let text = text.to_ascii_lowercase();
        WORDS.iter().any(|word| text.contains(word))
    };
    has_word(name) || has_word(value)
}

/// Returns the value of a property as it may be shown.
pub(super) fn property(name: &str, value: String) -> String {
    if is_secret(name, &value) { REDACTED.to_owned() } else { value }
}

/// Hides the data of Secrets, and the values of secret variables and properties, in Kubernetes objects.
pub(super) fn objects(objects: &mut [Value]) {
    for object in objects {
        match object["kind"].as_str() {
            Some("Secret") => secret(object),
            Some("ConfigMap") => config_map(object),
            Some("Pod") => pod(object),
            _ => {}
        }
    }
}

fn secret(object: &mut Value) {
    for field in ["data", "stringData"] {
        if let Some(data) = object.get_mut(field).and_then(Value::as_object_mut) {
            data.values_mut().for_each(|value| *value = REDACTED.into());
        }
    }
}

fn config_map(object: &mut Value) {
    let Some(Value::String(text)) = object.get_mut("data").and_then(|data| data.get_mut(PROPERTIES)) else { return };
    let mut shown = String::with_capacity(text.len());
    for line in text.lines() {
        match line.split_once('=') {
            Some((key, value)) if !line.starts_with('#') && is_secret(key, value) => {
                let _ = writeln!(shown, "{key}={REDACTED}");
            }
            _ => {
                shown.push_str(line);
                shown.push('\n');
            }
        }
    }
    *text = shown;
}

fn pod(object: &mut Value) {
    for field in ["containers", "initContainers", "ephemeralContainers"] {
        let containers = object.pointer_mut(&format!("/spec/{field}")).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            for variable in container.get_mut("env").and_then(Value::as_array_mut).into_iter().flatten() {
                let name = variable["name"].as_str().unwrap_or_default().to_owned();
                if let Some(Value::String(value)) = variable.get_mut("value")
                    && is_secret(&name, value)
                {
                    *value = REDACTED.to_owned();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_are_hidden_by_their_names_and_values() {
        assert_eq!(property("spark.hadoop.fs.s3a.access.key", "AKIA".to_owned()), REDACTED);
        assert_eq!(property("spark.driver.extraJavaOptions", "-Dpassword=x".to_owned()), REDACTED);
        assert_eq!(property("spark.app.name", "nightly".to_owned()), "nightly");
        let mut all = [
            json!({"kind": "Secret", "data": {"a": "c2VjcmV0"}, "stringData": {"b": "x"}}),
            json!({"kind": "ConfigMap", "data": {
                "spark.properties": "#Java properties, token\nspark.app.name=a\nspark.ssl.keyPassword=hunter2\n",
                "other": "password=kept",
            }}),
            json!({"kind": "Pod", "spec": {
                "containers": [{"env": [{"name": "DB_PASSWORD", "value": "hunter2"}, {"name": "MODE", "value": "fast"}]}],
                "initContainers": [{"env": [{"name": "X", "value": "token=1"}, {"name": "FROM", "valueFrom": {}}]}],
            }}),
        ];
        objects(&mut all);
        assert_eq!(all[0], json!({"kind": "Secret", "data": {"a": REDACTED}, "stringData": {"b": REDACTED}}));
        let properties = format!("#Java properties, token\nspark.app.name=a\nspark.ssl.keyPassword={REDACTED}\n");
        assert_eq!(all[1]["data"]["spark.properties"], properties);
        let env = |container: &str, at: usize| all[2]["spec"][container][0]["env"][at]["value"].clone();
        assert_eq!((env("containers", 0), env("containers", 1)), (json!(REDACTED), json!("fast")));
        assert_eq!((env("initContainers", 0), env("initContainers", 1)), (json!(REDACTED), Value::Null));
    }
}
