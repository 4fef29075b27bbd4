//! What the handlers of all APIs need.

use super::{body::Bodies, settings::HttpSettings};
use sparkgate_service::Service;

#[derive(Clone)]
pub(crate) struct AppState {
    pub(crate) service: Service,
    pub(crate) settings: HttpSettings,
    pub(crate) bodies: Bodies,
}
