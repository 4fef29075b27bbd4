//! `sparkgate whoami`.

use chrono::{DateTime, SecondsFormat, Utc};
use clap::Args;
use serde::Deserialize;

use super::Outcome;
use crate::{
    api::{Api, Call},
    document,
    fields::Fields,
    options::Target,
    screen, span,
    table::{self, Cell, Column, cut, whole},
};

#[derive(Debug, Args)]
pub struct Whoami {
    #[command(flatten)]
    target: Target,
}

/// The response of `GET /v1/me`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Me {
    subject: String,
    groups: Vec<String>,
    tenants: Vec<Tenant>,
    expires_at: Option<DateTime<Utc>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Tenant {
    name: String,
    role: String,
    namespaces: Vec<String>,
}

impl Whoami {
    pub(super) async fn run(self) -> Outcome {
        let api = Api::new(&self.target.gateway)?;
        let call = Call::get("asking who you are", &["me"]);
        let answer = api.send(&call).await?;
        if self.target.is_document() {
            self.target.document(&answer.body)?;
            return Ok(0);
        }
        let mut me: Me = document::read(call.action(), &answer.body)?;
        me.expires_at = me.expires_at.or(api.tokens().expires_at().await);
        let origin = api.tokens().origin().map(ToString::to_string);
        screen::text(&describe(&me, origin, Utc::now()))?;
        Ok(0)
    }
}

const COLUMNS: [Column<'static>; 3] = [cut("TENANT"), whole("ROLE"), cut("NAMESPACES")];

fn describe(me: &Me, origin: Option<String>, now: DateTime<Utc>) -> String {
    let mut fields = Fields::default();
    fields.add("Subject", me.subject.clone());
    fields.add("Groups", me.groups.join(", "));
    fields.add("Token", origin.map_or_else(|| "none".to_owned(), |origin| format!("from {origin}")));
    fields.add("Ends", me.expires_at.map(|end| ends(end, now)));
    let row = |tenant: &Tenant| {
        vec![Cell::new(&tenant.name), Cell::new(&tenant.role), Cell::new(&tenant.namespaces.join(", "))]
    };
    let mut text = fields.finish();
    if !me.tenants.is_empty() {
        text.push('\n');
        text += &table::layout(&COLUMNS, &me.tenants.iter().map(row).collect::<Vec<_>>(), None);
    }
    text
}

/// Formats the end of a token.
pub(super) fn ends(end: DateTime<Utc>, now: DateTime<Utc>) -> String {
    let at = end.to_rfc3339_opts(SecondsFormat::Secs, true);
    match end > now {
        true => format!("{at} (in {})", span::between(now, end)),
        false => format!("{at} ({} ago)", span::between(end, now)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn description_has_tenants_with_roles() {
        let now = DateTime::parse_from_rfc3339("2026-01-02T04:00:00Z").unwrap().to_utc();
        let me = r#"{"subject": "corp:alice", "groups": ["data", "all"], "expiresAt": "2026-01-02T04:42:00Z", "tenants": [
            {"name": "analytics", "role": "submitter", "namespaces": ["spark-a", "spark-b"]},
            {"name": "ops", "role": "admin", "namespaces": []}]}"#;
        let me = document::documented("Me", me);
        assert_eq!(
            describe(&me, Some("SPARKGATE_TOKEN".to_owned()), now),
            "Subject:     corp:alice\nGroups:      data, all\nToken:       from SPARKGATE_TOKEN\n\
             Ends:        2026-01-02T04:42:00Z (in 42m)\n\nTENANT     ROLE       NAMESPACES\n\
             analytics  submitter  spark-a, spark-b\nops        admin\n"
        );
        assert_eq!(describe(&Me::default(), None, now), "Token:       none\n");
    }
}
