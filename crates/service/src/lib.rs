//! The service of a gateway: the core, with the features that are attached to it. [`Service`] creates the parts, and lists their
//! loops. The interfaces find here all that they may use.

pub mod doctor;
mod features;
mod overview;
mod scrape;
mod setup;

use std::sync::Arc;

use futures::{FutureExt, future::BoxFuture};
use tokio_util::sync::CancellationToken;

use sparkgate_access::Principal;
use sparkgate_cluster::Cluster;
use sparkgate_connect::Connect;
use sparkgate_core::{
    effects::Effects,
    leadership::leases::Leases,
    ports::{Attachments, Sweep},
    signing_keys::SigningKeys,
    wakeups::Wakeups,
};
use sparkgate_store::Store;

use self::features::{FeatureSettings, Features, Shared};

pub use sparkgate_cluster::DriverBytes;
pub use sparkgate_store::{
    ApiKey, AttemptRecord, AuditEntry, AuditFilter, AuditSubject, COUNTED_IN_LISTS, Delivery, Event, ExecutorCounts,
    Filter, Found, GroupBy, Held, HoldAnswer, JobFilter, JobRun, KillAnswer, Lateness, LeaseRecord, LiveCount,
    LivyBatch, Page, PartCount, Period, Price, QueueState, Recent, Scope, StartupTimes, StateCount, StateCounts,
    StoredQueueState, Submission, SubmissionUsage, Usage as UsageOf, UsageFilter, UsageReport, Used, Webhook,
};

pub use self::{
    overview::{Checked, InstallationOverview, OpenStreams, Overview},
    scrape::Scrape,
    setup::Setup,
};
pub use sparkgate_common::{
    detached::spawn_in_span,
    error::{Error, error_chain},
    rate_limits::Exceeded,
    watched::{Content, WATCH_PERIOD, Watched, time_to_look},
};
pub use sparkgate_connect::{
    Code as ConnectCode, ConnectSettings, OpenSession, SessionState, Status as ConnectStatus,
    refused as refused_by_connect,
};
pub use sparkgate_core::{
    encryption::{EncryptionKeys, KeyFault, KeyFileError, KeyringError},
    event_feed::{
        EventFeed,
        filter::EventFilter,
        publish::Published,
        ring::FeedEvent,
        submission_events::SubmissionEvents,
        subscription::{Interrupted, Subscription},
        wait::{Target, Waited},
    },
    health::{Health, Readiness, Reason},
    home_cluster::{HomeClusterError, adopt_cluster},
    launcher::{Launcher, work::Work},
    leadership::{
        Leadership,
        clean_up::{CleanUpSettings, CleanedUp},
    },
    pod_follower::{PodFollower, executors::Executors},
    prepared::PreparedSubmission,
    submissions::{
        Submissions,
        comparison::{Difference, differences},
        document::Document,
        failure_reason::FailureReason,
        jobs::{ChangedSince, Job, JobAnswer, JobHistory, JobStarts, StepDuration},
        plan::{AppliedDefault, Plan},
        startup::{StartupStep, startup},
        status::{Status, Worker},
        submit::Accepted,
        waiting::{WaitEstimate, Waiting},
    },
    usage::{PriceSettings, Usage},
    witness::{Archived, Witness},
};
pub use sparkgate_kueue::KueueQueues;
pub use sparkgate_logs::{DriverLogs, Log, LogRequest, LogSource, LogStoreSettings, LogStream, NoLog};
pub use sparkgate_queues::{
    MOST_PLACES, NewPlace, PlaceChange, PlacesChanged, QueueOverview, Queues, Rest, TenantInQueue,
};
pub use sparkgate_requests::{
    options::{
        Caps, Retries, SessionOptions, SubmissionOptions,
        again::{AfterNodeLoss, MemoryGrowth, Restart, parse_max},
        webhook::{MessageFormat, SubmissionWebhook, UnknownFormat},
    },
    settings::{Settings, SparkSettings},
    spark_lines::{SparkLines, file::SparkLinesError},
    submitter::{Submitter, read::SubmitterError},
};
pub use sparkgate_spark_ui::{
    Advice, Asked, ExecutorUse, HistoryUrl, HistoryUrlError, JobKill, KillPermission, SparkUi, SparkUiSettings,
    Summary, Ticket, TicketFault, UiHost, UiOrigin, UiOriginError, UiPlace,
};
pub use sparkgate_tenancy::{
    access_file::{AccessError, AccessFile},
    api_keys::{ApiKeys, CreatedKey, KeyNames, KeyRequest},
    audit::{Audit, RequestedChange, Verdict},
    authenticator::{
        Authenticated, Authenticator, Credentials, Requester, SessionCookie, SignIn, SignInAnswer, SignInError,
        SignInWays, SignedIn, Unauthenticated,
    },
    boundaries::Boundaries,
    session::Session,
    tenancy::{Tenancy, TenantRules},
};
pub use sparkgate_uploads::{
    Download, Fetched, FileError, FilePage, FileSettings, Files, FormFiles, ListedFile, NewPart, Pace, Resumed,
    Uploaded, clean_up::SweptFiles, reference::is_sha256,
};
pub use sparkgate_webhooks::{
    CreatedWebhook, LineageServer, WebhookRequest, WebhookSettings, WebhookSubmissions, Webhooks,
};

/// The service on one database and one cluster. Cheap to clone.
#[derive(Clone)]
pub struct Service {
    pub submissions: Arc<Submissions>,
    pub launcher: Arc<Launcher>,
    pub pods: Arc<PodFollower>,
    pub events: Arc<EventFeed>,
    pub logs: Arc<DriverLogs>,
    pub leadership: Arc<Leadership>,
    pub health: Arc<Health>,
    pub access: Arc<AccessFile>,
    pub encryption: Arc<EncryptionKeys>,
    pub authenticator: Arc<Authenticator>,
    pub api_keys: Arc<ApiKeys>,
    pub audit: Arc<Audit>,
    pub usage: Arc<Usage>,
    pub overview: Arc<Overview>,
    pub boundaries: Arc<Boundaries>,
    pub queues: Arc<Queues>,
    pub files: Arc<Files>,
    pub webhooks: Arc<Webhooks>,
    pub spark_ui: Arc<SparkUi>,
    pub connect: Arc<Connect>,
    pub scrape: Arc<Scrape>,
    signing: Arc<SigningKeys>,
    /// The database, which numbers contents of the access file.
    store: Store,
}

impl Service {
    /// Creates the service of a gateway.
    ///
    /// # Errors
    /// The id of the installation can't be read from the database.
    pub async fn new(store: Store, cluster: Cluster, setup: impl Into<Setup>) -> Result<Self, Error> {
        let Setup {
            access,
            keys,
            files,
            logs,
            collected_logs,
            webhooks,
            lineage,
            spark_ui,
            prices,
            kueue: kueue_queues,
            connect,
        } = setup.into();
        let settings = access.settings();
        let installation = Arc::new(store.installation().await?);
        // Clones share the keys.
        let cluster = cluster.for_installation((*installation).clone());
        let closing = CancellationToken::new();
        // Shared parts.
        let leases = Arc::new(Leases::new(store.clone()));
        let signing = SigningKeys::new(store.clone(), installation.clone(), keys.clone(), leases.clone());
        signing.refresh().await?;
        let health = Arc::new(Health::new(store.clone(), cluster.clone(), access.clone(), closing.clone()));
        let events = Arc::new(EventFeed::new(store.clone(), closing.clone()));
        let wakeups = Arc::new(Wakeups::new(events.clone()));
        let logs = DriverLogs::new(store.clone(), cluster.clone(), settings.kept_log, closing.clone(), access.clone())
            .with_stores(installation.id, logs, collected_logs);
        let logs = Arc::new(logs);
        let finalizer = settings.outcome_finalizer;
        let effects = Effects::new(
            store.clone(),
            cluster.clone(),
            leases.clone(),
            wakeups.clone(),
            logs.clone(),
            finalizer,
            access.clone(),
        );
        let effects = Arc::new(effects);
        let shared = Shared {
            store: store.clone(),
            cluster: cluster.clone(),
            installation: installation.clone(),
            access: access.clone(),
            keys: keys.clone(),
            leases: leases.clone(),
            events: events.clone(),
            wakeups: wakeups.clone(),
            closing,
        };
        let of_features =
            FeatureSettings { files, webhooks: (webhooks, lineage), kueue: kueue_queues.clone(), connect };
        let features = Features::new(&shared, of_features);
        let attachments = Arc::new(Attachments::new(features.attachments()));
        let launcher = Launcher::new(
            store.clone(),
            cluster.clone(),
            installation.clone(),
            health.clone(),
            wakeups.clone(),
            effects.clone(),
            keys.clone(),
            attachments.clone(),
        );
        let pods =
            PodFollower::new(store.clone(), cluster.clone(), leases.clone(), health.clone(), effects, logs.clone());
        let leadership = Leadership::new(
            store.clone(),
            cluster.clone(),
            leases,
            wakeups.clone(),
            features.sweeps().into_iter().chain([logs.clone() as Arc<dyn Sweep>]).collect(),
            access.clone(),
        );
        let authenticator = Authenticator::new(store.clone(), cluster.clone(), access.clone());
        let (api_keys, audit) = (ApiKeys::new(store.clone()), Audit::new(store.clone()));
        let usage = Usage::new(store.clone(), prices);
        let streams = (events.clone(), logs.clone());
        let overview =
            Overview::new(store.clone(), cluster.clone(), access.clone(), keys.clone(), kueue_queues, streams);
        let boundaries = Arc::new(Boundaries::new(cluster.clone(), access.clone()));
        let launcher = Arc::new(launcher);
        let parts = scrape::Parts {
            launcher: launcher.clone(),
            health: health.clone(),
            events: events.clone(),
            logs: logs.clone(),
            boundaries: boundaries.clone(),
            queues: features.queues.clone(),
            connect: features.connect.clone(),
        };
        let scrape = Scrape::new(store.clone(), parts, settings.spark.version);
        let spark_ui = SparkUi::new(store.clone(), cluster.clone(), installation.clone(), spark_ui);
        let submissions = Submissions::new(
            store.clone(),
            cluster,
            installation,
            settings,
            wakeups,
            logs.clone(),
            keys.clone(),
            attachments,
        );
        Ok(Self {
            submissions: Arc::new(submissions),
            launcher,
            pods: Arc::new(pods),
            events,
            logs,
            leadership: Arc::new(leadership),
            health,
            access,
            encryption: keys,
            authenticator: Arc::new(authenticator),
            api_keys: Arc::new(api_keys),
            audit: Arc::new(audit),
            usage: Arc::new(usage),
            overview: Arc::new(overview),
            boundaries,
            queues: features.queues,
            files: features.files,
            webhooks: features.webhooks,
            spark_ui: Arc::new(spark_ui),
            connect: features.connect,
            scrape: Arc::new(scrape),
            signing: Arc::new(signing),
            store,
        })
    }

    /// Returns the caller of a gateway without an access file.
    pub fn anonymous(&self) -> Session {
        let principal = Arc::new(Principal::anonymous());
        Session::new(principal, self.access.current(), None, "")
    }

    /// Returns the loops of a replica with their names. Each runs until `stop`. [`Leadership::run_renewal`] isn't among them: it
    /// has to outlast the others, because work in progress needs its leases.
    pub fn loops(
        &self,
        clean_up: CleanUpSettings,
        stop: &CancellationToken,
    ) -> [(&'static str, BoxFuture<'static, ()>); 14] {
        let (launcher, leadership) = (&self.launcher, &self.leadership);
        [
            ("launcher", launcher.clone().run(stop.clone()).boxed()),
            ("publisher", self.events.clone().run(stop.clone()).boxed()),
            ("watcher", self.pods.clone().run(stop.clone()).boxed()),
            ("deadlines", leadership.clone().run_deadlines(stop.clone()).boxed()),
            ("queues", self.queues.clone().run(stop.clone()).boxed()),
            ("rights", launcher.clone().check_rights(stop.clone()).boxed()),
            ("boundaries of tenants", self.boundaries.clone().run(stop.clone()).boxed()),
            ("access file", self.access.clone().run(self.store.clone(), stop.clone()).boxed()),
            ("encryption keys", self.encryption.clone().run(stop.clone()).boxed()),
            ("signing keys", self.signing.clone().run(stop.clone()).boxed()),
            ("webhooks", self.webhooks.clone().run(stop.clone()).boxed()),
            ("sweeps", leadership.clone().run_sweeps(stop.clone()).boxed()),
            ("summaries of drivers", self.spark_ui.clone().run(stop.clone()).boxed()),
            ("clean-up", leadership.clone().run_clean_up(clean_up, stop.clone()).boxed()),
        ]
    }
}
