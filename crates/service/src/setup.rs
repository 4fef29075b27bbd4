//! What a service is created with. All of it is known before the service exists, and none of it changes but what files say.

use std::sync::Arc;

use sparkgate_connect::ConnectSettings;
use sparkgate_core::{encryption::EncryptionKeys, usage::PriceSettings};
use sparkgate_files::{CollectedLogs, FileStore};
use sparkgate_kueue::KueueQueues;
use sparkgate_logs::LogStoreSettings;
use sparkgate_requests::settings::Settings;
use sparkgate_spark_ui::SparkUiSettings;
use sparkgate_tenancy::access_file::AccessFile;
use sparkgate_uploads::FileSettings;
use sparkgate_webhooks::{LineageServer, WebhookSettings};

/// The settings of a service, and the stores that it has beside its database.
#[derive(Debug, Clone)]
pub struct Setup {
    /// The access file, combined with the settings of all submissions.
    pub access: Arc<AccessFile>,
    pub keys: Arc<EncryptionKeys>,
    /// The store of uploaded files. Without it, none can be uploaded.
    pub files: Option<(FileStore, FileSettings)>,
    /// The store of logs. Without it, only the end of a driver's log is kept.
    pub logs: Option<(FileStore, LogStoreSettings)>,
    /// The logs that the operator's collector writes.
    pub collected_logs: Option<CollectedLogs>,
    /// Where webhooks may lead.
    pub webhooks: WebhookSettings,
    /// The server that gets run events about the submissions of all tenants.
    pub lineage: Option<LineageServer>,
    pub spark_ui: SparkUiSettings,
    pub prices: PriceSettings,
    /// The queues of Kueue by namespace. The access file may name others.
    pub kueue: KueueQueues,
    pub connect: ConnectSettings,
}

impl Setup {
    /// Returns the setup of a gateway with this access file and these keys, and the defaults of all else.
    pub fn new(access: Arc<AccessFile>, keys: Arc<EncryptionKeys>) -> Self {
        Self {
            access,
            keys,
            files: None,
            logs: None,
            collected_logs: None,
            webhooks: WebhookSettings::default(),
            lineage: None,
            spark_ui: SparkUiSettings::default(),
            prices: PriceSettings::default(),
            kueue: KueueQueues::new(),
            connect: ConnectSettings::default(),
        }
    }
}

/// A gateway with an access file and without encryption keys.
impl From<AccessFile> for Setup {
    fn from(access: AccessFile) -> Self {
        Self::new(Arc::new(access), Arc::new(EncryptionKeys::none()))
    }
}

/// A gateway without an access file and encryption keys.
impl From<Settings> for Setup {
    fn from(settings: Settings) -> Self {
        AccessFile::none(settings).into()
    }
}
