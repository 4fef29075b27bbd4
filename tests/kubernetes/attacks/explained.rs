//! What explains a case without submitting it: a dry run, and `sparkgate render --policy`. They must agree with the gateway's answer.

use std::collections::BTreeSet;

use serde_json::Value;
use sparkgate::{
    app::render,
    policy::{Policy, PolicyDocument},
};

use crate::attacks::{
    corpus::{Case, Expected},
    world::{Answer, POLICY, World},
};

/// Parts of keys whose values are in a file, or make up the label of an executor.
const INDIRECT: [&str; 2] = ["podTemplateFile", "decommissionLabel"];

/// The rules of violations with the paths of the values that break them.
type Places = BTreeSet<(String, String)>;

/// Returns how a case is explained otherwise than the gateway answered it.
pub(crate) async fn differences(world: &World, case: &Case, answer: &Answer) -> Vec<String> {
    let mut found = Vec::new();
    let violations = violations(answer);
    let of_rule: Vec<&Value> = violations.iter().filter(|violation| violation["rule"] == case.rule).collect();
    if !of_rule.is_empty() && !of_rule.iter().any(|violation| names_what_is_set(case, violation)) {
        found.push(format!("no path or cause of {} names any of {:?}: {of_rule:?}", case.rule, case.sets));
    }
    let dry = world.dry_run(case).await;
    // A dry run that succeeds creates nothing, which is its only difference.
    let expected = if answer.status == 201 { 200 } else { answer.status };
    let places = places(violations);
    if dry.status != expected
        || dry.body["code"] != answer.body["code"]
        || self::places(self::violations(&dry)) != places
    {
        found.push(format!("the dry run: {} {}", dry.status, dry.body));
    }
    // Without an access file there are no namespaces and accounts of a tenant.
    if case.expected != Expected::RefusedByGateway {
        let expected = places.into_iter().filter(|(rule, _)| rule != "serviceAccounts").collect();
        found.extend(rendered(world, case, answer, &expected).map(|what| format!("render: {what}")));
    }
    found
}

/// Returns what `sparkgate render --policy` says, unless it is what is expected.
fn rendered(world: &World, case: &Case, answer: &Answer, expected: &Places) -> Option<String> {
    let document: PolicyDocument = serde_json::from_str(POLICY).unwrap();
    let policy = Policy::compile(document, &[]).unwrap();
    let body = case.request.body.to_string();
    let mut notes = Vec::new();
    let outcome = render::run(body.as_bytes(), std::io::sink(), &mut notes, world.spark(case.release), Some(&policy));
    let notes = String::from_utf8(notes).unwrap();
    let violation = |line: &str| {
        let mut parts = line.strip_prefix("sparkgate: policy: ")?.splitn(3, ": ");
        Some((parts.next()?.to_owned(), stable(parts.next()?)))
    };
    let said: Places = notes.lines().filter_map(violation).collect();
    let fine = match &outcome {
        Ok(()) => said.is_empty() && (answer.status == 201 || !violations(answer).is_empty()),
        Err(render::RenderError::Policy(_)) => !said.is_empty(),
        Err(_) => answer.status >= 400 && violations(answer).is_empty(),
    };
    (!fine || said != *expected).then(|| format!("{outcome:?} {notes}"))
}

/// Returns whether a violation names a key or a field that the case sets, unless what is set shows only in another place.
fn names_what_is_set(case: &Case, violation: &Value) -> bool {
    // Limits bound sums.
    if case.rule == "limits" || case.sets.iter().any(|key| INDIRECT.iter().any(|part| key.contains(part))) {
        return true;
    }
    let texts = [&violation["path"], &violation["cause"]].map(|text| text.as_str().unwrap_or_default());
    texts.iter().any(|text| case.sets.iter().any(|name| text.contains(name.as_str())))
}

fn violations(answer: &Answer) -> &[Value] {
    answer.body["violations"].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn places(violations: &[Value]) -> Places {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    violations.iter().map(|violation| (text(&violation["rule"]), stable(&text(&violation["path"])))).collect()
}

/// Returns a path without the name of its object, which is generated anew for each request: `ConfigMap[a-0123-conf-map]/data`.
fn stable(path: &str) -> String {
    match path.split_once('[') {
        Some((kind, rest)) if kind != "sparkProperties" && !kind.contains('/') => {
            format!("{kind}{}", rest.split_once(']').map_or("", |(_, rest)| rest))
        }
        _ => path.to_owned(),
    }
}
