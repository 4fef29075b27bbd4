//! Fields of a pod that a policy permits or not.

use crate::{judgement::Judgement, node::Node};

pub(super) fn judge(judgement: &mut Judgement<'_>, spec: &Node<'_>) {
    let document = &judgement.rules.document;
    for (field, rule, permitted) in [
        ("shareProcessNamespace", "shareProcessNamespace", document.share_process_namespace),
        ("hostAliases", "hostAliases", document.host_aliases),
        ("dnsConfig", "dns", document.dns),
        ("resourceClaims", "resourceClaims", document.resource_claims),
    ] {
        let node = spec.field(field);
        if !permitted && node.is_set() {
            judgement.report(rule, &node, "the policy doesn't permit it");
        }
    }
    let dns = spec.field("dnsPolicy");
    if !document.dns && !matches!(dns.text(), None | Some("" | "ClusterFirst")) {
        judgement.report("dns", &dns, "it must be ClusterFirst or absent");
    }
}
