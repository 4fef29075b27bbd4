//! Converts the actions of spark-submit to an [`Answer`]: random names, times and places are replaced by the ones that
//! Sparkgate is given.

use serde_json::Value;

use super::{command::NO_WAIT, oracle::Raw};
use crate::{
    answer::Answer,
    case::{Case, MASTER},
    ours::{ENTROPY, SUBMITTED_AT_MS},
};

const DATE: &str = "#Fri Jan 02 03:04:05 UTC 2026";
/// How far the time in a unique id may be from the time of the run.
const CLOCK_MS: u64 = 3_600_000;

pub(crate) fn answer(case: &Case, raw: &Raw) -> Answer {
    if let Some(error) = raw.answer["error"].as_array().and_then(|chain| chain.first()) {
        return Answer::Refused(sentence(error, &raw.here));
    }
    let calls: Vec<&Value> = raw.answer["calls"].as_array().into_iter().flatten().collect();
    let Some(pod) = calls.iter().position(|call| call["method"] == "POST" && call["body"]["kind"] == "Pod") else {
        return Answer::Refused(String::new()); // such as --kill, --version
    };
    let before: Vec<&Value> = calls[..pod].iter().map(|call| &call["path"]).collect();
    let mut objects = Vec::new();
    for (at, call) in calls.iter().enumerate() {
        let again = at > pod && before.contains(&&call["path"]);
        if ["POST", "PATCH"].contains(&call["method"].as_str().unwrap_or_default()) && !again {
            objects.push(object(call, at <= pod));
        }
    }
    let names = Names::of(&objects, raw);
    for object in &mut objects {
        rename(object, &|text| names.replace(text));
        if let Some(text) = object.pointer_mut("/data/spark.properties") {
            *text = properties(text.as_str().unwrap_or_default(), case).into();
        }
    }
    Answer::objects(objects, case)
}

/// Exceptions from outside Spark, whose messages aren't about the request.
const NOT_SPARKS: [&str; 8] = [
    "io.fabric8.kubernetes.client.KubernetesClientException",
    "java.io.FileNotFoundException",
    "java.lang.NullPointerException",
    "java.lang.NumberFormatException",
    "java.lang.NoSuchMethodException",
    "java.nio.charset.MalformedInputException",
    "java.nio.file.NoSuchFileException",
    "org.apache.spark.SparkUserAppException",
];

/// Returns the message of an exception without its decoration.
fn sentence(error: &Value, here: &str) -> String {
    let class = error["class"].as_str().unwrap_or_default();
    let message = error["message"].as_str().unwrap_or_default();
    if NOT_SPARKS.contains(&class) || message.starts_with("java.") || message == "Is a directory" {
        return String::new();
    }
    let message = message.replace(&format!("{here}/"), "");
    let mut text = message.lines().next().unwrap_or_default().trim();
    text = text.strip_prefix("requirement failed: ").unwrap_or(text);
    if text.starts_with('[')
        && let Some((class, rest)) = text.split_once("] ")
        && class[1..].chars().all(|c| c.is_ascii_uppercase() || "_.".contains(c))
    {
        text = rest;
    }
    text.split(" SQLSTATE: ").next().unwrap_or(text).to_owned()
}

/// Returns an object as it was sent, with its namespace and without what the API server or the order of calls adds.
fn object(call: &Value, before_pod: bool) -> Value {
    let mut object = call["body"].clone();
    let path = call["path"].as_str().unwrap_or_default();
    let namespace = path.split("/namespaces/").nth(1).and_then(|rest| rest.split('/').next()).unwrap_or_default();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.insert("namespace".into(), namespace.into());
        let is_ours = |owners: &Value| owners[0]["uid"] == "uid-1" && owners[0]["controller"] == true;
        let owned = metadata.get("ownerReferences").is_some_and(is_ours);
        if owned {
            metadata.remove("ownerReferences");
        }
        // The server's answer to the first call, which Spark sends again.
        if metadata.get("uid").is_some_and(|uid| uid == "uid-1") {
            metadata.remove("uid");
        }
        assert!(owned != before_pod, "{path}: only objects after the pod are owned by it");
    }
    object
}

/// The random parts of one run.
struct Names {
    fixed: Vec<(String, String)>,
    prefix_ids: Vec<String>,
}

fn id(random: [u8; 3]) -> String {
    let [a, b, c] = random;
    format!("{a:02x}{b:02x}{c:02x}{:x}", SUBMITTED_AT_MS & ((1 << 40) - 1))
}

impl Names {
    fn of(objects: &[Value], raw: &Raw) -> Self {
        let text = Value::from(objects.to_vec()).to_string();
        let pod = objects.iter().find(|object| object["kind"] == "Pod");
        let label = |name: &str| pod.and_then(|pod| pod["metadata"]["labels"][name].as_str()).unwrap_or_default();
        let mut fixed = vec![
            (raw.address.clone(), MASTER.to_owned()),
            (raw.address.replace(':', "\\:"), MASTER.replace(':', "\\:")),
            (raw.here.clone(), "/submitter".to_owned()),
        ];
        if let Some(at) = text.find("/var/data/spark-") {
            let directory = &text[at..at + "/var/data/spark-".len() + 36];
            fixed.push((directory.to_owned(), format!("/var/data/spark-{}", ENTROPY.local_dir)));
        }
        // At its first occurrence: a pod without its basic step has no label.
        let is_id = |rest: &&str| rest.len() >= 32 && rest.bytes().take(32).all(|byte| byte.is_ascii_hexdigit());
        if let Some(rest) = text.split("spark-").skip(1).find(is_id) {
            fixed.push((format!("spark-{}", &rest[..32]), format!("spark-{}", ENTROPY.app_id.simple())));
        }
        let mut prefix_ids = Vec::new();
        for object in objects {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            let of = |before, after| name.strip_prefix(before).and_then(|rest: &str| rest.strip_suffix(after));
            match object["kind"].as_str() {
                Some("ConfigMap") if let Some(own) = of("spark-drv-", "-conf-map") => {
                    fixed.push((own.to_owned(), id(ENTROPY.config_map)));
                }
                // An application called `spark` has such a name for another reason.
                Some("Service")
                    if let Some(own) = of("spark-", "-driver-svc")
                        && own.len() == 16
                        && !own.contains('-')
                        && label("spark-app-name") != "spark" =>
                {
                    fixed.push((own.to_owned(), id(ENTROPY.driver_service)));
                }
                _ => {}
            }
        }
        for run in text.split(|c: char| !matches!(c, '0'..='9' | 'a'..='f' | 'x')) {
            let age = run.get(6..).and_then(|time| u64::from_str_radix(time, 16).ok());
            let near = age.is_some_and(|time| raw.at_ms.abs_diff(raw.at_ms & !((1 << 40) - 1) | time) < CLOCK_MS);
            let known = fixed.iter().any(|(own, _)| own == run) || prefix_ids.iter().any(|own| own == run);
            if run.len() == 16 && near && !known {
                prefix_ids.push(run.to_owned());
            }
        }
        Self { fixed, prefix_ids }
    }

    fn replace(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (own, fixed) in &self.fixed {
            text = text.replace(own.as_str(), fixed);
        }
        let prefix = id(ENTROPY.resource_prefix);
        for own in &self.prefix_ids {
            text = text.replace(&format!("-{own}"), &format!("-{prefix}"));
            // If the id begins a name, Spark replaces its first character by a letter.
            text = text.replace(own.as_str(), &format!("x{}", &prefix[1..]));
        }
        text
    }
}

fn rename(value: &mut Value, to: &impl Fn(&str) -> String) {
    match value {
        Value::String(text) => *text = to(text),
        Value::Array(items) => items.iter_mut().for_each(|item| rename(item, to)),
        Value::Object(fields) => {
            *fields = std::mem::take(fields).into_iter().map(|(name, field)| (to(&name), field)).collect();
            fields.values_mut().for_each(|field| rename(field, to));
        }
        _ => {}
    }
}

/// Removes the lines that the run itself added.
fn properties(text: &str, case: &Case) -> String {
    let own = &case.request.spark_properties;
    let mut lines = Vec::new();
    for (at, line) in text.split('\n').enumerate() {
        let key = line.split('=').next().unwrap_or_default();
        let variable = key.strip_prefix("spark.kubernetes.driverEnv.");
        if at == 1 {
            lines.push(DATE.to_owned());
        } else if key == NO_WAIT {
            lines.extend(own.get(NO_WAIT).map(|value| format!("{key}={value}")));
        } else if key == "spark.app.submitTime" && !own.contains_key(key) && !mentions(case, key) {
            lines.push(format!("{key}={SUBMITTED_AT_MS}"));
        } else if let Some(name) = variable
            && case.request.environment_variables.contains_key(name)
            && !own.contains_key(key)
        {
            // Sparkgate doesn't repeat a variable as a property.
        } else {
            lines.push(line.to_owned());
        }
    }
    lines.join("\n")
}

fn mentions(case: &Case, key: &str) -> bool {
    case.defaults.contains_key(key) || case.request.app_args.iter().any(|arg| arg.contains(key))
}
