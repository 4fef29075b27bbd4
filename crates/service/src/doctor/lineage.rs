//! The server that gets run events about all submissions.

use super::finding::Finding;
use sparkgate_webhooks::LineageServer;

const CHECK: &str = "openlineage";

/// Asks the server for a response. Which one doesn't matter, unless it refuses the token: servers only take POST at this URL.
pub async fn check_lineage(server: &LineageServer) -> Finding {
    let url = &server.url;
    match server.ask().await {
        Ok(status) if matches!(status.as_u16(), 401 | 403) => Finding::failure(
            CHECK,
            format!("the lineage server at {url} (--openlineage-url) refuses the gateway: {status}"),
            "give the token that it expects (--openlineage-token-file)",
        ),
        Ok(status) if status.is_server_error() => Finding::warning(
            CHECK,
            format!("the lineage server at {url} (--openlineage-url) answers {status}"),
            "look at its log; run events are sent again for a day",
        ),
        Ok(_) => Finding::ok(CHECK, format!("the lineage server answers at {url}")),
        Err(reason) => Finding::failure(
            CHECK,
            format!("the lineage server at {url} (--openlineage-url) can't be used: {reason}"),
            "correct the setting, or let the gateway reach it; run events are sent again for a day",
        ),
    }
}
