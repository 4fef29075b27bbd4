//! The objects of attempts: those of the first are stored with the submission, those of later ones are derived.

use chrono::Utc;
use serde_json::Value;
use uuid::Uuid;

use super::Launcher;
use crate::{
    cluster::Manifest,
    service::effects::Stopped,
    spark::NameEntropy,
    store::{Before, Claimed},
};

/// The objects of a claimed submission, or the reason why there are none, and the name of its driver pod.
pub(super) struct Objects {
    pub(super) manifest: Result<Manifest, String>,
    pub(super) pod: String,
}

impl Launcher {
    /// Returns the stored objects of a claimed attempt. The first launch of a later attempt derives its objects from those of
    /// the previous attempt, with new names, and stores them before anything is created.
    pub(super) async fn objects(&self, claimed: &Claimed, launch: bool) -> Result<Objects, Stopped> {
        let pod = claimed.pod.clone();
        if let Some(text) = &claimed.manifest {
            let manifest = serde_json::from_str(text)
                .map_err(|error| format!("the stored objects of the submission can't be read: {error}"));
            return Ok(Objects { manifest, pod });
        }
        if !launch {
            // Nothing of this attempt was created.
            return Ok(Objects { manifest: Ok(Manifest::default()), pod });
        }
        let before = if claimed.attempt > 1 { self.store.attempt_before(claimed).await? } else { None };
        let Some(before) = before else {
            return Ok(Objects {
                manifest: Err("the objects of the submission weren't stored: submit it again".to_owned()),
                pod,
            });
        };
        self.begin_attempt(claimed, &before).await
    }

    async fn begin_attempt(&self, claimed: &Claimed, before: &Before) -> Result<Objects, Stopped> {
        let entropy = NameEntropy::from_uuids(Uuid::new_v4(), Uuid::new_v4(), Uuid::new_v4(), Uuid::new_v4());
        let names = before.names.drawn_anew(Utc::now().timestamp_millis(), &entropy);
        let pod = names.driver_pod.clone();
        let identity = self.installation.identity(&claimed.id, claimed.attempt, &claimed.namespace, &pod);
        let made = serde_json::from_str::<Manifest<Value>>(&before.manifest)
            .map_err(|error| error.to_string())
            .and_then(|manifest| manifest.for_attempt(claimed.attempt, &before.names, &names, &identity))
            .and_then(|manifest| serde_json::to_string(&manifest).map_err(|error| error.to_string()))
            .and_then(|text| Ok((serde_json::from_str(&text).map_err(|error| error.to_string())?, text)));
        let (manifest, text) = match made {
            Ok(made) => made,
            Err(why) => {
                let why = format!("the objects can't be derived from those of the previous attempt: {why}");
                return Ok(Objects { manifest: Err(why), pod });
            }
        };
        if !self.store.keep_attempt(claimed, &names, &text).await? {
            return Err(Stopped::ClaimLost);
        }
        Ok(Objects { manifest: Ok(manifest), pod })
    }
}
