//! Images of containers and image volumes.

use super::each_container;
use crate::{image, judgement::Judgement, node::Node};

pub(super) fn judge(judgement: &mut Judgement<'_>, spec: &Node<'_>) {
    each_container(spec, |container| judge_image(judgement, &container.field("image")));
    for volume in spec.field("volumes").items() {
        judge_image(judgement, &volume.field("image").field("reference"));
    }
}

fn judge_image(judgement: &mut Judgement<'_>, node: &Node<'_>) {
    let (Some(permitted), Some(reference)) = (&judgement.rules.images, node.text()) else { return };
    match image::canonical(reference) {
        Some(canonical) if permitted.matches(&canonical) => {}
        Some(_) => judgement.report("images", node, format!("it must be one of {}", permitted.describe())),
        None => judgement.report("images", node, "it is not a reference to an image"),
    }
}
