//! Tickets: signed permissions to use the UI of one submission for a short time.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::{
    service::signature::{is_signature_of, signature_of},
    submission::{Installation, SubmissionId},
};

/// How long a ticket is valid. Then the reader's browser asks for another one, with the reader's credentials.
const VALID: Duration = Duration::from_secs(15 * 60);

/// A permission to use the UI of one submission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ticket {
    pub id: SubmissionId,
    /// Whether its holder may kill jobs and stages: only who may kill the submission.
    pub may_kill: bool,
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
    pub(super) fn new(id: SubmissionId, may_kill: bool, now: DateTime<Utc>) -> Self {
        Self { id, may_kill, until: now.timestamp().saturating_add_unsigned(VALID.as_secs()) }
    }

    /// Returns the ticket as a part of a path.
    pub(super) fn text(&self, installation: &Installation) -> String {
        let (may, until) = (if self.may_kill { 'k' } else { 'r' }, self.until);
        format!("{may}{until:x}-{}", signature_of(installation, &self.claims()))
    }

    pub(super) fn read(
        installation: &Installation,
        id: &SubmissionId,
        text: &str,
        now: DateTime<Utc>,
    ) -> Result<Self, TicketFault> {
        let (claims, signature) = text.split_once('-').ok_or(TicketFault::Forged)?;
        let (may_kill, until) = match (claims.strip_prefix('k'), claims.strip_prefix('r')) {
            (Some(until), _) => (true, until),
            (None, Some(until)) => (false, until),
            (None, None) => return Err(TicketFault::Forged),
        };
        let until = i64::from_str_radix(until, 16).map_err(|_| TicketFault::Forged)?;
        let ticket = Self { id: id.clone(), may_kill, until };
        if !is_signature_of(installation, &ticket.claims(), signature) {
            return Err(TicketFault::Forged);
        }
        if until < now.timestamp() { Err(TicketFault::Expired) } else { Ok(ticket) }
    }

    /// Returns what is signed.
    fn claims(&self) -> String {
        let Self { id, may_kill, until } = self;
        format!("Spark UI of {id}: until {until}, kill {may_kill}")
    }
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
        for may_kill in [false, true] {
            let ticket = Ticket::new(id.clone(), may_kill, now);
            let text = ticket.text(&ours);
            assert_eq!(Ticket::read(&ours, &id, &text, now), Ok(ticket));
            let late = now + TimeDelta::from_std(VALID).unwrap() + TimeDelta::seconds(1);
            assert_eq!(Ticket::read(&ours, &id, &text, late), Err(TicketFault::Expired));
            assert_eq!(Ticket::read(&ours, &other, &text, now), Err(TicketFault::Forged), "of another submission");
            let theirs = Installation::new(Uuid::nil(), vec![8; 32]);
            assert_eq!(Ticket::read(&theirs, &id, &text, now), Err(TicketFault::Forged), "of another installation");
            let turned = if may_kill { text.replacen('k', "r", 1) } else { text.replacen('r', "k", 1) };
            let (claims, signature) = text.split_once('-').unwrap();
            let later = format!("{}{:x}-{signature}", &claims[..1], late.timestamp());
            for forged in
                [&turned, &later, claims, "", "-", "r-", &format!("x{text}"), &format!("{text}0"), &text[..20]]
            {
                assert_eq!(Ticket::read(&ours, &id, forged, now), Err(TicketFault::Forged), "{forged}");
            }
        }
    }
}
