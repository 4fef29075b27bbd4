//! The objects of attempts: those of the first are stored with the submission, those of later ones are derived.

use serde_json::Value;
use uuid::Builder;

use super::Launcher;
use crate::{
    effects::Stopped,
    encryption::{StoredObjects, Undecryptable},
    ports::{NoLaunch, Wait},
};

use sparkgate_cluster::Manifest;
use sparkgate_spark::{NameEntropy, REDACTED};
use sparkgate_store::{Before, Claimed};
use sparkgate_submission::{Installation, SubmissionId};

/// The reason of a submission that waits because its objects can't be decrypted.
const NO_KEY: &str = "EncryptionKeyMissing";

impl From<Undecryptable> for Stopped {
    fn from(error: Undecryptable) -> Self {
        let message = format!("the objects can't be decrypted: {error}");
        Self::Waits(Wait { reason: NO_KEY, result: "no_key", message })
    }
}

/// The objects of a claimed submission, and the name of its driver pod.
pub(super) struct Objects {
    pub(super) manifest: Manifest,
    pub(super) pod: String,
    /// Why they must not be created.
    pub(super) fault: Option<NoLaunch>,
}

impl Objects {
    fn none(pod: String, fault: Option<NoLaunch>) -> Self {
        Self { manifest: Manifest::default(), pod, fault }
    }
}

impl Launcher {
    /// Returns the stored objects of a claimed attempt. The first launch of a later attempt derives its objects from those of
    /// the previous attempt, with new names, and stores them before anything is created.
    ///
    /// Nothing in them makes a kubelet start the driver a second time, whichever release stored them.
    pub(super) async fn objects(&self, claimed: &Claimed, launch: bool) -> Result<Objects, Stopped> {
        let pod = claimed.pod.clone();
        if let Some(text) = &claimed.manifest {
            let manifest = match &claimed.sealed {
                Some(sealed) => Manifest::read(&self.keys.unseal(sealed, &claimed.id, claimed.attempt)?),
                None => Manifest::read(text),
            };
            return Ok(match manifest {
                Ok(manifest) => Objects { manifest, pod, fault: None },
                Err(error) => {
                    let why = format!("the stored objects of the submission can't be read: {error}");
                    Objects::none(pod, Some(NoLaunch::unreadable(why)))
                }
            });
        }
        if !launch {
            // Nothing of this attempt was created.
            return Ok(Objects::none(pod, None));
        }
        let before = if claimed.attempt > 1 { self.store.attempt_before(claimed).await? } else { None };
        let Some(before) = before else {
            let why = "the objects of the submission weren't stored: submit it again".to_owned();
            return Ok(Objects::none(pod, Some(NoLaunch::unreadable(why))));
        };
        self.begin_attempt(claimed, &before).await
    }

    async fn begin_attempt(&self, claimed: &Claimed, before: &Before) -> Result<Objects, Stopped> {
        let (entropy, unique) = entropy_of(&self.installation, &claimed.id, claimed.attempt);
        let names = before.names.drawn_anew(unique, &entropy);
        let pod = names.driver_pod.clone();
        if before.sealed.is_none() && before.manifest.contains(REDACTED) {
            let why =
                "the secrets of the submission were removed, because no other attempt was expected: submit it again"
                    .to_owned();
            return Ok(Objects::none(pod, Some(NoLaunch::unreadable(why))));
        }
        let identity = self.installation.identity(&claimed.id, claimed.attempt, &claimed.namespace, &pod);
        let unsealed;
        let objects = match &before.sealed {
            Some(sealed) => {
                unsealed = self.keys.unseal(sealed, &claimed.id, before.attempt)?;
                &unsealed
            }
            None => &before.manifest,
        };
        let made = serde_json::from_str::<Manifest<Value>>(objects)
            .map_err(|error| error.to_string())
            .and_then(|manifest| manifest.for_attempt(claimed.attempt, &before.names, &names, &identity))
            .and_then(|manifest| serde_json::to_string(&manifest).map_err(|error| error.to_string()))
            .and_then(|text| Ok((Manifest::read(&text).map_err(|error| error.to_string())?, text)));
        let (manifest, text) = match made {
            Ok(made) => made,
            Err(why) => {
                let why = format!("the objects can't be derived from those of the previous attempt: {why}");
                return Ok(Objects::none(pod, Some(NoLaunch::unreadable(why))));
            }
        };
        let StoredObjects { objects, sealed } =
            self.keys.seal(text, &claimed.id, claimed.attempt).map_err(Stopped::Store)?;
        if !self.store.keep_attempt(claimed, &names, &objects, sealed.as_ref()).await? {
            return Err(Stopped::ClaimLost);
        }
        Ok(Objects { manifest, pod, fault: None })
    }
}

/// Derives the randomness of a later attempt's names, and the number in them that is otherwise the time, from the installation's
/// key. So the attempt has the same names if the database is restored from a backup that lacks it: its launch then finds the
/// driver that already exists. Without the key, the names can't be predicted.
fn entropy_of(installation: &Installation, id: &SubmissionId, attempt: i32) -> (NameEntropy, i64) {
    let derive = |part: &str| {
        let key = installation.own_key_for(&format!("names of {id}, attempt {attempt}: {part}"));
        Builder::from_random_bytes(std::array::from_fn(|at| key[at])).into_uuid()
    };
    let entropy = NameEntropy::from_uuids(derive("app id"), derive("local dir"), derive("prefix"), derive("others"));
    // The forty bits of a time that are part of a name.
    let (time, _) = derive("time").as_u64_pair();
    (entropy, (time >> 24) as i64)
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn names_of_an_attempt_are_the_same_each_time_and_those_of_no_other() {
        let ours = Installation::new(Uuid::nil(), vec![7; 32]);
        let id: SubmissionId = "driver-20260101000000-0001".parse().unwrap();
        let other: SubmissionId = "driver-20260101000000-0002".parse().unwrap();
        let names = |installation: &Installation, id, attempt| format!("{:?}", entropy_of(installation, id, attempt));
        let second = names(&ours, &id, 2);
        assert_eq!(second, names(&ours, &id, 2));
        assert!(entropy_of(&ours, &id, 2).1 > 0);
        let others = [
            names(&ours, &id, 3),
            names(&ours, &other, 2),
            names(&Installation::new(Uuid::nil(), vec![8; 32]), &id, 2),
        ];
        assert!(others.iter().all(|other| *other != second), "{others:?}");
    }
}
