//! Repeats the requests that `record.py` sent to real masters, in the same order.

use serde::Deserialize;
use sparkgate::spark::SparkVersion;
use sqlx::PgPool;

use crate::in_memory::{Answer, ask, face};

/// Deliberate differences, with the status of the gateway's answer. All other answers must be the same.
const DIFFERENT: [(&str, u16); 18] = [
    // A list of submissions, where Spark only has an error.
    ("prefix", 200),
    // Spark fails on these (HTTP 500 and a page), although the client is at fault. The gateway answers with an
    // `ErrorResponse`.
    ("create: cores with spaces", 400),
    ("fractional driver cores", 400),
    ("null property", 400),
    ("unknown action", 400),
    ("empty action", 400),
    ("action in lower case", 400),
    ("a class that is no message", 400),
    ("another message: clear", 400),
    ("not UTF-8", 400),
    // Spark accepts these, and then can't start the driver.
    ("null argument", 400),
    ("null environment variable", 400),
    // Nothing to run, or a file that only the client has: refused at once instead of by a failed driver.
    ("create: empty strings", 400),
    ("create: scalar for a string field", 400),
    // The gateway reports an unknown class, as for any other class that is no message.
    ("the message's base", 400),
    // TRACE would return the request's headers.
    ("TRACE on create", 405),
    ("TRACE on status", 405),
    // The limit was introduced in 4.3; the gateway always applies it.
    ("too large", 413),
];

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Recorded {
    name: String,
    method: String,
    target: String,
    body: Option<String>,
    body_hex: Option<String>,
    status: u16,
    headers: std::collections::BTreeMap<String, String>,
    answer: String,
}

impl Recorded {
    fn body(&self) -> Vec<u8> {
        match (&self.body, &self.body_hex) {
            (Some(text), _) => text.clone().into_bytes(),
            (_, Some(hex)) => {
                (0..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap()).collect()
            }
            _ => Vec::new(),
        }
    }
}

#[sqlx::test]
async fn answers_as_spark_3_5_9(pool: PgPool) {
    replay(include_str!("recorded-3.5.9.json"), "3.5.9", pool).await;
}

#[sqlx::test]
async fn answers_as_spark_4_3_0(pool: PgPool) {
    replay(include_str!("recorded-4.3.0.json"), "4.3.0", pool).await;
}

async fn replay(recorded: &str, version: &str, pool: PgPool) {
    let face = face(version.parse::<SparkVersion>().unwrap(), pool).await;
    let records: Vec<Recorded> = serde_json::from_str(recorded).unwrap();
    let good = records[0].body();
    let mut ids = Vec::new();
    for name in ["@live", "@killed"] {
        let answer = ask(&face, "POST", "/v1/submissions/create", good.clone()).await;
        ids.push((name, answer.json()["submissionId"].as_str().unwrap().to_owned()));
    }
    ask(&face, "POST", &format!("/v1/submissions/kill/{}", ids[1].1), Vec::new()).await;

    let mut wrong = Vec::new();
    for record in &records {
        let target = ids.iter().fold(record.target.clone(), |target, (name, id)| target.replace(name, id));
        let answer = ask(&face, &record.method, &target, record.body()).await;
        if let Some(problem) = compare(record, &answer)
            && !is_meant(record, &answer)
        {
            wrong.push(format!("{}: {} {target}: {problem}\n{answer:?}\n{record:?}", record.name, record.method));
        }
    }
    assert!(wrong.is_empty(), "{} of {} differ:\n\n{}", wrong.len(), records.len(), wrong.join("\n\n"));
}

fn is_meant(record: &Recorded, answer: &Answer) -> bool {
    DIFFERENT.contains(&(record.name.as_str(), answer.status))
        && (matches!(answer.status, 200 | 405) || answer.json()["action"] == "ErrorResponse")
}

fn compare(record: &Recorded, answer: &Answer) -> Option<String> {
    if answer.status != record.status {
        return Some(format!("status {} for {}", answer.status, record.status));
    }
    for name in ["content-type", "cache-control", "allow"] {
        let expected = record.headers.get(name).map(|value| value.replace("TRACE, ", ""));
        // HTTP requires a list of allowed methods with a 405; Jetty's answer has none.
        if answer.header(name) != expected.as_deref() && !(name == "allow" && answer.status == 405) {
            return Some(format!("{name} {:?} for {expected:?}", answer.header(name)));
        }
    }
    let (body, expected) = (plain(&answer.body), &record.answer);
    let same = match expected {
        // The text of Jackson's parse errors differs; that there is a parse error must not.
        _ if expected.contains(": com.fasterxml.jackson.") => body.contains(": com.fasterxml.jackson."),
        // The pages of Jetty before version 12 identify a servlet by its address in memory.
        _ if expected.contains("SERVLET:") => body.contains("<h2>HTTP ERROR 405"),
        _ => body == *expected,
    };
    (!same).then(|| "another body".to_owned())
}

/// Returns the recorded form: with equal ids, and without the cause, which Spark only logs.
fn plain(body: &str) -> String {
    let mut text = body.to_owned();
    if let Some(start) = text.find("\\nCaused by: ")
        && let Some(end) = text[start..].find("\",\n")
    {
        text.replace_range(start..start + end, "");
    }
    let mut plain = String::new();
    let mut rest = text.as_str();
    while let Some(start) = rest.find("driver-2") {
        plain.push_str(&rest[..start]);
        plain.push_str("driver-0");
        rest = rest[start + "driver-".len()..].trim_start_matches(|c: char| c.is_ascii_digit() || c == '-');
    }
    plain + rest
}
