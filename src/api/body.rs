//! The body of a create request: bounded in size and in time.

use axum::body::Body;
use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};

use super::HttpSettings;

/// Reasons for which a body could not be read.
#[derive(Debug)]
pub(super) enum Fault {
    TooLarge { limit: usize },
    Broken(String),
}

/// Reads the whole body.
pub(super) async fn read(body: Body, settings: &HttpSettings) -> Result<Bytes, Fault> {
    let limit = settings.max_request_body_bytes;
    // A body whose announced length is too large is refused without reading it.
    if axum::body::HttpBody::size_hint(&body).lower() > limit as u64 {
        return Err(Fault::TooLarge { limit });
    }
    match tokio::time::timeout(settings.request_timeout, Limited::new(body, limit).collect()).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(Fault::TooLarge { limit }),
        Ok(Err(error)) => Err(Fault::Broken(error.to_string())),
        Err(_) => Err(Fault::Broken(format!("it did not arrive within {:?}", settings.request_timeout))),
    }
}
