//! Service accounts and their tokens.

use crate::{judgement::Judgement, node::Node};

/// The account of a pod that names none.
const DEFAULT: &str = "default";

pub(super) fn judge(judgement: &mut Judgement<'_>, spec: &Node<'_>) {
    judge_account(judgement, spec);
    judge_tokens(judgement, spec);
}

fn judge_account(judgement: &mut Judgement<'_>, spec: &Node<'_>) {
    let accounts = &judgement.rules.service_accounts;
    if accounts.is_empty() {
        return;
    }
    let message = format!("it must be one of the tenant's accounts: {}", accounts.join(", "));
    let fields = [spec.field("serviceAccountName"), spec.field("serviceAccount")];
    let mut named = false;
    for field in &fields {
        if let Some(name) = field.text().filter(|name| !name.is_empty()) {
            named = true;
            if !accounts.iter().any(|account| account == name) {
                judgement.report("serviceAccounts", field, message.clone());
            }
        }
    }
    if !named && !accounts.iter().any(|account| account == DEFAULT) {
        let message = format!("without it the pod runs as `{DEFAULT}`; {message}");
        judgement.report("serviceAccounts", &fields[0], message);
    }
}

fn judge_tokens(judgement: &mut Judgement<'_>, spec: &Node<'_>) {
    const RULE: &str = "serviceAccountTokens";
    let rules = judgement.rules;
    let automount = rules.document.service_account_tokens.automount;
    let mount = spec.field("automountServiceAccountToken");
    if !automount && mount.value != &serde_json::Value::Bool(false) {
        judgement.report(RULE, &mount, "it must be false: the policy mounts no token of a service account");
    }
    for volume in spec.field("volumes").items() {
        for source in volume.field("projected").field("sources").items() {
            let token = source.field("serviceAccountToken");
            if token.value.is_null() {
                continue;
            }
            let audience = token.field("audience");
            match audience.text().filter(|audience| !audience.is_empty()) {
                Some(name) if !rules.audiences.matches(name) => {
                    let message = format!("tokens are permitted for these audiences: {}", rules.audiences.describe());
                    judgement.report(RULE, &audience, message);
                }
                None if !automount => judgement.report(RULE, &token, "the policy mounts no token for the API server"),
                _ => {}
            }
        }
    }
}
