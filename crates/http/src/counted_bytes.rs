//! Counts the bytes of a body that doesn't announce its length against the rate of its principal, as they arrive.

use std::{
    io,
    sync::{Arc, OnceLock},
};

use axum::body::Body;
use futures::StreamExt;

use sparkgate_access::Principal;
use sparkgate_service::{Exceeded, Tenancy};

/// Bytes are counted when so many have arrived: a rate counts KiB, and rounds up.
const STEP: usize = 64 << 10;

/// Whether the body of a request was within the rate.
#[derive(Debug, Clone, Default)]
pub(super) struct CountedBytes(Arc<OnceLock<Exceeded>>);

impl CountedBytes {
    /// Returns a body that breaks off where the rate is exceeded.
    pub(super) fn body(&self, body: Body, principal: Arc<Principal>, tenancy: Arc<Tenancy>) -> Body {
        let (this, mut pending) = (self.clone(), 0);
        Body::from_stream(body.into_data_stream().map(move |data| {
            let data = data?;
            pending += data.len();
            // The rest of the last step is less than a rate's burst, and isn't counted.
            while pending >= STEP {
                pending -= STEP;
                if let Err(exceeded) = tenancy.count_bytes(&principal, STEP as u64) {
                    let error = axum::Error::new(io::Error::other(exceeded.to_string()));
                    let _ = this.0.set(exceeded);
                    return Err(error);
                }
            }
            Ok(data)
        }))
    }

    /// Returns the limit that the body exceeded.
    pub(super) fn exceeded(&self) -> Option<&Exceeded> {
        self.0.get()
    }
}
