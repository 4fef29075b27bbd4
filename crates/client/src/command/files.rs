//! `sparkgate files`.

use std::path::PathBuf;

use chrono::{DateTime, Utc};
use clap::{Args, Subcommand};
use serde::Deserialize;
use serde_json::json;

use super::Outcome;
use crate::{
    api::{Api, Call},
    document,
    error::Error,
    options::{Gateway, Target},
    screen::{self, note},
    span,
    table::{Cell, Column, cut, whole},
    upload::{self, Sent, readable},
};

/// Uploaded files. `sparkgate submit` uploads the files of a submission by itself.
#[derive(Debug, Subcommand)]
pub enum Files {
    /// List the files of a tenant, newest first.
    List(List),
    /// Upload files, and print how a submission refers to each.
    Upload(Upload),
    /// Delete files that no live submission uses.
    Rm(Remove),
}

/// The tenant whose files are meant.
#[derive(Debug, Args)]
struct Tenant {
    /// A namespace of the tenant. Needed if you may submit in several tenants.
    #[arg(long, value_name = "NAMESPACE")]
    namespace: Option<String>,
}

#[derive(Debug, Args)]
pub struct List {
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    tenant: Tenant,
    /// The most files to list.
    #[arg(long, value_name = "COUNT", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
}

#[derive(Debug, Args)]
pub struct Upload {
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    tenant: Tenant,
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub struct Remove {
    #[command(flatten)]
    gateway: Gateway,
    #[command(flatten)]
    tenant: Tenant,
    /// The SHA-256 of each file, as `sparkgate files list` shows it.
    #[arg(value_name = "SHA256", required = true)]
    hashes: Vec<String>,
}

/// The most files of one page.
const PAGE: u32 = 500;

/// A page of the list.
#[derive(Deserialize)]
struct Page {
    tenant: String,
    items: Vec<serde_json::Value>,
    next: Option<String>,
}

/// A file, as far as it is displayed.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct File {
    sha256: String,
    size: u64,
    name: Option<String>,
    created_by: String,
    created_at: Option<DateTime<Utc>>,
    submissions: u64,
    expires_at: Option<DateTime<Utc>>,
}

const COLUMNS: [Column<'static>; 7] = [
    whole("SHA256"),
    cut("NAME"),
    whole("SIZE"),
    cut("UPLOADED BY"),
    whole("AGE"),
    whole("SUBMISSIONS"),
    whole("ENDS"),
];

impl Files {
    pub(super) async fn run(self) -> Outcome {
        match self {
            Self::List(list) => list.run().await,
            Self::Upload(upload) => upload.run().await,
            Self::Rm(remove) => remove.run().await,
        }
    }
}

impl List {
    async fn run(self) -> Outcome {
        let api = Api::new(&self.target.gateway)?;
        let (mut items, mut cursor) = (Vec::new(), None::<String>);
        let tenant = loop {
            let left = self.limit - u32::try_from(items.len()).unwrap_or(self.limit);
            let call = Call::get("listing files", &["files"]).query("limit", left.min(PAGE));
            let call = call.query_if("namespace", self.tenant.namespace.as_ref()).query_if("cursor", cursor.as_ref());
            let answer = api.send(&call).await?;
            let page: Page = document::read(call.action(), &answer.body)?;
            items.extend(page.items);
            cursor = page.next.filter(|_| items.len() < self.limit as usize);
            if cursor.is_none() {
                break page.tenant;
            }
        };
        if self.target.is_document() {
            self.target.document(json!({"tenant": tenant, "items": items}).to_string().as_bytes())?;
            return Ok(0);
        }
        let files = items.into_iter().map(serde_json::from_value::<File>).collect::<Result<Vec<_>, _>>();
        let files =
            files.map_err(|error| Error::Here(format!("listing files: the response can't be read: {error}")))?;
        let now = Utc::now();
        screen::table(&COLUMNS, &files.iter().map(|file| row(file, now)).collect::<Vec<_>>())?;
        if files.is_empty() {
            note("no files");
        }
        Ok(0)
    }
}

fn row(file: &File, now: DateTime<Utc>) -> Vec<Cell> {
    let end = match file.expires_at {
        _ if file.submissions > 0 => "in use".to_owned(),
        Some(end) if end <= now => "soon".to_owned(),
        Some(end) => format!("in {}", span::between(now, end)),
        None => "never".to_owned(),
    };
    vec![
        Cell::new(&file.sha256),
        Cell::new(file.name.as_deref().unwrap_or_default()),
        Cell::new(&readable(file.size)),
        Cell::new(&file.created_by),
        Cell::new(&file.created_at.map(|at| span::between(at, now)).unwrap_or_default()),
        Cell::new(&file.submissions.to_string()),
        Cell::new(&end),
    ]
}

impl Upload {
    /// Prints one reference a line, for a script that writes them into a request.
    async fn run(self) -> Outcome {
        let api = Api::new(&self.target.gateway)?;
        let mut sent = Vec::new();
        for path in &self.files {
            let file = upload::file(&api, path, self.tenant.namespace.as_deref(), !sent.is_empty()).await?;
            if !self.target.is_document() {
                screen::line(&file.reference)?;
            }
            sent.push(file);
        }
        if self.target.is_document() {
            let entry = |Sent { reference, sha256, size }: &Sent| json!({"reference": reference, "sha256": sha256, "size": size});
            let document = json!({"items": sent.iter().map(entry).collect::<Vec<_>>()});
            self.target.document(document.to_string().as_bytes())?;
        }
        Ok(0)
    }
}

impl Remove {
    async fn run(self) -> Outcome {
        let api = Api::new(&self.gateway)?;
        for hash in &self.hashes {
            let call = Call::delete(format!("deleting the file {hash}"), &["files", hash]);
            api.send(&call.query_if("namespace", self.tenant.namespace.as_ref())).await?;
            note(&format!("the file {hash} is deleted"));
        }
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table;

    #[test]
    fn row_says_when_a_file_ends() {
        let now = DateTime::parse_from_rfc3339("2026-01-02T04:00:00Z").unwrap().to_utc();
        let of = |text: &str| row(&document::documented("FileEntry", text), now);
        let rows = [
            of(
                r#"{"sha256": "aa", "size": 2048, "createdBy": "corp:alice", "createdAt": "2026-01-02T03:00:00Z", "submissions": 2}"#,
            ),
            of(
                r#"{"sha256": "bb", "size": 1, "createdBy": "corp:bob", "createdAt": "2026-01-01T04:00:00Z", "submissions": 0,
                "expiresAt": "2026-01-03T04:00:00Z"}"#,
            ),
        ];
        let shown = table::layout(&COLUMNS, &rows, None);
        assert!(
            shown.contains("2.0 KiB") && shown.contains("in use") && shown.contains("in 24h")
                || shown.contains("in 1d"),
            "{shown}"
        );
    }
}
