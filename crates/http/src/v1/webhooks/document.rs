//! A webhook as the API represents it.

use std::{collections::BTreeMap, time::Duration};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::v1::submissions::document::State as StateWord;
use sparkgate_service::{self, MessageFormat, WebhookRequest, WebhookSubmissions};
use sparkgate_submission::State;
use sparkgate_web::problem::Problem;

/// A webhook, without its secret.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::v1) struct Webhook {
    #[schema(example = "wh_6f1c2a9b03d4e5f6")]
    id: String,
    /// The tenant whose submissions it is for. Absent if it is that of the installation.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "analytics")]
    tenant: Option<String>,
    /// The principal that created it. Absent if it is that of the installation, which a setting of the gateway creates.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "corp:alice")]
    created_by: Option<String>,
    #[schema(example = "https://hooks.example.org/spark")]
    url: String,
    #[schema(value_type = FormatWord)]
    format: String,
    submissions: Coverage,
    /// The only submission whose changes are sent, if its request named the webhook.
    #[serde(skip_serializing_if = "Option::is_none")]
    submission_id: Option<String>,
    filter: Filter,
    created_at: DateTime<Utc>,
    /// Later changes aren't sent, and the webhook is deleted a week later.
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<DateTime<Utc>>,
    /// Until then, messages are signed with the previous secret, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    previous_secret_until: Option<DateTime<Utc>>,
    /// The secret that signs messages, only in the response that creates it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "whsec_…")]
    pub(in crate::v1) secret: Option<String>,
}

/// The webhooks that the caller may manage.
#[derive(Serialize, ToSchema)]
pub(in crate::v1) struct WebhookList {
    pub(in crate::v1) items: Vec<Webhook>,
}

/// Whose submissions a webhook is for.
#[derive(Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = WebhookSubmissions)]
pub(in crate::v1) enum Whose {
    /// Those of the webhook's creator.
    Own,
    /// All of the tenant.
    #[default]
    Tenant,
}

/// Whose submissions an existing webhook is for.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = WebhookCoverage)]
enum Coverage {
    /// Those of the webhook's creator.
    Own,
    /// All of the tenant.
    Tenant,
    /// All of the installation. Only its operators see such a webhook.
    Installation,
}

/// The format of messages.
#[derive(ToSchema)]
#[schema(as = WebhookFormat, rename_all = "lowercase")]
#[expect(dead_code, reason = "only describes the field; the service parses it")]
pub(in crate::v1) enum FormatWord {
    CloudEvents,
    OpenLineage,
}

/// Which changes are sent. All criteria have to match.
#[derive(Default, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(as = WebhookFilter)]
pub(in crate::v1) struct Filter {
    /// Any of these states.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false, value_type = Vec<StateWord>)]
    states: Vec<String>,
    /// Prefix of the name.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<String>,
    /// All labels have to match.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(required = false)]
    labels: BTreeMap<String, String>,
}

/// What a new webhook is to be.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(in crate::v1) struct NewWebhook {
    /// Where messages are sent.
    #[schema(example = "https://hooks.example.org/spark", max_length = 2048)]
    url: String,
    /// The tenant whose submissions it is for; needed if the caller could mean several.
    #[schema(example = "analytics")]
    tenant: Option<String>,
    #[serde(default)]
    submissions: Whose,
    #[schema(value_type = Option<FormatWord>)]
    format: Option<String>,
    #[serde(default)]
    filter: Filter,
    /// A signing secret of the client's own: `whsec_`, and 24 to 64 bytes as base64. Without it, one is generated.
    secret: Option<String>,
    /// What the receiver gets as `Authorization: Bearer`. It is never shown.
    bearer_token: Option<String>,
    /// How long changes are sent; without it, until the webhook is deleted.
    #[schema(example = 7_776_000, minimum = 1, maximum = 315_619_200)]
    expires_in_seconds: Option<u64>,
}

impl NewWebhook {
    /// Parses the words of the request.
    pub(in crate::v1) fn into_request(self) -> Result<WebhookRequest, Problem> {
        let format =
            format_of(self.format.as_deref()).map_err(|reason| Problem::field("#/format".to_owned(), reason))?;
        let Filter { states, name, owner, namespace, labels } = self.filter;
        let states =
            states_of(&states).map_err(|(at, reason)| Problem::field(format!("#/filter/states/{at}"), reason))?;
        Ok(WebhookRequest {
            url: self.url,
            tenant: self.tenant,
            submissions: match self.submissions {
                Whose::Own => WebhookSubmissions::Own,
                Whose::Tenant => WebhookSubmissions::Tenant,
            },
            format,
            states,
            name_prefix: name,
            owner,
            namespace,
            labels,
            secret: self.secret.map(Into::into),
            bearer_token: self.bearer_token.map(Into::into),
            expires_in: self.expires_in_seconds.map(Duration::from_secs),
        })
    }
}

impl From<sparkgate_service::Webhook> for Webhook {
    fn from(row: sparkgate_service::Webhook) -> Self {
        let is_of_installation = row.is_of_installation();
        Self {
            id: row.id,
            tenant: (!is_of_installation).then_some(row.tenant),
            created_by: (!is_of_installation).then_some(row.principal),
            url: row.url,
            format: row.format,
            submissions: match row.own {
                _ if is_of_installation => Coverage::Installation,
                true => Coverage::Own,
                false => Coverage::Tenant,
            },
            submission_id: row.submission_id,
            filter: Filter {
                states: row.filter.states,
                name: row.filter.name_prefix,
                owner: row.filter.owner,
                namespace: row.filter.namespace,
                labels: row.filter.labels,
            },
            created_at: row.created_at,
            expires_at: row.expires_at,
            previous_secret_until: row.previous_until,
            secret: None,
        }
    }
}

/// Parses a format.
pub(in crate::v1) fn format_of(text: Option<&str>) -> Result<MessageFormat, String> {
    text.map_or(Ok(MessageFormat::CloudEvents), |text| text.parse().map_err(|error| format!("{error}")))
}

/// Parses states. The error is the position of the first word that isn't one, and the reason.
pub(in crate::v1) fn states_of(words: &[String]) -> Result<Vec<State>, (usize, String)> {
    let state = |(at, word): (usize, &String)| {
        word.to_ascii_uppercase().parse().map_err(|_| {
            let all = State::ALL.map(State::as_str).join(", ");
            (at, format!("{word:?} is none of {all}"))
        })
    };
    words.iter().enumerate().map(state).collect()
}
