//! Secrets that are looked for, and logs in which they are looked for.

use std::{
    io::{self, Write},
    sync::{Arc, Mutex},
};

use base64::{Engine, prelude::BASE64_STANDARD_NO_PAD};
use sparkgate::{
    api::audit_line,
    store::{AuditEntry, AuditLog},
};
use uuid::Uuid;

/// The secrets of a test, each with the place where it was put.
#[derive(Default)]
pub(super) struct Canaries(pub(super) Vec<(String, String)>);

impl Canaries {
    pub(super) fn put(&mut self, place: &str) -> String {
        let canary = format!("canary{}", &Uuid::new_v4().simple().to_string()[..16]);
        self.0.push((place.to_owned(), canary.clone()));
        canary
    }

    /// Notes a secret that exists already.
    pub(super) fn note(&mut self, place: &str, secret: &str) {
        self.0.push((place.to_owned(), secret.to_owned()));
    }

    /// Returns where which canaries are found in a text: as they are, or in hexadecimal digits or base64.
    pub(super) fn found_in(&self, what: &str, text: &str) -> Vec<String> {
        let mut found = Vec::new();
        for (place, canary) in &self.0 {
            for form in forms(canary) {
                if let Some((line, at)) = text.lines().find_map(|line| Some((line, line.find(&form)?))) {
                    let excerpt = &line[line.floor_char_boundary(at.saturating_sub(120))..at + form.len()];
                    found.push(format!("{place} in {what}: {excerpt}"));
                }
            }
        }
        found
    }
}

/// Returns the forms in which a text is looked for: as it is, in hexadecimal digits, and in base64 wherever it begins in a group of
/// three bytes. The letters of base64 that also depend on the bytes beside it are left out.
fn forms(text: &str) -> [String; 5] {
    let hex = text.bytes().map(|byte| format!("{byte:02x}")).collect();
    let base64 = |before: usize| {
        let letters = BASE64_STANDARD_NO_PAD.encode([&vec![0; before], text.as_bytes()].concat());
        letters[(before * 8).div_ceil(6)..(before + text.len()) * 8 / 6].to_owned()
    };
    [text.to_owned(), hex, base64(0), base64(1), base64(2)]
}

/// What was logged, or written to the audit log.
#[derive(Debug, Clone, Default)]
pub(super) struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    pub(super) fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl AuditLog for Log {
    fn append(&self, entry: AuditEntry) {
        self.0.lock().unwrap().extend(audit_line(entry).into_bytes());
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
