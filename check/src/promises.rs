//! The promises, and what a history says of them.

mod creates;
mod ends;
mod events;
mod order;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, fmt};

use crate::history::{Found, History};

/// What Sparkgate promises its clients: `docs/operate/reliability.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Promise {
    Kept,
    Once,
    NothingHalfDone,
    Forward,
    Ended,
    TrueEnd,
    KillIsFinal,
    NoOverlap,
    OneDriver,
    Events,
}

impl Promise {
    pub const ALL: [Self; 10] = [
        Self::Kept,
        Self::Once,
        Self::NothingHalfDone,
        Self::Forward,
        Self::Ended,
        Self::TrueEnd,
        Self::KillIsFinal,
        Self::NoOverlap,
        Self::OneDriver,
        Self::Events,
    ];
}

impl fmt::Display for Promise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kept => "An accepted submission is never lost",
            Self::Once => "However often a create is repeated, there is one submission",
            Self::NothingHalfDone => "A create that was refused leaves no submission",
            Self::Forward => "No state goes back, and an end is final",
            Self::Ended => "Each submission ends",
            Self::TrueEnd => "The recorded end is that of the program",
            Self::KillIsFinal => "No attempt follows a kill",
            Self::NoOverlap => "The attempts of a submission don't overlap",
            Self::OneDriver => "Each attempt runs at most one driver",
            Self::Events => "Each follower gets each event once and in order",
        })
    }
}

/// What a history says of the promises.
#[derive(Debug, Clone, Default)]
pub struct Verdict {
    /// How many cases of each promise the history has.
    pub checked: BTreeMap<Promise, usize>,
    pub broken: Vec<(Promise, String)>,
}

impl Verdict {
    fn check(&mut self, promise: Promise, holds: bool, what: impl FnOnce() -> String) {
        *self.checked.entry(promise).or_default() += 1;
        if !holds {
            self.broken.push((promise, what()));
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<62}{:>9}{:>9}", "promise", "checked", "broken")?;
        for promise in Promise::ALL {
            let checked = self.checked.get(&promise).copied().unwrap_or_default();
            let broken = self.broken.iter().filter(|(broken, _)| *broken == promise).count();
            writeln!(f, "{:<62}{checked:>9}{broken:>9}", promise.to_string())?;
        }
        Ok(())
    }
}

/// Compares a history with the promises. A promise without a case counts as 0 checked.
pub fn judge(history: &History) -> Verdict {
    let mut verdict = Verdict::default();
    let found: BTreeMap<&str, &Found> = history.found.iter().map(|found| (found.document.id.as_str(), found)).collect();
    creates::judge(history, &found, &mut verdict);
    order::judge(history, &mut verdict);
    ends::judge(history, &found, &mut verdict);
    events::judge(history, &mut verdict);
    verdict
}
