//! What the attempt after a failed one gets that the failed one lacked: more memory, or other nodes.
//!
//! The stored objects of an attempt are those that were accepted. What an attempt gets beyond them follows from how all earlier ones
//! ended, and is recorded before anything is created, so each try of its launch makes the same change.

mod memory;
mod nodes;

use std::sync::Arc;

use futures::FutureExt;

use sparkgate_cluster::{Manifest, Overlay};
use sparkgate_common::error::Error;
use sparkgate_core::{
    judgement::refusal_of_changed,
    ports::{Attachment, Attempt, LaunchChange, NoLaunch, Resolution, Step},
};
use sparkgate_store::{EarlierAttempt, Store};
use sparkgate_tenancy::access_file::AccessFile;

/// A feature that changes the objects of later attempts.
pub struct LaterAttempts {
    store: Store,
    access: Arc<AccessFile>,
    rule: Rule,
}

/// What a feature changes.
#[derive(Clone, Copy)]
struct Rule {
    /// The feature, in the record of a launch.
    name: &'static str,
    /// What the names of the properties have by which a submission asks for it.
    property: &'static str,
    /// Derives the change of an attempt from the ones before it and its stored objects.
    overlay: fn(&[EarlierAttempt], &Manifest) -> Result<Overlay, NoLaunch>,
}

impl Attachment for LaterAttempts {
    fn resolve<'a>(&'a self, attempt: &'a Attempt<'a>, manifest: &'a mut Manifest) -> Step<'a, Resolution> {
        // The properties of the driver are in the last object.
        let asks = |manifest: &Manifest| {
            manifest.beside.last().is_some_and(|object| object.get().contains(self.rule.property))
        };
        (attempt.number > 1 && asks(manifest)).then(|| self.change(attempt, manifest).boxed())
    }
}

impl LaterAttempts {
    /// Returns the features, in the order in which they change an attempt.
    pub fn all(store: &Store, access: &Arc<AccessFile>) -> [Arc<dyn Attachment>; 2] {
        [memory::RULE, nodes::RULE]
            .map(|rule| Arc::new(Self { store: store.clone(), access: access.clone(), rule }) as Arc<dyn Attachment>)
    }

    /// Makes the change that follows from the earlier attempts, or the recorded one, if the launch was tried before.
    async fn change(&self, attempt: &Attempt<'_>, manifest: &mut Manifest) -> Result<Resolution, Error> {
        let by = self.rule.name;
        let (earlier, recorded) = self.store.earlier_attempts(attempt.id, attempt.number).await?;
        let recorded = recorded.as_ref().and_then(|changes| {
            let change = changes.as_array()?.iter().find(|change| change["by"] == by)?;
            let mut overlay = change.as_object()?.clone();
            overlay.remove("by");
            serde_json::from_value(overlay.into()).ok()
        });
        let overlay = match recorded {
            Some(overlay) => overlay,
            // Its objects exist without a change.
            None if attempt.is_begun => return Ok(Resolution::Ready),
            None => match (self.rule.overlay)(&earlier, manifest) {
                Ok(overlay) => overlay,
                Err(why) => return Ok(Resolution::Refused(why)),
            },
        };
        if overlay.is_empty() {
            return Ok(Resolution::Ready);
        }
        let changed = match manifest.with_overlay(&overlay) {
            Ok(changed) => changed,
            Err(error) => return Ok(Resolution::Refused(error.into())),
        };
        if !attempt.is_begun
            && let Some(refusal) = refusal_of_changed(&self.access, attempt.namespace, &changed)
        {
            return Ok(refusal);
        }
        tracing::info!(submission = %attempt.id, attempt = attempt.number, by, ?overlay, "the objects of the attempt are changed");
        *manifest = changed;
        Ok(Resolution::Changed(Box::new(LaunchChange { by, overlay })))
    }
}
