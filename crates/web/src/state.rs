//! What the handlers of all APIs need.

use std::sync::Arc;

use super::{body::Bodies, settings::HttpSettings};
use sparkgate_service::Service;

/// Each layer of the router clones it, for each request.
#[derive(Clone)]
pub struct AppState {
    pub service: Arc<Service>,
    pub settings: Arc<HttpSettings>,
    pub bodies: Bodies,
}
