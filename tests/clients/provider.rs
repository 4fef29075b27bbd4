//! A real `OpenID` provider, Keycloak, with the real gateway and the client's own commands: logins in a browser, keys that change,
//! tokens that end, sessions that are revoked, a provider that is away. (`tests/gateway/access/oidc.rs` has the faults of tokens, which no
//! provider issues.)
//!
//! Requires what `make test` provides: `DATABASE_URL`, Java, and `SPARKGATE_KEYCLOAK`.

mod browser;
mod keycloak;
mod realm;
mod world;

mod away;
mod console;
mod expiry;
mod keys;
mod login;
