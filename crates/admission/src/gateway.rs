//! The service account of the gateway.

use std::{fmt, str::FromStr};

use sparkgate_access::{is_label, is_subdomain};
use thiserror::Error;

/// The service account of the gateway. It is the only one that may create drivers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewayAccount {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl GatewayAccount {
    /// Creates an account.
    ///
    /// # Errors
    /// A name is not one that Kubernetes permits.
    pub fn new(namespace: &str, name: &str) -> Result<Self, InvalidAccount> {
        let valid = is_label(namespace) && is_subdomain(name);
        if !valid {
            return Err(InvalidAccount(format!("{namespace}/{name}")));
        }
        Ok(Self { namespace: namespace.to_owned(), name: name.to_owned() })
    }

    /// Returns the account that is this user of the API server; `None` if the user isn't a service account.
    pub fn from_user(user: &str) -> Option<Self> {
        let (namespace, name) = user.strip_prefix(USER)?.split_once(':')?;
        Self::new(namespace, name).ok()
    }

    /// Returns the name of the account as a user of the API server
    /// (<https://kubernetes.io/docs/reference/access-authn-authz/service-accounts-admin/>).
    pub fn username(&self) -> String {
        username(&self.namespace, &self.name)
    }
}

/// The account of `deploy/kubernetes.yaml`.
impl Default for GatewayAccount {
    fn default() -> Self {
        Self { namespace: "sparkgate".to_owned(), name: "sparkgate".to_owned() }
    }
}

impl fmt::Display for GatewayAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

impl FromStr for GatewayAccount {
    type Err = InvalidAccount;

    fn from_str(text: &str) -> Result<Self, InvalidAccount> {
        let (namespace, name) = text.split_once('/').ok_or_else(|| InvalidAccount(text.to_owned()))?;
        Self::new(namespace, name)
    }
}

/// A text that names no service account.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{0}` names no service account: write its namespace and its name, such as sparkgate/sparkgate")]
pub struct InvalidAccount(String);

/// Returns the name of a service account as a user of the API server.
pub(crate) fn username(namespace: &str, name: &str) -> String {
    format!("{USER}{namespace}:{name}")
}

/// The beginning of the user of a service account.
const USER: &str = "system:serviceaccount:";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_written_as_namespace_and_name() {
        let account: GatewayAccount = "platform/gate.way-1".parse().unwrap();
        assert_eq!(account.to_string(), "platform/gate.way-1");
        assert_eq!(account.username(), "system:serviceaccount:platform:gate.way-1");
        assert_eq!(GatewayAccount::from_user(&account.username()), Some(account));
        assert_eq!(GatewayAccount::from_user("alice"), None);
        assert_eq!(GatewayAccount::default(), "sparkgate/sparkgate".parse().unwrap());
        for wrong in ["", "sparkgate", "a/", "/a", "a/b/c", "A/b", "a.b/c", "a/'b", "a/b:c"] {
            assert!(wrong.parse::<GatewayAccount>().is_err(), "{wrong}");
        }
    }
}
