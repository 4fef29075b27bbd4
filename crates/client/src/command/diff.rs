//! `sparkgate diff`.

use chrono::Utc;
use clap::Args;
use serde_json::Value;

use super::Outcome;
use crate::{
    api::Api,
    clean,
    compare::{Run, compare},
    named::Named,
    options::Target,
    screen::{self, note},
    span::in_words,
};
use sparkgate_submission::headline_of_row;

#[derive(Debug, Args)]
pub struct Diff {
    #[command(flatten)]
    target: Target,
    /// The id of a submission, or its beginning.
    #[arg(value_name = "A")]
    a: Named,
    /// The id of the one that it is compared with.
    #[arg(value_name = "B")]
    b: Named,
}

impl Diff {
    /// Prints what differs. The exit code is 0 whether something does or not.
    pub(super) async fn run(self) -> Outcome {
        let api = Api::new(&self.target.gateway)?;
        let (a, b) = (self.a.resolved(&api).await?, self.b.resolved(&api).await?);
        let (a, b) = (Run::read(&api, &a).await?, Run::read(&api, &b).await?);
        let compared = compare(&a, &b, Utc::now());
        if self.target.is_document() {
            self.target.document(compared.to_string().as_bytes())?;
            return Ok(0);
        }
        let text = [outcome("A", &compared["a"]), outcome("B", &compared["b"]), differences(&compared["differences"])];
        screen::text(&text.concat())?;
        if compared["requestsAreEqual"] == true {
            note("both requests are the same: look at the data, the image and the cluster");
        }
        Ok(0)
    }
}

fn outcome(which: &str, run: &Value) -> String {
    let took = run["secondsRunning"].as_f64().map(|seconds| format!(" after {}", in_words(seconds.max(0.0) as u64)));
    let why = run["reason"]["message"].as_str().map(headline_of_row);
    let why = why.map(|why| format!(": {why}")).unwrap_or_default();
    let (id, state) = (run["id"].as_str().unwrap_or_default(), run["state"].as_str().unwrap_or_default());
    format!("{}\n", clean::line(&format!("{which}: {id} {state}{}{why}", took.unwrap_or_default())))
}

/// Formats the parts that differ, each with its value in both.
fn differences(found: &Value) -> String {
    let mut lines = String::new();
    let mut add = |part: &str, a: Option<&Value>, b: Option<&Value>| {
        let shown = |value: Option<&Value>| match value {
            None | Some(Value::Null) => "–".to_owned(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        };
        lines += &format!("  {}\n", clean::line(&format!("{part}: {} → {}", shown(a), shown(b))));
    };
    // The images are among the properties.
    for (field, parts) in found.as_object().into_iter().flatten().filter(|(field, _)| *field != "image") {
        let keys = |kind: &str| parts[kind].as_object().into_iter().flatten();
        if parts.get("a").is_some() || parts.get("b").is_some() {
            add(field, parts.get("a"), parts.get("b"));
            continue;
        }
        keys("onlyInA").for_each(|(key, value)| add(key, Some(value), None));
        keys("onlyInB").for_each(|(key, value)| add(key, None, Some(value)));
        keys("changed").for_each(|(key, value)| add(key, value.get("a"), value.get("b")));
    }
    lines
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_part_that_differs_has_a_line() {
        let found = json!({
            "appArgs": {"a": ["1"], "b": ["2"]},
            "image": {"spark.kubernetes.container.image": {"a": "x:1", "b": "x:2"}},
            "sparkProperties": {"onlyInA": {"spark.a": "1"}, "changed": {"spark.kubernetes.container.image": {"a": "x:1", "b": "x:2"}}},
        });
        let lines = "  appArgs: [\"1\"] → [\"2\"]\n  spark.a: 1 → –\n  spark.kubernetes.container.image: x:1 → x:2\n";
        assert_eq!(differences(&found), lines);
        let run =
            json!({"id": "driver-1", "state": "FAILED", "secondsRunning": 90.0, "reason": {"message": "no\nline"}});
        assert_eq!(outcome("A", &run), "A: driver-1 FAILED after 1m 30s: no\n");
    }
}
