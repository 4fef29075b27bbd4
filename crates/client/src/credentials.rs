//! The logins of a user, in `credentials.yaml`: each is of one context.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use tokio::task::spawn_blocking;

use super::{
    connection::Trust,
    contexts::{ContextName, parse, text_of},
    error::Error,
    oidc::{Grant, Issuer, Refusal},
    paths::Paths,
    private_file::{self, Lock},
    secret::Secret,
    server::Server,
};

/// A token that ends so soon is renewed before it is used.
const SOON: TimeDelta = TimeDelta::seconds(30);

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Credentials {
    logins: BTreeMap<ContextName, Login>,
}

/// The tokens of a login.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Login {
    /// The gateway that the tokens are for. They are sent to no other.
    pub(super) server: Server,
    pub(super) issuer: String,
    pub(super) client_id: String,
    pub(super) access_token: Secret,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) refresh_token: Option<Secret>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) expires_at: Option<DateTime<Utc>>,
}

impl Login {
    /// Takes the tokens that a provider has granted. A refresh token that isn't replaced stays valid.
    pub(super) fn update(&mut self, grant: Grant, granted: DateTime<Utc>) {
        self.expires_at = grant.expires_at(granted);
        self.access_token = grant.access_token;
        self.refresh_token = grant.refresh_token.or_else(|| self.refresh_token.take());
    }

    fn ends_soon(&self, now: DateTime<Utc>) -> bool {
        self.expires_at.is_some_and(|end| end - SOON <= now)
    }

    fn has_ended(&self, now: DateTime<Utc>) -> bool {
        self.expires_at.is_some_and(|end| end <= now)
    }
}

/// Returns the login of a context.
///
/// # Errors
/// The file can't be read, or other users can read it.
pub(super) fn find(paths: &Paths, name: &ContextName) -> Result<Option<Login>, Error> {
    Ok(read(paths)?.logins.remove(name))
}

/// Returns the contexts that have a login, and the gateways that the logins are for.
///
/// # Errors
/// As [`find`].
pub(super) fn servers(paths: &Paths) -> Result<BTreeMap<ContextName, Server>, Error> {
    Ok(read(paths)?.logins.into_iter().map(|(name, login)| (name, login.server)).collect())
}

/// Stores the login of a context.
///
/// # Errors
/// The file can't be read or written.
pub(super) fn store(paths: &Paths, name: &ContextName, login: Login) -> Result<(), Error> {
    let _lock = Lock::take(&paths.credentials_lock())?;
    write(paths, name, Some(login)).map(|_| ())
}

/// Deletes the login of a context and returns it.
///
/// # Errors
/// As [`store`].
pub(super) fn delete(paths: &Paths, name: &ContextName) -> Result<Option<Login>, Error> {
    if find(paths, name)?.is_none() {
        return Ok(None);
    }
    let _lock = Lock::take(&paths.credentials_lock())?;
    write(paths, name, None)
}

fn read(paths: &Paths) -> Result<Credentials, Error> {
    let path = paths.credentials();
    let text = private_file::read(&path)?.unwrap_or_default();
    parse(&path, &text)
}

/// Replaces a login under the lock. Returns the one before.
fn write(paths: &Paths, name: &ContextName, login: Option<Login>) -> Result<Option<Login>, Error> {
    let mut credentials = read(paths)?;
    let before = match login {
        Some(login) => credentials.logins.insert(name.clone(), login),
        None => credentials.logins.remove(name),
    };
    private_file::write(&paths.credentials(), &text_of(&credentials)?)?;
    Ok(before)
}

/// Returns a login whose access token doesn't end soon: `login`, or one that is renewed and stored. Of several commands one
/// renews it, because a provider may accept a refresh token only once.
///
/// # Errors
/// The login has ended, the provider can't be reached, or the file can't be read or written.
pub(super) async fn renewed(paths: &Paths, name: &ContextName, login: &Login, trust: &Trust) -> Result<Login, Error> {
    if !login.ends_soon(Utc::now()) {
        return Ok(login.clone());
    }
    let path = paths.credentials_lock();
    let lock = spawn_blocking(move || Lock::take(&path)).await;
    let _lock = lock.map_err(|error| Error::Here(format!("waiting for the lock of the logins: {error}")))??;
    // Another command may have renewed it, or logged out.
    let mut login =
        find(paths, name)?.filter(|stored| stored.server == login.server).ok_or_else(|| ended(name, None))?;
    let now = Utc::now();
    if !login.ends_soon(now) {
        return Ok(login);
    }
    let Some(token) = &login.refresh_token else {
        return if login.has_ended(now) { Err(ended(name, None)) } else { Ok(login) };
    };
    let renewal = async {
        let issuer = Issuer::discover(&login.issuer, &login.client_id, trust).await?;
        issuer.refresh(token.text()).await
    };
    match renewal.await {
        Ok(Ok(grant)) => login.update(grant, now),
        Ok(Err(refusal)) => return Err(ended(name, Some(&refusal))),
        // The token is still good for a few seconds.
        Err(error) if error.is_passing() && !login.has_ended(Utc::now()) => return Ok(login),
        Err(error) => return Err(error),
    }
    write(paths, name, Some(login.clone()))?;
    Ok(login)
}

fn ended(name: &ContextName, refusal: Option<&Refusal>) -> Error {
    let because = refusal.map(|refusal| format!(" (it can't be renewed: {refusal})")).unwrap_or_default();
    Error::Here(format!("the login of the context `{name}` has ended{because}: run `sparkgate login --context {name}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_is_stored_beside_the_contexts_and_shows_no_token() {
        let now = Utc::now();
        let text = format!(
            "logins:\n  prod:\n    server: https://gate.example\n    issuer: https://id.example\n    clientId: cli\n    \
             accessToken: s3cret\n    refreshToken: s3cret\n    expiresAt: {}\n",
            now.to_rfc3339()
        );
        let credentials: Credentials = parse(std::path::Path::new("/credentials.yaml"), &text).unwrap();
        let login = &credentials.logins["prod"];
        assert!(!format!("{login:?}").contains("s3cret"));
        assert_eq!(login.expires_at, Some(now));
        let again: Credentials = parse(std::path::Path::new("/c"), &text_of(&credentials).unwrap()).unwrap();
        assert_eq!(again.logins["prod"].expires_at, Some(now));
        for (before, soon, over) in [(31, false, false), (30, true, false), (1, true, false), (0, true, true)] {
            let at = now - TimeDelta::seconds(before);
            assert_eq!((login.ends_soon(at), login.has_ended(at)), (soon, over), "{before} s before its end");
        }
    }

    #[test]
    fn a_refresh_token_stays_unless_it_is_replaced() {
        let login = "{server: 'https://gate.example', issuer: i, clientId: c, accessToken: a, refreshToken: r}";
        let mut login: Login = serde_saphyr::from_str(login).unwrap();
        let text = |secret: &Option<Secret>| secret.clone().map(String::from);
        let now = Utc::now();
        for (grant, refresh, expires) in [
            (r#"{"access_token": "b", "expires_in": 60}"#, "r", Some(now + TimeDelta::seconds(60))),
            (r#"{"access_token": "c", "refresh_token": "s"}"#, "s", None),
        ] {
            login.update(serde_json::from_str(grant).unwrap(), now);
            assert_eq!((text(&login.refresh_token).as_deref(), login.expires_at), (Some(refresh), expires));
        }
        assert_eq!(String::from(login.access_token), "c");
    }
}
