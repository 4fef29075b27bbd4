//! A session at the ports of its submission.

use futures::FutureExt;

use super::Connect;
use sparkgate_cluster::Manifest;
use sparkgate_common::error::Error;
use sparkgate_core::ports::{Attachment, Attempt, Proposed, Resolution, Step};
use sparkgate_requests::options::SessionOptions;
use sparkgate_spark::{Refusal, SparkVersion};
use sparkgate_store::{NewConnectSession, OpenedSession};
use sparkgate_submission::SubmissionId;

/// The class of Spark Connect's server.
pub(crate) const SERVER: &str = "org.apache.spark.sql.connect.service.SparkConnectServer";
/// The property with the token that the server requires.
const TOKEN_PROPERTY: &str = "spark.connect.authenticate.token";

impl Attachment for Connect {
    fn validate(&self, proposed: &Proposed<'_>) -> Result<(), Refusal> {
        let Some(session) = &proposed.options.session else { return Ok(()) };
        if self.settings.listen.is_none() {
            let reason = "this gateway serves no sessions of Spark Connect: its operator has to set `connect-listen`";
            return Err(Refusal::field("name", reason));
        }
        if proposed.version < SparkVersion::V4_0 && self.settings.jar_of_3_5.is_none() {
            let reason = format!(
                "a session needs Spark 4.0 or later: images of Spark {} lack Spark Connect, and the operator names no jar with it \
                 (`connect-spark-3-5-jar`)",
                proposed.version
            );
            return Err(Refusal::field("sparkVersion", reason));
        }
        if proposed.request.spark_properties.contains_key(TOKEN_PROPERTY) {
            return Err(Refusal::property(TOKEN_PROPERTY, "the gateway gives each session a token of its own"));
        }
        check_options(session, self.settings.longest_idle_timeout.as_secs())
    }

    fn check<'a>(&'a self, proposed: &'a Proposed<'a>) -> Step<'a, ()> {
        proposed.options.session.as_ref()?;
        (proposed.version < SparkVersion::V4_0).then(|| self.check_network(proposed).boxed())
    }

    fn attach<'a>(&'a self, id: &'a SubmissionId, proposed: &'a Proposed<'a>) -> Step<'a, ()> {
        let session = proposed.options.session.as_ref()?;
        Some(self.store_session(id, session, proposed).boxed())
    }

    fn detach<'a>(&'a self, id: &'a SubmissionId) -> Step<'a, ()> {
        Some(async move { Ok(self.store.delete_connect_session(id).await?) }.boxed())
    }

    fn resolve<'a>(&'a self, attempt: &'a Attempt<'a>, manifest: &'a mut Manifest) -> Step<'a, Resolution> {
        // Only sessions run this class, but an argument of another application may name it.
        if !manifest.pod.get().contains(SERVER) {
            return None;
        }
        Some(self.complete(attempt, manifest).boxed())
    }
}

fn check_options(session: &SessionOptions, longest: u64) -> Result<(), Refusal> {
    let is_name = |name: &str| {
        let is_good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        (1..=63).contains(&name.len()) && name.chars().all(is_good)
    };
    if !is_name(&session.name) {
        let reason = "a name has up to 63 letters, digits, hyphens, underscores and dots";
        return Err(Refusal::field("name", format!("{:?} is no name of a session: {reason}", session.name)));
    }
    let seconds = session.idle_timeout.as_secs();
    if !(60..=longest).contains(&seconds) {
        let reason = format!("{seconds} seconds: it must be from 60 to {longest} (`connect-max-idle-timeout`)");
        return Err(Refusal::field("idleTimeoutSeconds", reason));
    }
    Ok(())
}

impl Connect {
    /// Refuses a session whose driver everyone could reach. It is checked again when the driver is launched.
    async fn check_network(&self, proposed: &Proposed<'_>) -> Result<(), Error> {
        let namespace = proposed.request.spark_properties.get("spark.kubernetes.namespace");
        let namespace = namespace.map_or("default", String::as_str);
        match self.unprotected(namespace).await? {
            Some(why) => Err(Refusal::field("sparkVersion", why).into()),
            None => Ok(()),
        }
    }

    async fn store_session(
        &self,
        id: &SubmissionId,
        session: &SessionOptions,
        proposed: &Proposed<'_>,
    ) -> Result<(), Error> {
        let (of_principal, of_tenant) = (self.settings.of_principal, self.settings.of_tenant);
        let new = NewConnectSession {
            id,
            tenant: proposed.tenant,
            principal: proposed.principal,
            name: &session.name,
            is_shared: session.is_shared,
            idle_timeout: session.idle_timeout,
            most: (of_principal, of_tenant),
        };
        match self.store.open_connect_session(&new).await? {
            OpenedSession::New => Ok(()),
            OpenedSession::Named(by) => {
                let namespace = proposed.request.spark_properties.get("spark.kubernetes.namespace");
                let namespace = namespace.cloned().unwrap_or_default();
                Err(Error::NameTaken { name: session.name.clone(), namespace, by })
            }
            OpenedSession::Full => Err(Error::Denied(format!(
                "there are too many live sessions: {of_principal} of a principal and {of_tenant} of tenant {} are permitted; end one \
                 with `sparkgate session end`",
                proposed.tenant
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn names_and_times_of_sessions_have_bounds() {
        let field = |name: &str, seconds: u64| {
            let idle_timeout = Duration::from_secs(seconds);
            let session = SessionOptions { name: name.to_owned(), is_shared: false, idle_timeout };
            check_options(&session, 3600).err().map(|refusal| refusal.field)
        };
        assert_eq!(field("a-B_1.x", 60), None);
        for name in ["", "a b", "ä", &"a".repeat(64)] {
            assert_eq!(field(name, 60).as_deref(), Some("name"), "{name}");
        }
        for seconds in [0, 59, 3601] {
            assert_eq!(field("a", seconds).as_deref(), Some("idleTimeoutSeconds"), "{seconds}");
        }
    }
}
