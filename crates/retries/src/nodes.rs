//! Other nodes for the attempts after one that the cluster ended, where a submission asks for it by `afterNodeLoss`: the second attempt
//! of a driver on a spot node that was reclaimed runs on an on-demand node.

use sparkgate_cluster::{Manifest, Overlay};
use sparkgate_core::ports::NoLaunch;
use sparkgate_requests::options::again::{AFTER_NODE_LOSS, AfterNodeLoss};
use sparkgate_store::EarlierAttempt;
use sparkgate_submission::{FailureCode, RetryKind};

use crate::Rule;

/// Other nodes.
pub(crate) const RULE: Rule = Rule { name: "afterNodeLoss", property: AFTER_NODE_LOSS, overlay };

/// Returns what an attempt gets after these: other nodes, once the cluster ended one of them.
fn overlay(earlier: &[EarlierAttempt], manifest: &Manifest) -> Result<Overlay, NoLaunch> {
    let by_cluster =
        |attempt: &EarlierAttempt| attempt.code.and_then(FailureCode::retry_kind) == Some(RetryKind::Infrastructure);
    let mut overlay = Overlay::default();
    if earlier.iter().any(by_cluster) {
        overlay.node_selector = AfterNodeLoss::of_driver(&manifest.properties()?).node_selector;
    }
    Ok(overlay)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nodes_change_once_the_cluster_ended_an_attempt() {
        let text = "spark.sparkgate.afterNodeLoss.nodeSelector.karpenter.sh/capacity-type=on-demand\n\
                    spark.sparkgate.afterNodeLoss.nodeSelector.spot=\n";
        let map = json!({"kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"spark.properties": text}});
        let pod = json!({"kind": "Pod", "spec": {"containers": [{"name": "d"}]}});
        let manifest: Manifest = serde_json::from_value(json!({"before": [], "pod": pod, "beside": [map]})).unwrap();
        let ended = |code| EarlierAttempt { code, memory: None };
        let lost = ended(Some(FailureCode::NodeLost));
        let failed = ended(Some(FailureCode::ApplicationError));
        for (earlier, expected) in [
            (&[][..], false),
            (&[failed.clone(), ended(None)], false),
            (std::slice::from_ref(&lost), true),
            (&[lost.clone(), failed], true),
            (&[ended(Some(FailureCode::Evicted))], true),
        ] {
            let overlay = overlay(earlier, &manifest).unwrap();
            let selector: Vec<_> = overlay.node_selector.into_iter().collect();
            let capacity = ("karpenter.sh/capacity-type".to_owned(), Some("on-demand".to_owned()));
            let wanted = if expected { vec![capacity, ("spot".to_owned(), None)] } else { Vec::new() };
            assert_eq!(selector, wanted, "{earlier:?}");
        }
    }
}
