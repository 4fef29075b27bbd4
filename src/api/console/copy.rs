//! A submission as the commands that submit it again.

use std::fmt::Write;

use maud::{Markup, html};
use serde_json::Value;

use super::text::cut;
use crate::{api::v1::body_of, service::Submission};

/// The longest command that is shown.
const LONGEST: usize = 64 << 10;
/// An example of changes.
const PATCH: &str = r#"{"sparkProperties": {"spark.driver.memory": "4g"}}"#;

/// Shows ways to run a submission again: by a form, and as commands. Values that were hidden when the request was stored are hidden in
/// them, too.
pub(super) fn section(request: &Value, of: &Submission) -> Markup {
    let commands =
        [("curl", curl(request, of)), ("spark-submit", spark_submit(request)), ("Airflow", airflow(request, of))];
    html! {
        section {
            h2 { "Run it again" }
            p.quiet { "The request as it was launched: with the operator's defaults of that time, and without secrets." }
            details.command {
                summary { "Now, with changes" }
                form.rerun method="post" action={ (of.id.as_str()) "/rerun" } {
                    label for="patch" { "A JSON merge patch of the request, or nothing. Secrets aren't stored: set them here, or to " code { "null" } " to leave them to the operator's defaults." }
                    textarea #patch name="patch" rows="6" spellcheck="false" placeholder=(PATCH) {}
                    button { "Run again" }
                }
            }
            @for (name, command) in &commands {
                details.command {
                    summary { (name) }
                    button.copy type="button" hidden data-copy { "Copy" }
                    pre tabindex="0" { (cut(command, LONGEST)) }
                }
            }
        }
    }
}

fn curl(request: &Value, of: &Submission) -> String {
    let body = format!("{:#}", Value::Object(body_of(request, of)));
    format!("curl -sS \"$SPARKGATE_URL/v1/submissions\" --json {}", quoted(&body))
}

fn spark_submit(request: &Value) -> String {
    let mut command = "spark-submit --master spark://HOST:6066 --deploy-mode cluster".to_owned();
    let text = |name: &str| request[name].as_str().filter(|text| !text.is_empty());
    let mut add = |option: &str, value: &str| {
        // Writing to a string can't fail.
        let _ = write!(command, " \\\n  {option} {}", quoted(value));
    };
    if let Some(class) = text("mainClass") {
        add("--class", class);
    }
    for (key, value) in request["sparkProperties"].as_object().into_iter().flatten() {
        // The gateway sets these itself.
        if !matches!(key.as_str(), "spark.master" | "spark.submit.deployMode" | "spark.app.submitTime") {
            add("--conf", &format!("{key}={}", value.as_str().unwrap_or_default()));
        }
    }
    command.push_str(" \\\n ");
    for word in text("appResource")
        .into_iter()
        .chain(request["appArgs"].as_array().into_iter().flatten().filter_map(Value::as_str))
    {
        command.push(' ');
        command.push_str(&quoted(word));
    }
    command
}

fn airflow(request: &Value, of: &Submission) -> String {
    let string = |value: &Value| value.to_string();
    let mut task = format!("SparkgateSubmitOperator(\n    task_id={},\n", string(&of.name.as_str().into()));
    let mut add = |name: &str, value: &Value| {
        let _ = writeln!(task, "    {name}={value},");
    };
    add("application", &request["appResource"]);
    if request["mainClass"].as_str().is_some_and(|class| !class.is_empty()) {
        add("java_class", &request["mainClass"]);
    }
    if request["appArgs"].as_array().is_some_and(|arguments| !arguments.is_empty()) {
        add("application_args", &request["appArgs"]);
    }
    add("conf", &request["sparkProperties"]);
    task.push_str(")\n");
    task
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
    use super::*;

    #[test]
    fn words_are_quoted_for_a_shell() {
        for (word, expected) in
            [("a-b_c.d/e", "a-b_c.d/e"), ("", "''"), ("a b", "'a b'"), ("it's $x", r"'it'\''s $x'"), ("`id`", "'`id`'")]
        {
            assert_eq!(quoted(word), expected);
        }
    }
}
