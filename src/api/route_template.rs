//! The templates of routes, by which requests are counted and traced: paths themselves have ids in them.

use std::{borrow::Cow, sync::LazyLock};

use matchit::Router;

/// The described routes, and those of pages and of the management port.
const TEMPLATES: [&str; 68] = [
    "/",
    "/api/v1/spark-submit",
    "/batches",
    "/batches/{id}",
    "/batches/{id}/log",
    "/batches/{id}/state",
    "/console",
    "/console/",
    "/console/assets/{hash}/{file}",
    "/console/operator",
    "/console/overview",
    "/console/sign-in",
    "/console/sign-in/callback",
    "/console/sign-out",
    "/console/signed-out",
    "/console/submissions",
    "/console/submissions/kill",
    "/console/submissions/rows",
    "/console/submissions/{id}",
    "/console/submissions/{id}/configuration",
    "/console/submissions/{id}/kill",
    "/console/submissions/{id}/logs",
    "/console/submissions/{id}/rerun",
    "/docs",
    "/livez",
    "/metrics",
    "/readyz",
    "/v1/audit",
    "/v1/events",
    "/v1/files",
    FILE,
    SIGNED_FILE,
    "/v1/login",
    "/v1/me",
    "/v1/openapi.json",
    "/v1/spark-versions",
    SUBMISSIONS,
    "/v1/submissions/clear",
    "/v1/submissions/create",
    "/v1/submissions/kill/{id}",
    "/v1/submissions/killall",
    "/v1/submissions/readyz",
    "/v1/submissions/status/{id}",
    "/v1/submissions/{id}",
    "/v1/submissions/{id}/attempts",
    "/v1/submissions/{id}/events",
    "/v1/submissions/{id}/executors",
    "/v1/submissions/{id}/logs",
    "/v1/submissions/{id}/manifest",
    "/v1/submissions/{id}/outcome",
    "/v1/submissions/{id}/request",
    "/v1/submissions/{id}/rerun",
    "/v1/submissions/{id}/ui",
    "/v1/submissions/{id}/ui/",
    "/v1/submissions/{id}/ui/{*path}",
    "/v1/submissions/{id}/wait",
    "/v1/tokens",
    "/v1/tokens/{id}",
    UI[0],
    UI[1],
    UI[2],
    "/v1/usage",
    "/v1/webhooks",
    "/v1/webhooks/{id}",
    "/v1/webhooks/{id}/deliveries",
    "/v1/webhooks/{id}/deliveries/{delivery}/replay",
    "/v1/webhooks/{id}/replay",
    "/v1/webhooks/{id}/rotate",
];
/// The route of new submissions.
pub(super) const SUBMISSIONS: &str = "/v1/submissions";
/// The route of uploads.
pub(super) const FILE: &str = "/v1/files/{sha256}";
/// The route of signed URLs, which are credentials: no log has them.
pub(super) const SIGNED_FILE: &str = "/v1/files/{sha256}/{id}/{signature}/{name}";
/// The routes of Spark UIs, whose tickets are credentials, too.
const UI: [&str; 3] = ["/v1/ui/{id}/{ticket}", "/v1/ui/{id}/{ticket}/", "/v1/ui/{id}/{ticket}/{*path}"];
/// Paths without a route. Spark's protocol answers them, too.
const OTHER: &str = "other";

static ROUTES: LazyLock<Router<&str>> = LazyLock::new(|| {
    let mut routes = Router::new();
    for template in TEMPLATES {
        if let Err(error) = routes.insert(template, template) {
            tracing::error!(%error, "requests of {template} are counted as {OTHER}");
        }
    }
    routes
});

/// Returns the template of the route that serves a path, if there is one.
pub(super) fn route_of(path: &str) -> Option<&'static str> {
    Some(*ROUTES.at(path).ok()?.value)
}

/// Returns whether a path is that of a Spark UI, with a ticket.
pub(super) fn is_ui(path: &str) -> bool {
    route_of(path).is_some_and(|route| UI.contains(&route))
}

/// Returns a path without what must not be in a log.
pub(super) fn loggable(path: &str) -> Cow<'_, str> {
    let secret = match route_of(path) {
        Some(SIGNED_FILE) => 5,
        Some(_) if is_ui(path) => 4,
        _ => return path.into(),
    };
    let parts: Vec<&str> =
        path.split('/').enumerate().map(|(at, part)| if at == secret { "…" } else { part }).collect();
    parts.join("/").into()
}

/// Returns the template of the route that serves a path, as a label value.
pub(super) fn template_of(path: &str) -> &'static str {
    route_of(path).unwrap_or(OTHER)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::openapi;

    #[test]
    fn every_route_has_its_template_and_other_paths_have_one_together() {
        for template in openapi().paths.paths.into_keys() {
            assert_eq!(template_of(&template.replace("{id}", "driver-1")), template, "add it to TEMPLATES");
        }
        for path in ["/x", "/v1/submissions/driver-1/x", "/v2/submissions/create", "", "/docs/../x"] {
            assert_eq!(template_of(path), OTHER, "{path}");
        }
    }

    #[test]
    fn a_signature_and_a_ticket_are_not_logged() {
        assert_eq!(loggable("/v1/files/aa/driver-1/secret/job.py"), "/v1/files/aa/driver-1/…/job.py");
        for (path, shown) in [("", ""), ("/", "/"), ("/jobs/job/", "/jobs/job/")]
            .map(|(path, shown)| (format!("/v1/ui/driver-1/secret{path}"), shown))
        {
            assert_eq!(loggable(&path), format!("/v1/ui/driver-1/…{shown}"));
        }
        assert_eq!(loggable("/v1/submissions/driver-1"), "/v1/submissions/driver-1");
    }

    #[test]
    fn a_path_has_the_route_of_the_document() {
        for (path, route) in [
            ("/v1/submissions", Some("/v1/submissions")),
            ("/v1/submissions/create", Some("/v1/submissions/create")),
            ("/v1/submissions/driver-1", Some("/v1/submissions/{id}")),
            ("/v1/submissions/driver-1/events", Some("/v1/submissions/{id}/events")),
            ("/v1/submissions/status/driver-1", Some("/v1/submissions/status/{id}")),
            ("/v1/submissions/", None),
            ("/v1/secret", None),
        ] {
            assert_eq!(route_of(path), route, "{path}");
        }
    }
}
