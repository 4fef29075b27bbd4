//! The style sheet and the scripts, which are part of the binary.

use std::{fmt::Write, sync::LazyLock};

use axum::{
    extract::RawPathParams,
    http::{HeaderValue, header},
    response::{IntoResponse, Response},
};
use sha2::{Digest, Sha256};

use sparkgate_web::{nowhere::nothing_at, problem::Problem};

const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// Name, type and content.
const FILES: [(&str, &str, &str); 7] = [
    ("console.css", CSS, include_str!("assets/console.css")),
    ("console.js", SCRIPT, include_str!("assets/console.js")),
    ("live.js", SCRIPT, include_str!("assets/live.js")),
    ("list.js", SCRIPT, include_str!("assets/list.js")),
    ("log.js", SCRIPT, include_str!("assets/log.js")),
    ("ansi.js", SCRIPT, include_str!("assets/ansi.js")),
    ("icon.svg", "image/svg+xml", include_str!("assets/icon.svg")),
];

/// A digest of all files. It is part of their paths, so that browsers keep them for ever, and load others after an upgrade.
pub(super) static HASH: LazyLock<String> = LazyLock::new(|| {
    let digest = FILES.iter().fold(Sha256::new(), |digest, (_, _, content)| digest.chain_update(content)).finalize();
    digest.iter().take(8).fold(String::new(), |mut text, byte| {
        // Writing to a string can't fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
});

/// Answers with a file. Another digest is that of another release: a replica that isn't upgraded yet serves its own file then.
pub(super) async fn file(params: RawPathParams) -> Result<Response, Problem> {
    let param = |wanted: &str| params.iter().find(|(name, _)| *name == wanted).map_or("", |(_, value)| value);
    let found = FILES.iter().find(|(name, _, _)| *name == param("file"));
    let Some((_, content_type, content)) = found else {
        return Err(nothing_at(&format!("/console/assets/{}", param("file")), "The console has no such file."));
    };
    let keep = match param("hash") == HASH.as_str() {
        true => "public, max-age=31536000, immutable",
        false => "no-cache",
    };
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(content_type)),
        (header::CACHE_CONTROL, HeaderValue::from_static(keep)),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    ];
    Ok((headers, *content).into_response())
}
