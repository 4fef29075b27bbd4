//! Single rules, tested with edge cases and random texts; and the keys that each release registers.

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::{Value, json};

use super::oracle::Oracle;
use crate::{
    generate::{Random, SEED},
    vectors::{RULES, Vectors},
};

/// Records the keys and rules of all releases. If an older release gives other answers than the newest, these are
/// recorded under `rule version`.
pub(crate) fn record(versions: &[&str]) -> Result<(Value, Vectors)> {
    let mut keys: BTreeMap<String, BTreeMap<String, Value>> = BTreeMap::new();
    let mut vectors = Vectors::new();
    for version in versions.iter().rev() {
        let mut oracle = Oracle::start(version, None)?;
        for (key, entry) in oracle.ask(&json!({ "op": "keys" }))?.as_object().into_iter().flatten() {
            if key.starts_with("spark.kubernetes.") {
                keys.entry(key.clone()).or_default().insert((*version).to_owned(), entry["default"].clone());
            }
        }
        for (rule, edges, alphabet) in RULES {
            let inputs = inputs(edges, alphabet);
            let answers = oracle.ask(&json!({ "op": rule, "inputs": inputs }))?;
            let answers: Vec<Option<String>> = serde_json::from_value(answers)?;
            let answers = answers.into_iter().map(|answer| answer.map(|answer| fixed(rule, &answer)));
            let pairs: BTreeMap<String, Option<String>> = inputs.into_iter().zip(answers).collect();
            match vectors.get(*rule) {
                None => drop(vectors.insert((*rule).to_owned(), pairs)),
                Some(newest) => {
                    let other = pairs.into_iter().filter(|(input, answer)| newest.get(input) != Some(answer));
                    vectors.insert(format!("{rule} {version}"), other.collect());
                }
            }
        }
    }
    vectors.retain(|_, answers| !answers.is_empty());
    let keys: BTreeMap<String, Vec<Value>> = keys.into_iter().map(|(key, defaults)| (key, alike(defaults))).collect();
    Ok((json!(keys), vectors))
}

/// Groups releases with the same default: `[["4.1.4", "4.2.1"], "1s"]`.
fn alike(defaults: BTreeMap<String, Value>) -> Vec<Value> {
    let mut groups: Vec<(Value, Vec<String>)> = Vec::new();
    for (version, default) in defaults {
        match groups.iter_mut().find(|(same, _)| *same == default) {
            Some((_, versions)) => versions.push(version),
            None => groups.push((default, vec![version])),
        }
    }
    groups.into_iter().map(|(default, versions)| json!([versions, default])).collect()
}

fn inputs(edges: &[&str], alphabet: &[&str]) -> Vec<String> {
    let mut random = Random::new(SEED);
    let mut inputs: Vec<String> = edges.iter().map(|edge| (*edge).to_owned()).collect();
    while inputs.len() < edges.len() + 120 {
        let length = 1 + random.below(10);
        inputs.push((0..length).map(|_| alphabet[random.below(alphabet.len())]).collect());
    }
    inputs
}

/// Removes the unique id that Spark generates for every prefix.
fn fixed(rule: &str, answer: &str) -> String {
    match rule {
        "prefix" if answer.starts_with('x') && answer.len() == 16 || answer.len() == 16 => "{id}".to_owned(),
        "prefix" => format!("{}{{id}}", &answer[..answer.len() - 16]),
        _ => answer.to_owned(),
    }
}
