//! The features of a gateway, in the order in which they are attached to the core. A new one is a line of `new`, and of the lists of
//! the ports that it has ([`sparkgate_core::ports`]).

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use sparkgate_cluster::Cluster;
use sparkgate_connect::{Connect, ConnectSettings};
use sparkgate_core::{
    encryption::EncryptionKeys,
    event_feed::EventFeed,
    judgement::Rules,
    leadership::leases::Leases,
    ports::{Attachment, Sweep},
    wakeups::Wakeups,
};
use sparkgate_files::FileStore;
use sparkgate_kueue::{Kueue, KueueQueues};
use sparkgate_late::Late;
use sparkgate_queues::Queues;
use sparkgate_retries::LaterAttempts;
use sparkgate_starts::Starts;
use sparkgate_store::Store;
use sparkgate_submission::Installation;
use sparkgate_tenancy::access_file::AccessFile;
use sparkgate_uploads::{FileSettings, Files};
use sparkgate_webhooks::{LineageServer, WebhookSettings, Webhooks};

/// What the features share with the core and with each other.
#[derive(Clone)]
pub(super) struct Shared {
    pub(super) store: Store,
    pub(super) cluster: Cluster,
    pub(super) installation: Arc<Installation>,
    pub(super) access: Arc<AccessFile>,
    pub(super) keys: Arc<EncryptionKeys>,
    pub(super) leases: Arc<Leases>,
    pub(super) events: Arc<EventFeed>,
    pub(super) wakeups: Arc<Wakeups>,
    pub(super) closing: CancellationToken,
}

/// The settings of the features.
pub(super) struct FeatureSettings {
    pub(super) files: Option<(FileStore, FileSettings)>,
    pub(super) webhooks: (WebhookSettings, Option<LineageServer>),
    pub(super) kueue: KueueQueues,
    pub(super) connect: ConnectSettings,
}

/// The features.
pub(super) struct Features {
    rules: Arc<Rules>,
    pub(super) queues: Arc<Queues>,
    later_attempts: Vec<Arc<dyn Attachment>>,
    kueue: Arc<Kueue>,
    pub(super) files: Arc<Files>,
    pub(super) webhooks: Arc<Webhooks>,
    pub(super) connect: Arc<Connect>,
    late: Arc<Late>,
    starts: Arc<Starts>,
}

impl Features {
    pub(super) fn new(shared: &Shared, settings: FeatureSettings) -> Self {
        let Shared { store, cluster, installation, access, keys, leases, events, wakeups, closing } = shared.clone();
        let FeatureSettings { files, webhooks, kueue, connect } = settings;
        let queues = Queues::new(store.clone(), cluster.clone(), access.clone(), leases.clone(), wakeups.clone());
        let kueue = Kueue::new(store.clone(), cluster.clone(), access.clone(), wakeups.clone(), kueue);
        let webhooks = Webhooks::new(store.clone(), leases, keys, installation.clone(), events, webhooks);
        Self {
            rules: Arc::new(Rules::new(access.clone(), store.clone())),
            queues: Arc::new(queues),
            later_attempts: LaterAttempts::all(&store, &access).into(),
            kueue: Arc::new(kueue),
            files: Arc::new(Files::new(store.clone(), installation.clone(), files)),
            webhooks: Arc::new(webhooks),
            connect: Arc::new(Connect::new(store.clone(), cluster, installation, wakeups.clone(), connect, closing)),
            late: Arc::new(Late::new(store.clone(), wakeups)),
            starts: Arc::new(Starts::new(store)),
        }
    }

    /// The rules and queues come first: what they refuse costs no quota of Kueue, and no file a copy. Kueue has to know what later
    /// attempts get.
    pub(super) fn attachments(&self) -> Vec<Arc<dyn Attachment>> {
        let mut all: Vec<Arc<dyn Attachment>> = vec![self.rules.clone(), self.queues.clone()];
        all.extend(self.later_attempts.iter().cloned());
        all.extend([
            self.kueue.clone() as Arc<dyn Attachment>,
            self.files.clone(),
            self.webhooks.clone(),
            self.connect.clone(),
        ]);
        all
    }

    pub(super) fn sweeps(&self) -> Vec<Arc<dyn Sweep>> {
        vec![self.files.clone(), self.kueue.clone(), self.connect.clone(), self.late.clone(), self.starts.clone()]
    }
}
