//! Tokens of an OIDC issuer, which is a server of these tests.
