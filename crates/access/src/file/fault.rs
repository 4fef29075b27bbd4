//! Faults of an access file, and of other files of the operator with the same notation.

use std::fmt;

use serde_saphyr::{Location, MessageFormatter as _, UserMessageFormatter};

use crate::access::Access;

/// A fault of a file, and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The line, counted from 1; 0 if the fault has no place.
    pub line: u64,
    /// The column, counted from 1; 0 if the fault has no place.
    pub column: u64,
    /// The field, `tenants.analytics.namespaces[1]`; empty for a fault of the form.
    pub path: String,
    pub message: String,
}

impl Fault {
    /// Creates the fault of a value.
    pub fn at(location: &Location, path: impl Into<String>, message: impl fmt::Display) -> Self {
        Self { line: location.line(), column: location.column(), path: path.into(), message: message.to_string() }
    }

    /// Creates a fault that has no place.
    pub fn in_file(message: impl fmt::Display) -> Self {
        Self { line: 0, column: 0, path: String::new(), message: message.to_string() }
    }

    /// Creates the fault of a text that isn't YAML, or hasn't the form of the file.
    pub fn from_yaml(error: &serde_saphyr::Error) -> Self {
        let message = UserMessageFormatter.format_message(error);
        let message = message.chars().map(|c| if c.is_control() { ' ' } else { c }).collect::<String>();
        match error.location() {
            Some(location) => Self::at(&location, "", message),
            None => Self::in_file(message),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line > 0 {
            write!(f, "line {}, column {}: ", self.line, self.column)?;
        }
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)
    }
}

/// An access file can't be used. Its text has one line for each fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessFileError {
    pub faults: Vec<Fault>,
}

impl std::error::Error for AccessFileError {}

impl fmt::Display for AccessFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the access file is invalid:")?;
        self.faults.iter().try_for_each(|fault| write!(f, "\n  {fault}"))
    }
}

impl From<Fault> for AccessFileError {
    fn from(fault: Fault) -> Self {
        Self { faults: vec![fault] }
    }
}

/// The faults found so far.
#[derive(Default)]
pub(super) struct Faults(Vec<Fault>);

impl Faults {
    pub(super) fn add(&mut self, location: &Location, path: impl Into<String>, message: impl fmt::Display) {
        self.0.push(Fault::at(location, path, message));
    }

    /// Adds a fault that has no place of its own.
    pub(super) fn add_without_place(&mut self, path: impl Into<String>, message: impl fmt::Display) {
        self.0.push(Fault { path: path.into(), ..Fault::in_file(message) });
    }

    /// Returns the access if there is no fault, else all faults in the order of the file.
    pub(super) fn into_result(mut self, access: Access) -> Result<Access, AccessFileError> {
        if self.0.is_empty() {
            return Ok(access);
        }
        self.0.sort_by_key(|fault| (fault.line, fault.column));
        Err(AccessFileError { faults: self.0 })
    }
}
