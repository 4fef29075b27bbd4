//! The HTTP interfaces and their routers. Handlers translate; the service below decides. What the interfaces share is in
//! `sparkgate_web`.

mod audit;
mod authn;
mod catch_panic;
mod connect;
mod console;
mod cookies;
mod counted_bytes;
mod health;
mod home;
mod host;
mod kubeflow;
mod livy;
mod openapi;
mod queue_state;
mod router;
mod session_cookie;
mod spark;
mod spark_ui;
mod startup;
mod v1;

pub use connect::connect_listener;
pub use health::management_router;
pub use openapi::openapi;
pub use router::{files_listener, livy_listener, router, spark_listener};
pub use sparkgate_web::settings::{BrowserSettings, HttpSettings, OriginError};
pub use startup::StartupRouter;
pub use v1::audit_line;
#[doc(hidden)]
pub use v1::fuzzing;
