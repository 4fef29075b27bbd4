//! Five tenants, each with a namespace of its own: two that behave well, and three bad neighbours. The jobs are theirs, and the
//! oracle judges all of them alike.

use std::{path::Path, time::Duration};

use k8s_openapi::api::core::v1::ResourceQuota;
use kube::{
    Api, Client,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::json;
use sparkgate_testing::webhook::{Conduct, Webhook};
use sparkgate_testing::{dice::Dice, guard::guard, process::until};
use tokio::{
    net::TcpListener,
    task::JoinSet,
    time::{Instant, sleep},
};

use super::{chaos::Blows, queues::queue_of};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tenant {
    /// The tenant at which the storm is aimed: others change its pods, its rights are removed, its webhook misbehaves.
    Struck,
    /// A tenant to which nothing happens but what happens to the servers.
    Spared,
    /// Its webhooks have receivers that hang.
    Unheard,
    /// Its namespace is at its quota, which has room for a driver now and then.
    Full,
    /// An admission webhook denies its pods, for now or for good.
    Denied,
}

const QUOTA: &str = "full";
/// The webhooks of [`Tenant::Unheard`] that are never answered.
const UNHEARD: usize = 8;

impl Tenant {
    pub(crate) const ALL: [Self; 5] = [Self::Struck, Self::Spared, Self::Unheard, Self::Full, Self::Denied];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Struck => "struck",
            Self::Spared => "spared",
            Self::Unheard => "unheard",
            Self::Full => "full",
            Self::Denied => "denied",
        }
    }

    /// Returns the tenant that submits a job.
    pub(crate) fn of_job(number: u32) -> Self {
        match number % 20 {
            3 => Self::Full,
            9 => Self::Denied,
            5 | 15 => Self::Unheard,
            number if number % 4 == 1 => Self::Spared,
            _ => Self::Struck,
        }
    }

    /// Returns its namespace, in the world with this name.
    pub(crate) fn namespace(self, world: &str) -> String {
        if self == Self::Struck { world.to_owned() } else { format!("{world}-{}", self.name()) }
    }
}

/// Writes the access file of a world, with or without queues, and returns its path.
pub(crate) fn access_file(world: &str, queues: Option<&str>) -> String {
    let mut text = "authentication: {}\nlimits: {writes: 100000/s, reads: 100000/s}\ntenants:\n".to_owned();
    for tenant in Tenant::ALL {
        let default = queues.map_or_else(String::new, |_| format!(", defaultQueue: {}", queue_of(tenant)));
        text += &format!("  {}: {{namespaces: [{}]{default}}}\n", tenant.name(), tenant.namespace(world));
    }
    text += queues.unwrap_or_default();
    let path = guard().directory().join(format!("{world}.access.yaml"));
    let new = path.with_extension("new");
    std::fs::write(&new, text).unwrap();
    std::fs::rename(&new, &path).unwrap();
    path.display().to_string()
}

/// Creates the key of a caller that may do everything in all tenants; returns the `Authorization` header of its requests.
pub(crate) async fn credentials(program: &Path, database_url: &str) -> String {
    let mut command = tokio::process::Command::new(program);
    let output = command.arg("bootstrap-key").env("SPARKGATE_DATABASE_URL", database_url).output().await.unwrap();
    assert!(output.status.success(), "sparkgate bootstrap-key: {}", String::from_utf8_lossy(&output.stderr));
    format!("Bearer {}", String::from_utf8(output.stdout).unwrap().trim())
}

/// What makes the neighbours bad.
pub(crate) struct Neighbours {
    denies: Webhook,
    quotas: Api<ResourceQuota>,
    /// The URLs of receivers that accept connections and answer nothing.
    pub(crate) unheard: Vec<String>,
    _tasks: JoinSet<()>,
}

impl Neighbours {
    /// Begins to deny; the namespaces exist.
    pub(crate) async fn begin(client: &Client, world: &str) -> Self {
        let denies = Webhook::start(client.clone(), &Tenant::Denied.namespace(world)).await;
        denies.set(Conduct::Deny(429));
        let quotas: Api<ResourceQuota> = Api::namespaced(client.clone(), &Tenant::Full.namespace(world));
        let quota = json!({"metadata": {"name": QUOTA}, "spec": {"hard": {"pods": "1"}}});
        quotas.create(&PostParams::default(), &serde_json::from_value(quota).unwrap()).await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let unheard = (0..UNHEARD).map(|number| format!("http://{address}/{number}")).collect();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut held = Vec::new();
            while let Ok((connection, _)) = listener.accept().await {
                held.push(connection);
            }
        });
        let neighbours = Self { denies, quotas, unheard, _tasks: tasks };
        until("the quota is full", Duration::from_secs(60), async || neighbours.count_pods(1).await).await;
        neighbours
    }

    /// Denies in one way or another, and lets the quota have room now and then, as long as the storm lasts.
    pub(crate) async fn storm(&self, mut dice: Dice, blows: &Blows) {
        let ends = Instant::now() + blows.time();
        while Instant::now() < ends {
            sleep(dice.millis(1000, 5000)).await;
            let code = *dice.pick(&[429, 500, 403]).unwrap();
            self.denies.set(Conduct::Deny(code));
            // Admission counts the pod that it admits.
            self.count_pods(0).await;
        }
    }

    /// Ends the denials and the quota.
    pub(crate) async fn calm(&self) {
        self.denies.set(Conduct::Allow);
        until("the quota is removed", Duration::from_secs(60), async || {
            match self.quotas.delete(QUOTA, &DeleteParams::default()).await {
                Ok(_) => true,
                Err(kube::Error::Api(status)) => status.code == 404,
                Err(_) => false,
            }
        })
        .await;
    }

    /// Counts the pods of the namespace, as a controller does. Returns whether the API server took it.
    async fn count_pods(&self, used: u32) -> bool {
        let status = json!({"status": {"hard": {"pods": "1"}, "used": {"pods": used.to_string()}}});
        self.quotas.patch_status(QUOTA, &PatchParams::default(), &Patch::Merge(status)).await.is_ok()
    }
}
