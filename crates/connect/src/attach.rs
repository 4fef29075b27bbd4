//! A session at the ports of its submission.

use futures::FutureExt;
use serde_json::{
    Value, json,
    value::{RawValue, to_raw_value},
};

use super::{Connect, token};
use sparkgate_cluster::Manifest;
use sparkgate_common::error::Error;
use sparkgate_core::ports::{Attachment, Attempt, NoLaunch, Proposed, Resolution, Step};
use sparkgate_requests::options::SessionOptions;
use sparkgate_spark::{Refusal, SparkVersion};
use sparkgate_store::{NewConnectSession, OpenedSession};
use sparkgate_submission::SubmissionId;

/// The class of Spark Connect's server.
pub(crate) const SERVER: &str = "org.apache.spark.sql.connect.service.SparkConnectServer";
/// The variable, and the property, with the token that the server requires.
const TOKEN: &str = "SPARK_CONNECT_AUTHENTICATE_TOKEN";
const TOKEN_PROPERTY: &str = "spark.connect.authenticate.token";
/// The key of the token in its Secret.
const KEY: &str = "token";

impl Attachment for Connect {
    fn validate(&self, proposed: &Proposed<'_>) -> Result<(), Refusal> {
        let Some(session) = &proposed.options.session else { return Ok(()) };
        if self.settings.listen.is_none() {
            let reason = "this gateway serves no sessions of Spark Connect: its operator has to set `connect-listen`";
            return Err(Refusal::field("name", reason));
        }
        if proposed.version < SparkVersion::V4_0 {
            let reason = format!(
                "Spark {} has no authentication for Spark Connect: a session needs Spark 4.0 or later",
                proposed.version
            );
            return Err(Refusal::field("sparkVersion", reason));
        }
        if proposed.request.spark_properties.contains_key(TOKEN_PROPERTY) {
            return Err(Refusal::property(TOKEN_PROPERTY, "the gateway gives each session a token of its own"));
        }
        check_options(session, self.settings.longest_idle_timeout.as_secs())
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
        Some(self.give_token(attempt, manifest).boxed())
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

    /// Gives the driver its token, in a Secret that its pod owns.
    async fn give_token(&self, attempt: &Attempt<'_>, manifest: &mut Manifest) -> Result<Resolution, Error> {
        let (_, digest) = token::new(&self.installation, attempt.id);
        let Some(digest) = self.store.keep_connect_token(attempt.id, &digest).await? else {
            return Ok(Resolution::Ready);
        };
        let Some(token) = token::with_digest(&self.installation, attempt.id, &digest) else {
            let message = "the key that the token of this session is derived from is gone: open another session";
            return Ok(Resolution::Refused(NoLaunch { reason: "SessionKeyGone", message: message.to_owned() }));
        };
        Ok(match with_token(manifest, &token) {
            Ok(()) => Resolution::Ready,
            Err(why) => Resolution::Refused(NoLaunch::unreadable(why)),
        })
    }
}

/// Adds a Secret with the token, and the variable that the driver's container reads it from.
fn with_token(manifest: &mut Manifest, token: &str) -> Result<(), String> {
    let parse = |object: &RawValue| serde_json::from_str::<Value>(object.get()).map_err(|error| error.to_string());
    let write = |object: &Value| to_raw_value(object).map_err(|error| error.to_string());
    let mut pod = parse(&manifest.pod)?;
    let main = manifest.beside.last().ok_or("there is no main ConfigMap")?;
    let main = parse(main)?;
    // The name of the main ConfigMap is unique to the attempt.
    let map = main["metadata"]["name"].as_str().ok_or("the main ConfigMap has no name")?;
    let name = format!("{}-connect-token", map.strip_suffix("-conf-map").unwrap_or(map));
    // Spark appends the driver's container after all others.
    let containers = pod.pointer_mut("/spec/containers").and_then(Value::as_array_mut);
    let container = containers.and_then(|all| all.last_mut()).and_then(Value::as_object_mut);
    let container = container.ok_or("the pod has no container")?;
    let env = container.entry("env").or_insert_with(|| json!([])).as_array_mut();
    let env = env.ok_or("the variables of the driver are no list")?;
    env.retain(|variable| variable["name"] != TOKEN);
    env.push(json!({"name": TOKEN, "valueFrom": {"secretKeyRef": {"name": name, "key": KEY}}}));
    let mut metadata = json!({ "name": name });
    if let Some(namespace) = main["metadata"].get("namespace") {
        metadata["namespace"] = namespace.clone();
    }
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "immutable": true, "stringData": {KEY: token}});
    manifest.pod = write(&pod)?;
    // The main ConfigMap comes last: the driver starts once it exists.
    let before_main = manifest.beside.len() - 1;
    manifest.beside.insert(before_main, write(&secret)?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn raw(value: &Value) -> Box<RawValue> {
        to_raw_value(value).unwrap()
    }

    #[test]
    fn the_token_is_in_a_secret_and_in_no_other_object() {
        let pod = json!({"kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "sidecar"},
            {"name": "driver", "env": [{"name": TOKEN, "value": "mine"}, {"name": "A", "value": "b"}]}]}});
        let map = json!({"kind": "ConfigMap", "metadata": {"name": "spark-drv-0a1b-conf-map", "namespace": "red"}});
        let mut manifest = Manifest { pod: raw(&pod), beside: vec![raw(&map)], before: Vec::new(), judged: None };
        with_token(&mut manifest, "t0ken").unwrap();
        let secret: Value = serde_json::from_str(manifest.beside[0].get()).unwrap();
        assert_eq!(secret["metadata"], json!({"name": "spark-drv-0a1b-connect-token", "namespace": "red"}));
        assert_eq!(secret["stringData"]["token"], "t0ken");
        assert!(!manifest.pod.get().contains("t0ken") && !manifest.pod.get().contains("mine"));
        let pod: Value = serde_json::from_str(manifest.pod.get()).unwrap();
        let env = &pod["spec"]["containers"][1]["env"];
        assert_eq!(env[1]["valueFrom"]["secretKeyRef"]["name"], "spark-drv-0a1b-connect-token");
        assert_eq!(env.as_array().unwrap().len(), 2);
        assert!(pod["spec"]["containers"][0].get("env").is_none());
    }

    #[test]
    fn names_and_times_of_sessions_have_bounds() {
        let field = |name: &str, seconds: u64| {
            let idle_timeout = Duration::from_secs(seconds);
            let session = SessionOptions { name: name.to_owned(), idle_timeout };
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
