//! The access file: its form, and the checks of its values.

mod authentication;
mod document;
mod fault;
mod member;
mod queue;
mod tenant;
#[cfg(test)]
mod tests;

pub use document::{Entries, Text};
pub use fault::{AccessFileError, Fault};

use crate::{
    access::Access,
    rate::{InvalidRate, Rate, Rates},
};
use document::{Document, RatesDocument};
use fault::Faults;

/// The greatest size of an access file in bytes.
const LARGEST: usize = 1 << 20;

impl Access {
    /// Reads an access file.
    ///
    /// # Errors
    /// The text is no access file. The error has all faults of its values, or the first fault of its form, with their places.
    pub fn parse(text: &str) -> Result<Self, AccessFileError> {
        parse(text)
    }
}

/// Reads an access file: first its form, then all of its values.
fn parse(text: &str) -> Result<Access, AccessFileError> {
    if text.len() > LARGEST {
        return Err(Fault::in_file(format!("the file has {} bytes, more than {LARGEST}", text.len())).into());
    }
    let options = serde_saphyr::options! { with_snippet: false };
    let document: Document =
        serde_saphyr::from_str_with_options(text, options).map_err(|error| Fault::from_yaml(&error))?;
    let mut faults = Faults::default();
    let authentication = authentication::check(document.authentication.unwrap_or_default(), &mut faults);
    let providers = member::Known::new(&authentication);
    let (mut tenants, default_queues) = tenant::check(document.tenants, &providers, &mut faults);
    let queues = queue::check(document.capacity, document.queues, &mut tenants, &default_queues, &mut faults);
    let members = member::check(document.members.unwrap_or_default(), "members", &providers, true, &mut faults);
    let rates = rates(document.limits.unwrap_or_default(), &mut faults);
    faults.into_result(Access::new(Some(authentication), tenants, members, Some(rates)).with_queues(queues))
}

/// Checks the limits of the front door.
fn rates(document: RatesDocument, faults: &mut Faults) -> Rates {
    let mut rate = |name: &str, text: Option<Text>, parse: fn(&str) -> Result<Rate, InvalidRate>, default: Rate| {
        let Some(text) = text else { return default };
        parse(&text.value).unwrap_or_else(|error| {
            faults.add(&text.referenced, format!("limits.{name}"), error);
            default
        })
    };
    let default = Rates::default();
    Rates {
        writes: rate("writes", document.writes, Rate::parse, default.writes),
        reads: rate("reads", document.reads, Rate::parse, default.reads),
        bytes: rate("bytes", document.bytes, Rate::parse_bytes, default.bytes),
        failed_logins: rate("failedLogins", document.failed_logins, Rate::parse, default.failed_logins),
    }
}
