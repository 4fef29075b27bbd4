//! Requests to the UI of a driver, by holders of a ticket.

use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt, stream};
use http::{Request, Response};
use tokio::time::{Instant, sleep_until, timeout};

use super::{SparkUi, UiPlace, ticket::Ticket};
use sparkgate_cluster::{DriverBytes, DriverHttpError};
use sparkgate_common::{
    error::{Error, error_chain},
    tenant_slots::TenantSlot,
};
use sparkgate_submission::State;

/// The most requests to a driver under way at once: browsers load the parts of a page at once over HTTP/2.
const OF_SUBMISSION: u32 = 64;
/// The same of all drivers of a tenant.
const OF_TENANT: u32 = 256;
/// How long a driver may take until it begins to answer. Thread dumps of executors take seconds.
const BEGIN: Duration = Duration::from_secs(30);
/// How long its response may take altogether.
const ALL: Duration = Duration::from_secs(120);
/// The most bytes of one response's body.
const BYTES: usize = 256 << 20;

/// What became of a request to the UI of a driver.
pub enum Asked {
    /// The driver's response. Its body ends with an error if it takes too long, or is too large.
    Answered(Response<DriverBytes>),
    /// The submission is no longer kept.
    Gone,
    /// The submission has ended, or the gateway serves no UIs; with where its UI is now.
    Ended(UiPlace),
    /// The driver doesn't answer (yet), with the reason.
    NotUp(String),
    /// Too many requests are under way.
    Busy,
}

impl SparkUi {
    /// Sends a request to the driver of a submission.
    ///
    /// # Errors
    /// The database or the cluster doesn't answer.
    pub async fn ask(&self, ticket: &Ticket, request: Request<Bytes>) -> Result<Asked, Error> {
        let Some(submission) = self.store.all().submission(&ticket.id).await? else { return Ok(Asked::Gone) };
        match self.place(&submission) {
            UiPlace::Driver => {}
            elsewhere => return Ok(Asked::Ended(elsewhere)),
        }
        let of_submission = self.of_submissions.take([(submission.id.as_str(), Some(OF_SUBMISSION))]);
        let of_tenant = self.of_tenants.take([(submission.tenant.as_str(), Some(OF_TENANT))]);
        let (Ok(of_submission), Ok(of_tenant)) = (of_submission, of_tenant) else { return Ok(Asked::Busy) };
        let waits = matches!(submission.state, State::Queued | State::Launching | State::Pending);
        let Some(uid) = submission.pod_uid.as_deref().filter(|_| !waits) else {
            return Ok(Asked::NotUp(format!("the submission is {}", submission.state)));
        };
        let address = self.address(&submission.namespace, &submission.names.driver_pod, uid).await?;
        let Some(address) = address else {
            return Ok(Asked::NotUp("its pod has no address of its own at which it could answer".to_owned()));
        };
        let deadline = Instant::now() + ALL;
        match timeout(BEGIN, self.cluster.ask_driver(address, request)).await {
            Ok(Ok(response)) => {
                Ok(Asked::Answered(response.map(|body| limited(body, deadline, (of_submission, of_tenant)))))
            }
            Ok(Err(error @ DriverHttpError::NoConnection { .. })) => {
                tracing::debug!(submission = %ticket.id, "no Spark UI: {}", error_chain(&error));
                Ok(Asked::NotUp("the driver accepts no connection for it".to_owned()))
            }
            Ok(Err(error)) => {
                tracing::debug!(submission = %ticket.id, "no Spark UI: {}", error_chain(&error));
                Ok(Asked::NotUp("the driver sent no usable response".to_owned()))
            }
            Err(_) => Ok(Asked::NotUp(format!("the driver didn't answer within {BEGIN:?}"))),
        }
    }
}

/// Ends a body with an error at the deadline, or if it is too large. The slots are held until the body ends.
fn limited(body: DriverBytes, deadline: Instant, slots: (TenantSlot, TenantSlot)) -> DriverBytes {
    stream::unfold(Some((body, BYTES, slots)), move |open| async move {
        let (mut body, left, slots) = open?;
        let part = tokio::select! {
            part = body.next() => part?,
            () = sleep_until(deadline) => return Some((Err(DriverHttpError::TooLong), None)),
        };
        match part {
            Ok(part) => match left.checked_sub(part.len()) {
                Some(left) => Some((Ok(part), Some((body, left, slots)))),
                None => Some((Err(DriverHttpError::TooLong), None)),
            },
            Err(error) => Some((Err(error), None)),
        }
    })
    // Compression reads on behind the end.
    .fuse()
    .boxed()
}

#[cfg(test)]
mod tests {
    use futures::TryStreamExt;

    use super::*;
    use sparkgate_common::tenant_slots::TenantSlots;

    #[tokio::test(start_paused = true)]
    async fn a_body_ends_at_its_limits_and_gives_its_slots_back() {
        let slots = TenantSlots::new("test");
        let taken = || (slots.take([("a", Some(2))]).unwrap(), slots.take([("a", Some(2))]).unwrap());
        let soon = || Instant::now() + ALL;
        let part = || Ok(Bytes::from_static(&[0; 1 << 20]));

        let body = limited(stream::repeat_with(part).boxed(), soon(), taken());
        let (sizes, error) = sizes(body).await;
        assert_eq!(sizes.iter().sum::<usize>(), BYTES);
        assert!(matches!(error, Some(DriverHttpError::TooLong)));

        let silent = stream::once(async move { part() }).chain(stream::pending());
        let (sizes, error) = self::sizes(limited(silent.boxed(), soon(), taken())).await;
        assert!(sizes.len() == 1 && matches!(error, Some(DriverHttpError::TooLong)));

        let whole = limited(stream::iter([part(), part()]).boxed(), soon(), taken());
        assert!(slots.take([("a", Some(2))]).is_err(), "a body that is open holds its slots");
        assert_eq!(whole.try_collect::<Vec<_>>().await.unwrap().len(), 2);
        taken();
    }

    async fn sizes(mut body: DriverBytes) -> (Vec<usize>, Option<DriverHttpError>) {
        let mut sizes = Vec::new();
        while let Some(part) = body.next().await {
            match part {
                Ok(part) => sizes.push(part.len()),
                Err(error) => return (sizes, Some(error)),
            }
        }
        (sizes, None)
    }
}
