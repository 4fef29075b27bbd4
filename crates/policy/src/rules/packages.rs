//! Maven packages, which the driver resolves when it starts.

use crate::{document::Packages, judgement::Judgement};

const RULE: &str = "packages";

pub(super) fn judge(judgement: &mut Judgement<'_>) {
    let packages = judgement.rules.packages();
    for (key, needed) in [
        ("spark.jars.packages", Packages::Allowed),
        ("spark.jars.repositories", Packages::WithRepositories),
        ("spark.jars.ivySettings", Packages::WithRepositories),
    ] {
        let judged = judgement.judged;
        let is_set = judged.property(key).is_some_and(|value| !value.is_empty()) && !judged.origins.contains_key(key);
        let permitted = match needed {
            Packages::Allowed => packages != Packages::Forbidden,
            _ => packages == Packages::WithRepositories,
        };
        if is_set && !permitted {
            let instead = match needed {
                Packages::Allowed => "put the dependencies into the image or into spark.jars",
                _ => "packages come only from the default repositories",
            };
            judgement.report_property(RULE, key, format!("the policy doesn't permit it: {instead}"));
        }
    }
}
