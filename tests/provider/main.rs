//! A real `OpenID` provider, Keycloak, with the real gateway and the client's own commands: logins in a browser, keys that change,
//! tokens that end, sessions that are revoked, a provider that is away. (`tests/access/oidc.rs` has the faults of tokens, which no
//! provider issues.)
//!
//! Requires what `make test` provides: `DATABASE_URL`, Java, and `SPARKGATE_KEYCLOAK`.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod browser;
#[expect(dead_code, reason = "shared with other tests, which use the rest")]
#[path = "../console/browser.rs"]
mod chromium;
#[expect(dead_code, reason = "shared with other tests, which use the rest")]
#[path = "../program/http.rs"]
mod http;
mod keycloak;
#[expect(dead_code, reason = "shared with other tests, which use the rest")]
#[path = "../program/process.rs"]
mod process;
mod realm;
mod world;

mod away;
mod console;
mod expiry;
mod keys;
mod login;
