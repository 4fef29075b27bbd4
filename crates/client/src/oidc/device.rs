//! The device authorization grant (RFC 8628): the user confirms a code in a browser, which may run on another machine.

use std::time::Duration;

use secrecy::ExposeSecret;
use serde::Deserialize;
use tokio::time::{Instant, sleep};

use super::{Answered, Grant, Issuer, Refusal};
use crate::{error::Error, secret::Secret};

const GRANT_TYPE: &str = "urn:ietf:params:oauth:grant-type:device_code";
/// `offline_access` asks for a refresh token.
const SCOPES: [&str; 2] = ["openid profile offline_access", "openid profile"];
/// The pause between polls if the provider names none.
const PAUSE: u64 = 5;
/// By how much `slow_down` extends the pause.
const SLOWER: Duration = Duration::from_secs(5);

/// A code that waits for its user (RFC 8628, 3.2).
#[derive(Debug, Deserialize)]
pub(crate) struct Device {
    device_code: Secret,
    pub(crate) user_code: String,
    pub(crate) verification_uri: String,
    /// The URL with the code in it.
    pub(crate) verification_uri_complete: Option<String>,
    expires_in: u64,
    #[serde(default = "pause")]
    interval: u64,
}

fn pause() -> u64 {
    PAUSE
}

/// What to do after a poll.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    /// Poll again after this pause.
    Poll(Duration),
    /// The login has failed.
    Fail(String),
}

impl Issuer {
    /// Requests a code for the user.
    ///
    /// # Errors
    /// The provider can't be reached, doesn't have the device flow, or refuses this client.
    pub(crate) async fn device(&self) -> Result<Device, Error> {
        let Some(endpoint) = &self.endpoints.device_authorization_endpoint else {
            return Err(Error::Here(format!(
                "{} has no device flow (RFC 8628), which this command needs: its metadata has no \
                 device_authorization_endpoint. Use a token instead: SPARKGATE_TOKEN, or --token-file",
                self.url
            )));
        };
        let mut refused = None;
        for scope in SCOPES {
            match self.post("requesting a code", endpoint, &[("scope", scope)]).await? {
                Ok(device) => return Ok(device),
                Err(refusal) if refusal.error == "invalid_scope" => refused = Some(refusal),
                Err(refusal) => return Err(self.refused(&refusal)),
            }
        }
        Err(refused.map_or_else(|| Error::Here(String::new()), |refusal| self.refused(&refusal)))
    }

    /// Polls until the user has confirmed the code.
    ///
    /// # Errors
    /// The user denies the login, the code expires, or the provider refuses.
    pub(crate) async fn granted(&self, device: &Device) -> Result<Grant, Error> {
        let form = [("grant_type", GRANT_TYPE), ("device_code", device.device_code.text().expose_secret())];
        let end = Instant::now() + Duration::from_secs(device.expires_in);
        let mut pause = Duration::from_secs(device.interval);
        while Instant::now() < end {
            sleep(pause).await;
            let answer: Result<Answered<Grant>, Error> =
                self.post("waiting for the login", &self.endpoints.token_endpoint, &form).await;
            match answer {
                Ok(Ok(grant)) => return Ok(grant),
                Ok(Err(refusal)) => match next(&refusal, pause) {
                    Next::Poll(next) => pause = next,
                    Next::Fail(cause) => return Err(Error::Here(format!("{}: {cause}", self.url))),
                },
                // RFC 8628, 3.5: longer pauses after a timeout.
                Err(error) if error.is_passing() => pause = pause.max(Duration::from_secs(1)) * 2,
                Err(error) => return Err(error),
            }
        }
        Err(Error::Here(format!("{}: {EXPIRED}", self.url)))
    }

    fn refused(&self, refusal: &Refusal) -> Error {
        Error::Here(format!("{} refuses the login: {refusal}", self.url))
    }
}

const EXPIRED: &str = "the code has expired: run `sparkgate login` again";

/// Returns what follows from a refusal (RFC 8628, 3.5).
fn next(refusal: &Refusal, pause: Duration) -> Next {
    match refusal.error.as_str() {
        "authorization_pending" => Next::Poll(pause),
        "slow_down" => Next::Poll(pause + SLOWER),
        "expired_token" => Next::Fail(EXPIRED.to_owned()),
        "access_denied" => Next::Fail("the login was denied".to_owned()),
        _ => Next::Fail(format!("the login was refused: {refusal}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polls_follow_the_providers_pace() {
        let refusal = |error: &str| Refusal { error: error.to_owned(), error_description: None };
        let after = |error: &str, seconds| next(&refusal(error), Duration::from_secs(seconds));
        assert_eq!(after("authorization_pending", 5), Next::Poll(Duration::from_secs(5)));
        assert_eq!(after("slow_down", 5), Next::Poll(Duration::from_secs(10)));
        assert_eq!(after("slow_down", 10), Next::Poll(Duration::from_secs(15)));
        assert_eq!(after("access_denied", 5), Next::Fail("the login was denied".to_owned()));
        assert_eq!(after("expired_token", 5), Next::Fail(EXPIRED.to_owned()));
        assert!(matches!(after("invalid_client", 5), Next::Fail(cause) if cause.ends_with("invalid_client")));
    }

    #[test]
    fn a_provider_without_an_interval_is_polled_every_five_seconds() {
        let text =
            r#"{"device_code": "d", "user_code": "U", "verification_uri": "https://id.example", "expires_in": 60}"#;
        let device: Device = serde_json::from_str(text).unwrap();
        assert_eq!((device.interval, device.verification_uri_complete), (5, None));
    }
}
