//! A submission as the commands that submit it again.

use std::fmt::Write;

use maud::{Markup, html};
use serde_json::{Map, Value};

use super::text::cut;
use crate::v1::submissions::rerun::{RERUN_OF, body_of};
use sparkgate_service::Submission;

/// The longest command that is shown.
const LONGEST: usize = 64 << 10;

/// Shows ways to run a submission again: by a form, and by commands. Values that were hidden when the request was stored are hidden in
/// them, too. `host` is the gateway's, as the browser named it.
pub(super) fn section(request: &Value, of: &Submission, host: Option<&str>) -> Markup {
    let commands = [
        ("sparkgate rerun", Some(format!("sparkgate rerun {}", of.id))),
        ("sparkgate submit", Some(submit(request, of))),
        ("curl", Some(curl(request, of))),
        ("spark-submit", spark_submit(request, of, host)),
        ("Airflow", Some(airflow(request, of))),
    ];
    html! {
        section {
            h2 { "Run it again" }
            p.quiet { "The request as it was launched: with the operator's defaults of that time, and without secrets." }
            p { a href={ (of.id) "/rerun" } { "Change it, and run it again" } }
            @for (name, command) in &commands {
                @if let Some(command) = command {
                    details.command {
                        summary { (name) }
                        button.copy type="button" hidden data-copy { "Copy" }
                        pre tabindex="0" { (cut(command, LONGEST)) }
                    }
                }
            }
        }
    }
}

fn curl(request: &Value, of: &Submission) -> String {
    let body = format!("{:#}", Value::Object(body_of(request, of)));
    format!("curl -sS \"$SPARKGATE_URL/v1/submissions\" --json {}", quoted(&body))
}

fn submit(request: &Value, of: &Submission) -> String {
    // No line of the document is the word that ends it, because JSON escapes line feeds.
    format!("sparkgate submit --request - <<'REQUEST'\n{:#}\nREQUEST", Value::Object(body_of(request, of)))
}

/// Returns the command, or `None` if spark-submit's REST client can't send this request: it refuses Python and R, and has no inline pod
/// templates.
fn spark_submit(request: &Value, of: &Submission, host: Option<&str>) -> Option<String> {
    let text = |name: &str| request[name].as_str().filter(|text| !text.is_empty());
    let resource = text("appResource")?;
    let class = text("mainClass").filter(|class| !class.starts_with("org.apache.spark.deploy."))?;
    let is_script = [".py", ".r", ".R"].iter().any(|ending| resource.ends_with(ending));
    let has_templates = ["driverPodTemplate", "executorPodTemplate"].iter().any(|name| !request[*name].is_null());
    if is_script || has_templates {
        return None;
    }
    let mut command = String::new();
    for (name, value) in request["environmentVariables"].as_object().into_iter().flatten() {
        // Writing to a string can't fail.
        let _ = write!(command, "{name}={} ", quoted(value.as_str().unwrap_or_default()));
    }
    let host = host.unwrap_or("HOST");
    let port = if host.rsplit(']').next().unwrap_or(host).contains(':') { "" } else { ":6066" };
    let _ = write!(command, "spark-submit --master {} --deploy-mode cluster", quoted(&format!("spark://{host}{port}")));
    let mut add = |option: &str, value: &str| {
        let _ = write!(command, " \\\n  {option} {}", quoted(value));
    };
    add("--class", class);
    if let Some(user) = text("proxyUser") {
        add("--proxy-user", user);
    }
    for (key, value) in request["sparkProperties"].as_object().into_iter().flatten() {
        // The gateway sets these itself.
        if !matches!(key.as_str(), "spark.master" | "spark.submit.deployMode" | "spark.app.submitTime") {
            add("--conf", &format!("{key}={}", value.as_str().unwrap_or_default()));
        }
    }
    for (key, value) in own_properties(of) {
        add("--conf", &format!("spark.sparkgate.{key}={value}"));
    }
    command.push_str(" \\\n ");
    let arguments = request["appArgs"].as_array().into_iter().flatten().filter_map(Value::as_str);
    for word in std::iter::once(resource).chain(arguments) {
        command.push(' ');
        command.push_str(&quoted(word));
    }
    Some(command)
}

/// Returns the options of the gateway as properties, for clients that have no fields for them.
fn own_properties(of: &Submission) -> Vec<(String, String)> {
    let labels = of.labels.iter().filter(|(key, _)| *key != RERUN_OF);
    let mut properties: Vec<_> = labels.map(|(key, value)| (format!("label.{key}"), value.clone())).collect();
    properties.push(("sparkVersion".to_owned(), of.spark_version.clone()));
    for (key, seconds) in
        [("startTimeout", of.start_timeout), ("runTimeout", of.run_timeout), ("killGrace", of.kill_grace)]
    {
        properties.extend(seconds.map(|seconds| (key.to_owned(), format!("{seconds}s"))));
    }
    for (key, count) in of.max_retries() {
        properties.extend((count > 0).then(|| (format!("maxRetries.{key}"), count.to_string())));
    }
    properties
}

fn airflow(request: &Value, of: &Submission) -> String {
    let mut task = format!(
        "from sparkgate_provider.operators.sparkgate import SparkgateSubmitOperator\n\nSparkgateSubmitOperator(\n    task_id={},\n",
        Value::from(of.name.as_str())
    );
    let mut body = body_of(request, of);
    let retries = body.remove("maxRetries");
    let labels: Map<String, Value> = body
        .remove("labels")
        .and_then(|labels| if let Value::Object(labels) = labels { Some(labels) } else { None })
        .unwrap_or_default();
    for (name, value) in [
        ("application", request["appResource"].clone()),
        ("main_class", request["mainClass"].clone()),
        ("application_args", request["appArgs"].clone()),
        ("name", of.name.as_str().into()),
        ("conf", request["sparkProperties"].clone()),
        ("env", request["environmentVariables"].clone()),
        ("proxy_user", request["proxyUser"].clone()),
        ("driver_pod_template", request["driverPodTemplate"].clone()),
        ("executor_pod_template", request["executorPodTemplate"].clone()),
        ("labels", labels.into()),
        ("spark_version", of.spark_version.as_str().into()),
        ("max_retries", retries.unwrap_or_default()),
        ("start_timeout", of.start_timeout.into()),
        ("run_timeout", of.run_timeout.into()),
        ("kill_grace", of.kill_grace.into()),
    ] {
        if !is_empty(&value) {
            let _ = writeln!(task, "    {name}={},", python(&value));
        }
    }
    task.push_str(")\n");
    task
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}

/// Writes a value as a literal of Python, which differs from JSON in its constants.
fn python(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Array(list) => format!("[{}]", list.iter().map(python).collect::<Vec<_>>().join(", ")),
        Value::Object(map) => {
            let entries = map.iter().map(|(key, value)| format!("{}: {}", Value::from(key.as_str()), python(value)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
        }
        Value::String(_) | Value::Number(_) => value.to_string(),
    }
}

/// Quotes a word for a POSIX shell.
fn quoted(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:=@%+,".contains(&byte);
    if !word.is_empty() && word.bytes().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_literals_of_python() {
        let value = json!({"a": [true, null, "x\"y"], "b": 1});
        assert_eq!(python(&value), r#"{"a": [True, None, "x\"y"], "b": 1}"#);
    }

    #[test]
    fn words_are_quoted_for_a_shell() {
        for (word, expected) in
            [("a-b_c.d/e", "a-b_c.d/e"), ("", "''"), ("a b", "'a b'"), ("it's $x", r"'it'\''s $x'"), ("`id`", "'`id`'")]
        {
            assert_eq!(quoted(word), expected);
        }
    }
}
