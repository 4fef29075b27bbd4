//! What tests and benchmarks share: the servers that a gateway needs, proxies and scripts that break them, clients, and the gateway as a
//! process. Nothing else depends on it.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

pub mod browser;
pub mod database;
pub mod dice;
pub mod fault_proxy;
pub mod gateway;
pub mod guard;
pub mod http;
pub mod kube_apiserver;
pub mod kubeconfig;
pub mod object_store;
pub mod postgres;
pub mod process;
pub mod receiver;
pub mod request;
pub mod rights;
mod tls;
mod token_key;
pub mod wait;
pub mod webhook;

pub use tls::SelfSigned;
pub use token_key::TokenKey;

/// `SplitMix64` (Steele, Lea and Flood 2014): random numbers from a seed. It is small, so no update of a dependency changes what a
/// recorded seed means, on any machine.
#[derive(Debug, Clone)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// Creates the generator of a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next number.
    #[expect(clippy::should_implement_trait, reason = "it never ends")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }
}

/// Returns a number whose bits all depend on all bits of `value`.
pub fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// Returns the grants of docs/operate/reliability.md, for a role of this name.
///
/// # Panics
/// The page has no such grants.
pub fn documented_grants(role: &str) -> String {
    let page = include_str!("../../../docs/operate/reliability.md");
    let grants = page.split("```").find_map(|part| part.strip_prefix("sql\nGRANT"));
    let grants = grants.expect("docs/operate/reliability.md has a block of grants");
    format!("GRANT{grants}").replace(" app;", &format!(" {role};"))
}

/// Returns the statements of docs/operate/operations.md that follow every restore of the database.
///
/// # Panics
/// The page has no such statements.
pub fn documented_restore() -> String {
    let page = include_str!("../../../docs/operate/operations.md");
    let block = page.split("```").find(|part| part.starts_with("sql\n") && part.contains("UPDATE event_sequence"));
    block.expect("docs/operate/operations.md has a block of statements after a restore").replacen("sql", "", 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grants_are_for_the_role() {
        let grants = documented_grants("gateway");
        assert!(grants.contains("ON ALL TABLES IN SCHEMA public TO gateway;") && !grants.contains("app"), "{grants}");
    }

    #[test]
    fn statements_after_a_restore_move_the_numbers_on() {
        let statements = documented_restore();
        assert_eq!(statements.matches(';').count(), 3, "{statements}");
        assert!(statements.trim_start().starts_with("UPDATE event_sequence"), "{statements}");
    }

    #[test]
    fn numbers_are_those_of_the_reference_implementation() {
        let mut random = SplitMix64::new(1_234_567);
        let numbers = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!(numbers, [random.next(), random.next(), random.next()]);
    }
}
