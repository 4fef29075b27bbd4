//! What the handlers of all APIs need.

use super::{body::Bodies, settings::HttpSettings};
use crate::service::Service;

#[derive(Clone)]
pub(in crate::api) struct AppState {
    pub(in crate::api) service: Service,
    pub(in crate::api) settings: HttpSettings,
    pub(in crate::api) bodies: Bodies,
}
