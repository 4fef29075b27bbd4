//! Kills of jobs and stages in the UI of a driver: who may do it, and their entries in the audit.

use std::net::IpAddr;

use super::{SparkUi, ticket::Ticket};
use sparkgate_common::error::Error;
use sparkgate_store::{Actor, AuditNote};

/// The name of the action in the audit.
const ACTION: &str = "kill-in-spark-ui";
/// The most characters of a path in the audit.
const LONGEST: usize = 200;
/// How many submissions may be idle before they are forgotten.
const IDLE: usize = 10_000;

/// A request that kills a job or a stage.
#[derive(Debug, Clone)]
pub struct JobKill<'a> {
    /// The path of the driver with its query, and the form.
    pub path: &'a str,
    pub query: Option<&'a str>,
    pub form: &'a [u8],
    /// The client's address.
    pub address: Option<IpAddr>,
    pub request_id: &'a str,
}

/// Whether a request that kills a job or a stage is sent to the driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KillPermission {
    Granted,
    /// The holder of the ticket may not kill the submission.
    Denied,
    /// There were too many in a short time.
    TooMany,
}

impl SparkUi {
    /// Returns whether the ticket permits a kill of a job or a stage, and writes that to the audit: before it is sent, so that there is
    /// none without an entry.
    ///
    /// # Errors
    /// The database doesn't answer: nothing is to be sent.
    pub async fn permit_kill(&self, ticket: &Ticket, kill: &JobKill<'_>) -> Result<KillPermission, Error> {
        if self.kills.len() > IDLE {
            self.kills.retain_recent();
        }
        if self.kills.check_key(&ticket.id.to_string()).is_err() {
            return Ok(KillPermission::TooMany);
        }
        let permission = if ticket.may_kill { KillPermission::Granted } else { KillPermission::Denied };
        // Without authentication there is no audit. A submission without a record has no driver, either.
        let Some(principal) = ticket.principal.clone() else { return Ok(permission) };
        let Some(submission) = self.store.all().submission(&ticket.id).await? else { return Ok(permission) };
        let address = kill.address.map(|address| address.to_string());
        let (request_id, note) = (kill.request_id.to_owned(), AuditNote::default());
        let actor = Actor { principal, address, request_id, note };
        let about = (Some(submission.tenant.as_str()), Some(&ticket.id));
        self.store.write_audit(&actor, ACTION, about, ticket.may_kill, &detail(kill)).await?;
        Ok(permission)
    }
}

/// Returns what is killed, as the request says it.
fn detail(kill: &JobKill<'_>) -> String {
    let form = String::from_utf8_lossy(kill.form);
    let parameters: Vec<&str> = kill.query.into_iter().chain(Some(&*form)).filter(|text| !text.is_empty()).collect();
    let separator = if parameters.is_empty() { "" } else { "?" };
    let text = format!("{}{separator}{}", kill.path, parameters.join("&"));
    text.chars().filter(|c| !c.is_control()).take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_has_the_path_with_its_parameters() {
        let kill = |path, query, form| detail(&JobKill { path, query, form, address: None, request_id: "" });
        assert_eq!(kill("/jobs/job/kill/", Some("id=3"), b""), "/jobs/job/kill/?id=3");
        assert_eq!(
            kill("/stages/stage/kill/", None, b"id=3&terminate=true"),
            "/stages/stage/kill/?id=3&terminate=true"
        );
        assert_eq!(kill("/jobs/job/kill/", None, b""), "/jobs/job/kill/");
        assert_eq!(kill("/kill", Some("a"), b"\0\xff\n").chars().filter(|c| c.is_control()).count(), 0);
        assert_eq!(kill("/kill", None, &[b'x'; 9000]).len(), LONGEST);
    }
}
