//! The settings of the HTTP layer.

use std::{collections::BTreeSet, time::Duration};

use axum::http::HeaderValue;
use tower_http::{
    cors::{AllowHeaders, Any, CorsLayer},
    csrf::{ConfigError, CsrfLayer},
};

/// Limits of the HTTP layer.
#[derive(Debug, Clone)]
pub struct HttpSettings {
    /// The largest body of a create request, in bytes: 8 MiB by default.
    pub max_request_body_bytes: usize,
    /// The most bytes of all create requests' bodies that are read or held at the same time; more wait. 64 MiB by default, and
    /// at least one largest body.
    pub max_body_bytes_in_flight: usize,
    /// Timeout for receiving a request's body, and again for answering the request.
    pub request_timeout: Duration,
    /// The most clients that may follow events or wait for a submission at the same time.
    pub max_subscribers: usize,
    pub browser: BrowserSettings,
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self {
            max_request_body_bytes: 8 << 20,
            max_body_bytes_in_flight: 64 << 20,
            request_timeout: Duration::from_secs(30),
            max_subscribers: 2000,
            browser: BrowserSettings::default(),
        }
    }
}

/// The hosts and origins that a browser may use.
#[derive(Debug, Clone, Default)]
pub struct BrowserSettings {
    /// Names in `Host`, in lower case and without a port, beside IP addresses, `localhost`, `*.localhost`, names of Services, and that
    /// of the console's URL.
    pub hosts: BTreeSet<String>,
    /// Whether clients other than browsers have to use such a name, too.
    pub for_all_clients: bool,
    /// Origins such as `https://dashboard.example.org` whose pages may read and write.
    pub origins: Vec<String>,
}

/// An origin that no browser sends.
#[derive(Debug, thiserror::Error)]
#[error("{origin:?} is not an origin: write https://dashboard.example.org, without a path or a slash at the end")]
pub struct OriginError {
    origin: String,
    source: ConfigError,
}

impl BrowserSettings {
    /// Checks the origins.
    ///
    /// # Errors
    /// [`OriginError`] names the first one that can't be used.
    pub fn check(&self) -> Result<(), OriginError> {
        self.csrf().map(drop)
    }

    pub(crate) fn csrf(&self) -> Result<CsrfLayer, OriginError> {
        self.origins.iter().try_fold(CsrfLayer::new(), |layer, origin| {
            layer.add_trusted_origin(origin).map_err(|source| OriginError { origin: origin.clone(), source })
        })
    }

    /// Returns the layer that lets pages of the allowed origins read answers.
    pub(crate) fn cors(&self) -> Option<CorsLayer> {
        let origins: Vec<HeaderValue> = self.origins.iter().filter_map(|origin| origin.parse().ok()).collect();
        // By the Fetch standard, `*` doesn't cover `Authorization`.
        let headers = AllowHeaders::mirror_request();
        let layer =
            CorsLayer::new().allow_origin(origins).allow_methods(Any).allow_headers(headers).expose_headers(Any);
        (!self.origins.is_empty()).then_some(layer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_a_scheme_and_a_host() {
        for origin in ["dashboard.example", "https://dashboard.example/page", "file://x"] {
            let settings = BrowserSettings { origins: vec![origin.to_owned()], ..BrowserSettings::default() };
            assert!(settings.check().unwrap_err().to_string().contains(origin));
        }
    }
}
