//! What the attempt after a failed one gets that the failed one lacked: more memory, or other nodes.
//!
//! The stored objects of an attempt are those that were accepted. What an attempt gets beyond them follows from how all earlier ones
//! ended, and is recorded before anything is created, so each try of its launch makes the same change.

mod memory;
mod nodes;

use std::sync::Arc;

use sparkgate_cluster::{Manifest, Overlay};
use sparkgate_common::error::Error;
use sparkgate_core::{
    judgement::refusal_of_changed,
    ports::{Attempt, LaunchChange, NoLaunch, Resolution},
};
use sparkgate_store::{EarlierAttempt, Store};
use sparkgate_tenancy::access_file::AccessFile;

pub use memory::Growth;
pub use nodes::AfterNodeLoss;

/// Makes the changes of a feature in the objects of an attempt.
#[derive(Clone)]
pub struct Changes {
    store: Store,
    access: Arc<AccessFile>,
}

impl Changes {
    pub fn new(store: Store, access: Arc<AccessFile>) -> Self {
        Self { store, access }
    }

    /// Returns whether earlier attempts may change this one: there are some, and the driver has a property with this text in its name.
    fn may_follow(attempt: &Attempt<'_>, manifest: &Manifest, property: &str) -> bool {
        // The properties of the driver are in the last object.
        attempt.number > 1 && manifest.beside.last().is_some_and(|object| object.get().contains(property))
    }

    /// Makes the change that `overlay` derives from the earlier attempts, or the recorded one, if the launch was tried before.
    async fn make(
        &self,
        by: &'static str,
        attempt: &Attempt<'_>,
        manifest: &mut Manifest,
        overlay: impl Fn(&[EarlierAttempt], &Manifest) -> Result<Overlay, NoLaunch> + Send,
    ) -> Result<Resolution, Error> {
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
            None => match overlay(&earlier, manifest) {
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
