//! Tickets: permissions to use the UI of one submission for a short time.
//!
//! A ticket says whose it is, so that a kill of a job has a caller in the audit. The driver sees the ticket, because its pages link to
//! themselves, and must not learn who reads its UI: a ticket is encrypted and authenticated (AES-256-GCM), with a key of the
//! installation for its submission.

use std::time::Duration;

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use chrono::{DateTime, Utc};
use ring::{
    aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey},
    error::Unspecified,
    rand::{SecureRandom, SystemRandom},
};

use sparkgate_common::error::Error;
use sparkgate_core::signing_keys::made_lately;
use sparkgate_submission::{Installation, SubmissionId};

/// How long a ticket is valid. Then the reader's browser asks for another one, with the reader's credentials.
const VALID: Duration = Duration::from_secs(15 * 60);

/// A permission to use the UI of one submission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ticket {
    pub id: SubmissionId,
    /// Whether its holder may kill jobs and stages: only who may kill the submission.
    pub may_kill: bool,
    /// The principal that got it; `None` if callers are not authenticated.
    pub principal: Option<String>,
    /// In seconds since 1970.
    until: i64,
}

/// A ticket is of no use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TicketFault {
    Forged,
    Expired,
}

impl Ticket {
    pub(super) fn new(id: SubmissionId, may_kill: bool, principal: Option<String>, now: DateTime<Utc>) -> Self {
        Self { id, may_kill, principal, until: now.timestamp().saturating_add_unsigned(VALID.as_secs()) }
    }

    /// Returns the ticket as a part of a path.
    ///
    /// # Errors
    /// The operating system has no random bytes.
    pub(super) fn text(&self, installation: &Installation) -> Result<String, Error> {
        let sealed = self.sealed(installation);
        let sealed =
            sealed.map_err(|error| Error::Internal(format!("sealing a ticket of {}", self.id), error.into()))?;
        Ok(BASE64_URL_SAFE_NO_PAD.encode(sealed))
    }

    pub(super) fn read(
        installation: &Installation,
        id: &SubmissionId,
        text: &str,
        now: DateTime<Utc>,
    ) -> Result<Self, TicketFault> {
        let ticket = Self::opened(installation, id, text).ok_or(TicketFault::Forged)?;
        if ticket.until < now.timestamp() { Err(TicketFault::Expired) } else { Ok(ticket) }
    }

    /// Returns a random nonce and the encrypted claims.
    fn sealed(&self, installation: &Installation) -> Result<Vec<u8>, Unspecified> {
        let Self { id, may_kill, principal, until } = self;
        let (may, whose) = (if *may_kill { 'k' } else { 'r' }, if principal.is_some() { 'p' } else { 'n' });
        let mut claims = format!("{may}{whose}{until:x} {}", principal.as_deref().unwrap_or_default()).into_bytes();
        let mut nonce = [0; NONCE_LEN];
        SystemRandom::new().fill(&mut nonce)?;
        let key = cipher(&installation.key_for(&purpose(id)))?;
        key.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::empty(), &mut claims)?;
        Ok([&nonce[..], &claims].concat())
    }

    fn opened(installation: &Installation, id: &SubmissionId, text: &str) -> Option<Self> {
        let sealed = BASE64_URL_SAFE_NO_PAD.decode(text).ok()?;
        let (nonce, claims) = sealed.split_first_chunk::<NONCE_LEN>()?;
        let claims =
            installation.keys_for(&purpose(id)).iter().filter(|key| key.counts_at(made_lately())).find_map(|key| {
                let mut claims = claims.to_vec();
                let nonce = Nonce::assume_unique_for_key(*nonce);
                let length = cipher(&key.key).ok()?.open_in_place(nonce, Aad::empty(), &mut claims).ok()?.len();
                claims.truncate(length);
                Some(claims)
            })?;
        let (kinds, principal) = std::str::from_utf8(&claims).ok()?.split_once(' ')?;
        let may_kill = kinds.starts_with('k');
        let (_, rest) = kinds.split_at_checked(1)?;
        let (principal, until) = match (rest.strip_prefix('p'), rest.strip_prefix('n')) {
            (Some(until), _) => (Some(principal.to_owned()), until),
            (None, until) => (None, until?),
        };
        Some(Self { id: id.clone(), may_kill, principal, until: i64::from_str_radix(until, 16).ok()? })
    }
}

/// Returns the purpose of the key of a submission's tickets.
fn purpose(id: &SubmissionId) -> String {
    format!("tickets of the Spark UI of {id}")
}

fn cipher(key: &[u8; 32]) -> Result<LessSafeKey, Unspecified> {
    Ok(LessSafeKey::new(UnboundKey::new(&AES_256_GCM, key)?))
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_ticket_is_valid_for_one_submission_and_a_short_time() {
        let ours = Installation::new(Uuid::nil(), vec![7; 32]);
        let id: SubmissionId = "driver-20260101000000-0001".parse().unwrap();
        let other: SubmissionId = "driver-20260101000000-0002".parse().unwrap();
        let now = Utc::now();
        for (may_kill, principal) in
            [(false, None), (true, Some("corp:alice smith")), (true, Some("")), (false, Some("corp:ünï"))]
        {
            let ticket = Ticket::new(id.clone(), may_kill, principal.map(str::to_owned), now);
            let text = ticket.text(&ours).unwrap();
            assert_eq!(Ticket::read(&ours, &id, &text, now), Ok(ticket.clone()));
            let late = now + TimeDelta::from_std(VALID).unwrap() + TimeDelta::seconds(1);
            assert_eq!(Ticket::read(&ours, &id, &text, late), Err(TicketFault::Expired));
            assert_eq!(Ticket::read(&ours, &other, &text, now), Err(TicketFault::Forged), "of another submission");
            let theirs = Installation::new(Uuid::nil(), vec![8; 32]);
            assert_eq!(Ticket::read(&theirs, &id, &text, now), Err(TicketFault::Forged), "of another installation");
            for at in 0..text.len() {
                let mut forged = text.clone().into_bytes();
                forged[at] = if forged[at] == b'A' { b'B' } else { b'A' };
                let forged = String::from_utf8(forged).unwrap();
                // The last character has bits that stand for nothing.
                let expected = BASE64_URL_SAFE_NO_PAD.decode(&forged) == BASE64_URL_SAFE_NO_PAD.decode(&text);
                assert_eq!(Ticket::read(&ours, &id, &forged, now).is_ok(), expected, "{at}");
            }
            for forged in ["", "-", "r-", &format!("x{text}"), &format!("{text}0"), &text[..20], &text[..10]] {
                assert_eq!(Ticket::read(&ours, &id, forged, now), Err(TicketFault::Forged), "{forged}");
            }
            assert_ne!(ticket.text(&ours).unwrap(), text, "no two tickets are the same");
        }
    }

    #[test]
    fn a_ticket_does_not_show_whose_it_is() {
        let ours = Installation::new(Uuid::nil(), vec![7; 32]);
        let id: SubmissionId = "driver-20260101000000-0001".parse().unwrap();
        let ticket = Ticket::new(id, true, Some("corp:alice".to_owned()), Utc::now());
        let text = ticket.text(&ours).unwrap();
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(&text).unwrap();
        assert!(!bytes.windows(5).any(|part| part == b"alice"));
        assert!(text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)), "{text}");
    }
}
