//! Where drivers are built and judged. Most take less than a millisecond, and are built at once. What is large, or large for rules of
//! an operator, is built on threads of its own, a share of which each tenant has: the threads of the runtime serve all.

use std::{sync::Arc, thread, time::Duration};

use tokio::{task::spawn_blocking, time::timeout};

use super::{
    Submissions,
    plan::{Rendered, render},
};
use crate::prepared::PreparedSubmission;
use sparkgate_common::{error::Error, shares::Shares};
use sparkgate_store::Drawn;
use sparkgate_tenancy::tenancy::TenantRules;

/// The weight up to which a driver is built at once.
const SMALL: usize = 2000;
/// The same under rules of an operator: their cost grows with the product of lists.
const SMALL_FOR_RULES: usize = 200;
/// Maximum time to wait for a thread and its work.
const DEADLINE: Duration = Duration::from_secs(20);

/// Returns shares of the threads for large drivers: no tenant has more than half of the processors.
pub(super) fn shares() -> Shares {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    Shares::new((processors / 2).max(1))
}

impl Submissions {
    /// Builds the driver of a submission.
    ///
    /// # Errors
    /// [`Error::Refused`], [`Error::Policy`] with all rules that it breaks, or [`Error::Busy`] if large drivers of the tenant occupy
    /// its share.
    pub(super) async fn render(
        &self,
        rules: &Arc<TenantRules>,
        prepared: &PreparedSubmission,
        drawn: &Drawn,
    ) -> Result<Rendered, Error> {
        let finalizer = self.settings.outcome_finalizer;
        let has_rules = rules.policy.as_ref().is_some_and(|policy| policy.has_expressions());
        if prepared.weight() <= if has_rules { SMALL_FOR_RULES } else { SMALL } {
            return render(&self.cluster, &self.installation, finalizer, rules, prepared, drawn);
        }
        let (cluster, installation, prepared) = (self.cluster.clone(), self.installation.clone(), prepared.clone());
        let (tenant, rules, drawn) = (rules.tenant.name.as_str(), rules.clone(), drawn.clone());
        let work = move || render(&cluster, &installation, finalizer, &rules, &prepared, &drawn);
        on_a_share(&self.rendering, tenant, work).await
    }
}

/// Does work on a thread of a tenant's share.
async fn on_a_share<T: Send + 'static>(
    shares: &Shares,
    tenant: &str,
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let large = async {
        let place = shares.acquire(tenant, "").await;
        // The place is held as long as the thread works, also after the request has ended.
        let work = spawn_blocking(move || {
            let _place = place;
            work()
        });
        work.await.map_err(|error| Error::Internal("building the driver failed".to_owned(), error.into()))?
    };
    let busy = || Error::Busy { tenant: tenant.to_owned() };
    timeout(DEADLINE, large).await.unwrap_or_else(|_| Err(busy()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_tenant_whose_share_is_occupied_is_told_to_try_again() {
        let shares = Shares::new(1);
        let occupied = shares.acquire("red", "").await;
        let refused = on_a_share(&shares, "red", || Ok(())).await.unwrap_err();
        assert!(matches!(&refused, Error::Busy { tenant } if tenant == "red"), "{refused}");
        assert!(refused.may_pass() && refused.to_string().contains("other large drivers of tenant red"), "{refused}");
        assert_eq!(on_a_share(&shares, "blue", || Ok(7)).await.unwrap(), 7, "others have shares of their own");
        drop(occupied);
        assert_eq!(on_a_share(&shares, "red", || Ok(7)).await.unwrap(), 7);
    }
}
