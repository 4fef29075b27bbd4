//! The body of a create request: bounded in size and in time, and, with all others, in memory.

use std::{sync::Arc, time::Duration};

use axum::{BoxError, body::HttpBody};
use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use super::settings::HttpSettings;

/// The unit in which bytes are reserved.
const KIB: usize = 1024;

/// Reasons for which a body could not be read.
#[derive(Debug)]
pub enum Fault {
    TooLarge {
        limit: usize,
    },
    Broken(String),
    /// Other bodies take all bytes.
    Busy,
}

/// The bytes of all bodies that are being read, or held until their requests are answered.
#[derive(Debug, Clone)]
pub struct Bodies {
    free: Arc<Semaphore>,
    /// The most bytes of one body.
    limit: usize,
    patience: Duration,
}

/// The bytes that one body has reserved, until this is dropped.
#[derive(Debug)]
pub struct Held {
    bytes: OwnedSemaphorePermit,
}

impl Held {
    /// Gives back all but so many bytes.
    fn shrink_to(&mut self, bytes: usize) {
        let rest = self.bytes.num_permits().saturating_sub(bytes.div_ceil(KIB));
        drop(self.bytes.split(rest));
    }
}

impl Bodies {
    /// Creates the room for bodies that the settings allow.
    pub fn new(settings: &HttpSettings) -> Self {
        // The largest body has to fit.
        let bytes = settings.max_body_bytes_in_flight.max(settings.max_request_body_bytes);
        Self {
            free: Arc::new(Semaphore::new(bytes.div_ceil(KIB))),
            limit: settings.max_request_body_bytes,
            patience: settings.request_timeout,
        }
    }

    /// Waits until as many bytes are free.
    async fn reserve(&self, bytes: usize) -> Result<Held, Fault> {
        let units = u32::try_from(bytes.div_ceil(KIB)).map_err(|_| Fault::Busy)?;
        let bytes = self.free.clone().acquire_many_owned(units).await;
        bytes.map(|bytes| Held { bytes }).map_err(|_| Fault::Busy)
    }

    /// Reads the whole body. Its bytes are reserved before it is read, so that a body that has to wait for others takes none. Those that a
    /// body of unknown length didn't need are given back.
    pub async fn read<B>(&self, body: B) -> Result<(Vec<u8>, Held), Fault>
    where
        B: HttpBody<Data = Bytes>,
        B::Error: Into<BoxError>,
    {
        let (limit, patience) = (self.limit, self.patience);
        let size = body.size_hint();
        // A body whose announced length is too large is refused without reading it.
        if size.lower() > limit as u64 {
            return Err(Fault::TooLarge { limit });
        }
        let announced = size.exact().and_then(|bytes| usize::try_from(bytes).ok());
        let mut held = timeout(patience, self.reserve(announced.unwrap_or(limit))).await.map_err(|_| Fault::Busy)??;
        let mut bytes = Vec::with_capacity(announced.unwrap_or_default());
        let read = async {
            let mut body = std::pin::pin!(Limited::new(body, limit));
            while let Some(frame) = body.frame().await {
                if let Ok(data) = frame?.into_data() {
                    bytes.extend_from_slice(&data);
                }
            }
            Ok::<(), axum::BoxError>(())
        };
        match timeout(patience, read).await {
            Ok(Ok(())) => {
                held.shrink_to(bytes.len());
                Ok((bytes, held))
            }
            Ok(Err(error)) if error.is::<LengthLimitError>() => Err(Fault::TooLarge { limit }),
            Ok(Err(error)) => Err(Fault::Broken(error.to_string())),
            Err(_) => Err(Fault::Broken(format!("it did not arrive within {patience:?}"))),
        }
    }
}
