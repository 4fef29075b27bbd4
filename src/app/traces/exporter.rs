//! What surrounds the exporter of OpenTelemetry's SDK: its connection, and its lines in the log.

use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_sdk::{
    Resource,
    error::OTelSdkResult,
    trace::{SpanData, SpanExporter},
};
use reqwest::Client;
use tokio::runtime::Handle;

/// Sends requests on the gateway's runtime: the SDK exports in a thread of its own, outside of it.
#[derive(Debug)]
pub(super) struct Runtime {
    pub(super) handle: Handle,
    pub(super) client: Client,
}

#[async_trait]
impl HttpClient for Runtime {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let client = self.client.clone();
        self.handle.spawn(async move { client.send_bytes(request).await }).await?
    }
}

/// Logs when exports begin to fail, and when they succeed again; not each of them.
#[derive(Debug)]
pub(super) struct Reported<E> {
    exporter: E,
    is_failing: AtomicBool,
}

impl<E> Reported<E> {
    pub(super) fn new(exporter: E) -> Self {
        Self { exporter, is_failing: AtomicBool::new(false) }
    }
}

impl<E: SpanExporter> SpanExporter for Reported<E> {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let exported = self.exporter.export(batch).await;
        let was_failing = self.is_failing.swap(exported.is_err(), Ordering::Relaxed);
        match &exported {
            Err(error) if !was_failing => {
                tracing::warn!(
                    "traces can't be exported, so spans are dropped until the collector takes them: {error}"
                );
            }
            Ok(()) if was_failing => tracing::info!("traces are exported again"),
            _ => {}
        }
        exported
    }

    fn shutdown_with_timeout(&self, timeout: std::time::Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}
