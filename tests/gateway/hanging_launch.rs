//! A launch whose first call hangs in a webhook of the cluster.

use sparkgate::{service::Error, submission::SubmissionId};
use sparkgate_testing::webhook::{Conduct, Webhook};
use tokio::task::JoinHandle;

use crate::world::{World, eventually};

pub(crate) struct HangingLaunch {
    pub(crate) id: SubmissionId,
    /// It hangs until it is set otherwise.
    pub(crate) webhook: Webhook,
    /// The round of the launcher.
    pub(crate) launch: JoinHandle<Result<usize, Error>>,
}

impl HangingLaunch {
    /// Submits, and waits until the creation of the pod hangs.
    pub(crate) async fn start(world: &World) -> Self {
        let webhook = Webhook::start(world.admin.clone(), &world.namespace).await;
        webhook.set(Conduct::Hang);
        let id = world.submit(&[]).await;
        let launcher = world.service.launcher.clone();
        let launch = tokio::spawn(async move { launcher.work().await });
        eventually(|| async { (webhook.asked() == 1).then_some(()).ok_or("not asked yet") }).await;
        Self { id, webhook, launch }
    }
}
