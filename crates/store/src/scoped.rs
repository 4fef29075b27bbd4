//! Reads of a request. They are methods of [`Scoped`], so that none of them can leave out whose submissions it may return.

use super::{scope::Scope, store::Store};

/// The submissions of a scope, in Postgres.
#[derive(Debug, Clone)]
pub struct Scoped {
    pub(crate) store: Store,
    pub(crate) scope: Scope,
}

impl Store {
    /// Returns the submissions of a scope.
    pub fn scoped(&self, scope: &Scope) -> Scoped {
        Scoped { store: self.clone(), scope: scope.clone() }
    }

    /// Returns all submissions, for the installation's own loops.
    pub fn all(&self) -> Scoped {
        self.scoped(&Scope::installation())
    }
}
