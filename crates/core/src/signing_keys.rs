//! The keys that sign what is a permission by itself: URLs of files, tickets of Spark UIs, cursors of lists.
//!
//! The installation's own key is in the database, so a copy of the database could sign, too. With an encryption key file, a key is
//! derived from both, and neither is enough. Replicas of one database may have different files and releases for a while: each
//! publishes which keys it can verify, and signs with the best key that all can. A key that no longer signs verifies what was made
//! before.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use chrono::{DateTime, TimeDelta, Utc};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::{encryption::EncryptionKeys, leadership::leases::Leases};
use sparkgate_common::error::{Error, error_chain};
use sparkgate_store::{InstallationKeys, Store};
use sparkgate_submission::{Installation, SigningKey};

/// How often the keys of other replicas and of the database are read.
const LOOK: Duration = Duration::from_secs(5);
/// A replica may sign with a key for a few seconds after another one has stopped to.
const LATE: TimeDelta = TimeDelta::minutes(1);
/// How long what isn't about a submission may have been made before it is used: a ticket lasts for minutes.
const OLDEST: TimeDelta = TimeDelta::hours(1);

/// Returns the time at which a ticket or a cursor may have been made at the earliest.
pub fn made_lately() -> DateTime<Utc> {
    Utc::now() - OLDEST
}

/// Keeps the keys of the installation up to date.
#[derive(Debug)]
pub struct SigningKeys {
    store: Store,
    installation: Arc<Installation>,
    encryption: Arc<EncryptionKeys>,
    leases: Arc<Leases>,
}

impl SigningKeys {
    pub fn new(
        store: Store,
        installation: Arc<Installation>,
        encryption: Arc<EncryptionKeys>,
        leases: Arc<Leases>,
    ) -> Self {
        Self { store, installation, encryption, leases }
    }

    /// Looks for other keys until `stop`.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) {
        while stop.run_until_cancelled(sleep(LOOK)).await.is_some() {
            if let Some(Err(error)) = stop.run_until_cancelled(self.refresh()).await {
                tracing::debug!("the signing keys stay as they are: {}", error_chain(&error));
            }
        }
    }

    /// Reads the keys, publishes what this replica can verify, and chooses the key that signs.
    pub async fn refresh(&self) -> Result<(), Error> {
        let mut stored = self.store.installation_keys(self.leases.current()).await?;
        let roots = |own: &[u8]| self.encryption.roots(own);
        let (known, is_guarded) = self.use_keys(keys(&stored, roots));
        // What is published can be verified from now on.
        self.leases.publish(known).await?;
        if is_guarded != stored.guarded_since.is_some() {
            stored.guarded_since = self.store.note_guarded(is_guarded).await?;
            self.use_keys(keys(&stored, roots));
        }
        Ok(())
    }

    /// Signs and verifies with these keys from now on. Returns which can be verified, and whether the key file is needed to sign.
    fn use_keys(&self, keys: Chosen) -> (Vec<String>, bool) {
        let (own, known, is_guarded) = (keys.own.clone(), keys.known.clone(), keys.is_guarded);
        self.installation.replace_keys(own, keys.signing());
        (known, is_guarded)
    }
}

/// The keys of this replica, in the order of preference.
struct Chosen {
    /// Signs identities.
    own: Vec<u8>,
    keys: Vec<SigningKey>,
    /// The place of the key that signs.
    first: usize,
    known: Vec<String>,
    /// Whether the key that signs needs the encryption key file.
    is_guarded: bool,
}

impl Chosen {
    /// Returns the keys, the one that signs first.
    fn signing(self) -> Vec<SigningKey> {
        let Self { mut keys, first, .. } = self;
        keys[..=first].rotate_right(1);
        keys
    }
}

/// Derives all keys from the installation's own and `roots`, those of the encryption key file.
fn keys(stored: &InstallationKeys, roots: impl Fn(&[u8]) -> Vec<[u8; 32]>) -> Chosen {
    let InstallationKeys { own, former, guarded_since, others } = stored;
    let end = |time: &DateTime<Utc>| *time + LATE;
    let all: Vec<_> = [(own, None)].into_iter().chain(former.iter().map(|(key, at)| (key, Some(end(at))))).collect();
    let derived = |(key, until): &(&Vec<u8>, Option<DateTime<Utc>>)| {
        roots(key).into_iter().map(|root| SigningKey::new(root.to_vec(), *until)).collect::<Vec<_>>()
    };
    let mut keys: Vec<SigningKey> = all.iter().flat_map(derived).collect();
    let guarded = keys.len();
    let guarded_until = guarded_since.as_ref().map(end);
    keys.extend(all.iter().map(|(key, until)| {
        let until = [*until, guarded_until].into_iter().flatten().min();
        SigningKey::new((*key).clone(), until)
    }));
    let known: Vec<String> = keys.iter().map(SigningKey::fingerprint).collect();
    let others: Vec<Option<BTreeSet<&String>>> =
        others.iter().map(|known| known.as_ref().map(|known| known.iter().collect())).collect();
    let is_known = |fingerprint: &String| {
        others.iter().all(|known| known.as_ref().is_some_and(|known| known.contains(fingerprint)))
    };
    // A replica of an older release knows the installation's own key.
    let first = known.iter().position(is_known).unwrap_or(guarded);
    let own = [own].into_iter().chain(former.iter().map(|(key, _)| key)).zip(&known[guarded..]);
    let own = own.into_iter().find(|(_, fingerprint)| is_known(fingerprint)).map_or(&stored.own, |(own, _)| own);
    Chosen { own: own.clone(), first, is_guarded: first < guarded, known, keys }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn stored(others: Vec<Option<Vec<String>>>) -> InstallationKeys {
        InstallationKeys { own: vec![1], former: Vec::new(), guarded_since: None, others }
    }

    fn root(byte: u8) -> impl Fn(&[u8]) -> Vec<[u8; 32]> {
        move |own| vec![[byte + own[0]; 32]]
    }

    fn none(_: &[u8]) -> Vec<[u8; 32]> {
        Vec::new()
    }

    fn signs(chosen: Chosen) -> [u8; 32] {
        let installation = Installation::new(Uuid::nil(), vec![0]);
        installation.replace_keys(chosen.own.clone(), chosen.signing());
        installation.key_for("x")
    }

    fn key(bytes: &[u8]) -> [u8; 32] {
        Installation::new(Uuid::nil(), bytes.to_vec()).key_for("x")
    }

    #[test]
    fn a_replica_signs_with_the_best_key_that_all_can_verify() {
        let alone = keys(&stored(vec![]), root(10));
        let known = alone.known.clone();
        assert!(alone.is_guarded);
        assert_eq!(signs(alone), key(&[11; 32]));
        for (others, expected) in [
            (vec![Some(known.clone())], key(&[11; 32])),
            (vec![Some(known.clone()), None], key(&[1])),
            (vec![Some(known[1..].to_vec())], key(&[1])),
        ] {
            assert_eq!(signs(keys(&stored(others.clone()), root(10))), expected, "{others:?}");
        }
        let unguarded = keys(&stored(vec![Some(known)]), none);
        assert!(!unguarded.is_guarded);
        assert_eq!(signs(unguarded), key(&[1]));
    }

    #[test]
    fn a_new_key_of_the_installation_signs_once_all_replicas_have_it() {
        let now = Utc::now();
        let rotated = |others| InstallationKeys { own: vec![2], former: vec![(vec![1], now)], ..stored(others) };
        let before = keys(&stored(vec![]), none).known;
        let waits = keys(&rotated(vec![Some(before)]), none);
        assert_eq!(waits.own, [1], "of identities");
        let known = waits.known.clone();
        assert_eq!(signs(waits), key(&[1]));
        let all = keys(&rotated(vec![Some(known)]), none);
        assert_eq!(all.own, [2]);
        assert_eq!(signs(all), key(&[2]));
    }

    #[test]
    fn a_key_that_is_guarded_or_replaced_counts_for_what_was_made_before() {
        let (guarded, replaced) = (Utc::now() - TimeDelta::days(1), Utc::now());
        let stored = InstallationKeys {
            own: vec![2],
            former: vec![(vec![1], replaced)],
            guarded_since: Some(guarded),
            others: vec![],
        };
        let installation = Installation::new(Uuid::nil(), vec![2]);
        let chosen = keys(&stored, root(10));
        installation.replace_keys(chosen.own.clone(), chosen.signing());
        let ends: Vec<_> = installation.keys_for("x");
        let counted = |at: DateTime<Utc>| ends.iter().map(|key| key.counts_at(at)).collect::<Vec<_>>();
        assert_eq!(counted(replaced + LATE), [true, false, false, false]);
        assert_eq!(counted(replaced), [true, true, false, false]);
        assert_eq!(counted(guarded), [true; 4]);
    }
}
