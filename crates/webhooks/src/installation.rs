//! The webhook of the installation: run events of `OpenLineage` about the submissions of all tenants, for the server that the operator
//! names.
//!
//! Where it leads and its token are settings, so they aren't stored but for the URL, which operators may read. The replica that sends
//! creates it, and deletes it if its setting is gone: replicas with other settings don't contend.

use super::{Webhooks, lineage_server::LineageServer, send::Sender};
use sparkgate_common::error::Error;
use sparkgate_requests::options::webhook::MessageFormat;
use sparkgate_store::Scoped;
use sparkgate_tenancy::session::Session;

/// The id of the webhook. No other one can have it.
const ID: &str = "openlineage";

impl Webhooks {
    /// Creates the webhook of the installation, or deletes it, as the settings have it.
    pub(super) async fn follow_settings(&self) -> Result<(), Error> {
        match &self.lineage {
            Some(LineageServer { url, .. }) => {
                let format = MessageFormat::OpenLineage.as_str();
                if self.store.put_installation_webhook(ID, url, format).await? {
                    tracing::info!(webhook = ID, "run events of all submissions are sent to the lineage server");
                }
            }
            None => {
                if self.store.delete_installation_webhook(ID).await? {
                    tracing::info!(webhook = ID, "run events are no longer sent: the setting is gone");
                }
            }
        }
        Ok(())
    }

    /// Returns the client for the server of the operator.
    pub(super) fn lineage_sender(&self) -> Result<&Sender, Error> {
        if let Some(sender) = self.lineage_sender.get() {
            return Ok(sender);
        }
        let sender = LineageServer::sender();
        let sender = sender
            .map_err(|error| Error::Internal("creating the client of the lineage server".to_owned(), error.into()))?;
        Ok(self.lineage_sender.get_or_init(|| sender))
    }

    /// Checks that a webhook isn't that of the installation, before it is changed. A caller that may not see it learns nothing.
    ///
    /// # Errors
    /// [`Error::Denied`].
    pub(super) async fn check_changeable(&self, webhooks: &Scoped, id: &str, caller: &Session) -> Result<(), Error> {
        if id != ID || webhooks.webhook(id).await?.is_none() {
            return Ok(());
        }
        let subject = caller.principal().subject();
        Err(Error::Denied(format!(
            "{subject} may not change the webhook {ID}: it belongs to the installation, whose operator changes it by the setting \
             --openlineage-url"
        )))
    }
}
