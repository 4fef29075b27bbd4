//! Clients that upload files, delete some, and read the others back, while jobs use them.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use bytes::Bytes;
use sha2::{Digest, Sha256};
use sparkgate_testing::dice::Dice;
use tokio::time::{Instant, sleep};

use super::{
    http::{Content, Gateway, NoReply, transfer},
    tenants::Tenant,
    world::World,
};

/// Clients that upload at the same time.
const CLIENTS: u32 = 6;

/// What is known of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// A gateway accepted it.
    Accepted,
    /// A job uses it, or was refused while it named it. It isn't deleted.
    Used,
    /// A client asked to delete it.
    Deleting,
    /// A gateway said that it is deleted.
    Deleted,
}

/// A file that a gateway accepted, by its tenant's namespace and its digest.
pub(crate) type Name = (String, String);

/// The accepted files, and the replies that no client should get.
#[derive(Debug, Default)]
pub(crate) struct Shelf {
    files: Mutex<BTreeMap<Name, Standing>>,
    odd: Mutex<Vec<String>>,
}

impl Shelf {
    pub(crate) fn files(&self) -> MutexGuard<'_, BTreeMap<Name, Standing>> {
        self.files.lock().unwrap()
    }

    pub(crate) fn odd(&self) -> Vec<String> {
        self.odd.lock().unwrap().clone()
    }

    /// Returns how many files were accepted, and how many of them were deleted.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let files = self.files();
        (files.len(), files.values().filter(|standing| **standing == Standing::Deleted).count())
    }

    /// Returns the digest of a file for a job of this namespace. It isn't deleted any more.
    pub(crate) fn use_one(&self, namespace: &str, dice: &mut Dice) -> Option<String> {
        let mut files = self.files();
        let there = |standing: Standing| matches!(standing, Standing::Accepted | Standing::Used);
        let usable: Vec<Name> = files
            .iter()
            .filter(|((of, _), now)| of == namespace && there(**now))
            .map(|(name, _)| name.clone())
            .collect();
        let name = dice.pick(&usable)?.clone();
        files.insert(name.clone(), Standing::Used);
        Some(name.1)
    }

    fn complain(&self, what: &str, name: &Name, reply: &Content) {
        let (status, body) =
            (reply.status, String::from_utf8_lossy(&reply.body[..reply.body.len().min(300)]).into_owned());
        self.odd.lock().unwrap().push(format!("{what} of file {name:?}: {status} {body}"));
    }
}

/// Returns whether a request may be repeated after this reply.
fn is_for_now(reply: &Result<Content, NoReply>) -> bool {
    reply.as_ref().map_or(true, |reply| matches!(reply.status, 408 | 429 | 500 | 503))
}

pub(crate) fn digest(content: &[u8]) -> String {
    Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn path(name: &Name) -> String {
    format!("/v1/files/{}?namespace={}", name.1, name.0)
}

/// What the clients of files need.
#[derive(Clone)]
pub(crate) struct Uploaders {
    seed: u64,
    gateways: Vec<Gateway>,
    namespaces: Vec<String>,
    shelf: Arc<Shelf>,
}

impl Uploaders {
    pub(crate) fn new(world: &World) -> Self {
        let namespaces =
            [Tenant::Struck, Tenant::Spared, Tenant::Unheard].map(|tenant| tenant.namespace(&world.namespace));
        let (gateways, shelf) = (world.clients.gateways.clone(), world.clients.shelf.clone());
        Self { seed: world.seed, gateways, namespaces: namespaces.to_vec(), shelf }
    }

    /// Uploads, reads and deletes for this long.
    pub(crate) async fn work(&self, time: Duration) {
        let ends = Instant::now() + time;
        let clients = (0..CLIENTS).map(|number| async move {
            let mut dice = Dice::new(self.seed, &format!("files {number}"));
            while Instant::now() < ends {
                self.upload(&mut dice, ends).await;
                self.read_one(&mut dice).await;
                if dice.one_in(3) {
                    self.delete_one(&mut dice, ends).await;
                }
                sleep(dice.millis(50, 400)).await;
            }
        });
        futures::future::join_all(clients).await;
    }

    /// Sends a request to any gateway until it is answered for good, or the time is over.
    async fn insist(&self, method: &str, name: &Name, body: Bytes, ends: Instant, dice: &mut Dice) -> Option<Content> {
        while Instant::now() < ends {
            let gateway = dice.pick(&self.gateways).unwrap();
            match transfer(gateway, method, &path(name), body.clone()).await {
                reply if is_for_now(&reply) => sleep(dice.millis(100, 700)).await,
                reply => return reply.ok(),
            }
        }
        None
    }

    async fn upload(&self, dice: &mut Dice, ends: Instant) {
        // A larger one is sent to the store in parts.
        let size = if dice.one_in(30) { 6 << 20 } else { 100 + dice.below(30_000) };
        let content: Bytes = (0..size.div_ceil(8)).flat_map(|_| dice.below(u64::MAX).to_le_bytes()).collect();
        let name = (dice.pick(&self.namespaces).unwrap().clone(), digest(&content));
        match self.insist("PUT", &name, content, ends, dice).await {
            Some(reply) if matches!(reply.status, 200 | 201) => {
                self.shelf.files().insert(name, Standing::Accepted);
            }
            Some(reply) => self.shelf.complain("upload", &name, &reply),
            None => {}
        }
    }

    async fn read_one(&self, dice: &mut Dice) {
        let names: Vec<Name> = self.shelf.files().keys().cloned().collect();
        let Some(name) = dice.pick(&names) else { return };
        let before = self.shelf.files().get(name).copied();
        let gateway = dice.pick(&self.gateways).unwrap();
        let reply = transfer(gateway, "GET", &path(name), Bytes::new()).await;
        let after = self.shelf.files().get(name).copied();
        if is_for_now(&reply) {
            return;
        }
        let Ok(reply) = reply else { return };
        let is_right = match reply.status {
            200 => digest(&reply.body) == name.1 && before != Some(Standing::Deleted),
            404 => matches!(after, Some(Standing::Deleting | Standing::Deleted)),
            _ => false,
        };
        if !is_right {
            self.shelf.complain(&format!("read ({before:?}, then {after:?})"), name, &reply);
        }
    }

    async fn delete_one(&self, dice: &mut Dice, ends: Instant) {
        let name = {
            let mut files = self.shelf.files();
            let unused: Vec<Name> =
                files.iter().filter(|(_, now)| **now == Standing::Accepted).map(|(name, _)| name.clone()).collect();
            let Some(name) = dice.pick(&unused).cloned() else { return };
            files.insert(name.clone(), Standing::Deleting);
            name
        };
        match self.insist("DELETE", &name, Bytes::new(), ends, dice).await {
            // A request whose reply was lost may have deleted it.
            Some(reply) if matches!(reply.status, 204 | 404) => {
                self.shelf.files().insert(name, Standing::Deleted);
            }
            Some(reply) => self.shelf.complain("deletion", &name, &reply),
            None => {}
        }
    }
}
