//! What a source file may import.

use proc_macro2::TokenStream;

use crate::layers::paths::{NamedPath, named_paths};

/// The crates of `crates/`. Cargo.toml says which of them each may use.
const CRATES: [&str; 13] = [
    "access",
    "admission",
    "client",
    "cluster",
    "files",
    "metrics",
    "policy",
    "sandbox",
    "spark",
    "store",
    "submission",
    "testing",
    "traces",
];

/// The folders of `src/` and what each may import: folders and crates. `main`, `lib` and `app` combine all parts and may use
/// all of them.
const ROOMS: [(&str, &[&str]); 2] = [
    ("api", &["service", "access", "metrics", "spark", "submission", "traces"]),
    (
        "service",
        &["store", "cluster", "access", "admission", "files", "metrics", "policy", "spark", "submission", "traces"],
    ),
];

/// Libraries of the service and the places that may use them: a folder, and the file of `app` that starts the part.
const LIBRARIES: [(&str, &[&str]); 3] =
    [("kube", &["app/sandbox"]), ("axum", &["api", "app/serve"]), ("opentelemetry", &["app/traces"])];

/// Folders within the sandbox that must not import each other.
const STRANGERS: [(&str, &str); 2] = [("sandbox/node", "sandbox/apiserver"), ("sandbox/apiserver", "sandbox/node")];

const MOST_LINES: usize = 600;

/// Returns the violations in this file of `src/` or a crate, as `path:line: reason`.
pub(crate) fn violations(path: &str, text: &str) -> Vec<String> {
    let module = module_of(path);
    let mut found = Vec::new();
    let mut complain = |line: usize, reason: String| found.push(format!("{path}:{line}: {reason}"));
    let lines = text.lines().count();
    if lines > MOST_LINES {
        complain(lines, format!("a file has at most {MOST_LINES} lines: split it"));
    }
    match text.parse::<TokenStream>() {
        Err(error) => complain(1, format!("it can't be read as Rust: {error}")),
        Ok(stream) => {
            for named in named_paths(stream) {
                if let Some(reason) = library(&module, &named).or_else(|| room(&module, &named)) {
                    complain(named.line, reason);
                }
            }
        }
    }
    // A use-group names a folder once for each of its items.
    found.dedup();
    found
}

/// Returns the module of a file: `src/api/v1.rs` is `api/v1`, and `crates/store/src/query.rs` is `store/query`.
pub(crate) fn module_of(path: &str) -> String {
    let path = path.trim_start_matches("src/").trim_start_matches("crates/").trim_end_matches(".rs");
    path.replacen("/src/", "/", 1).trim_end_matches("/lib").to_owned()
}

/// Returns the crate that the module belongs to, unless it is the service.
fn crate_of(module: &str) -> Option<&'static str> {
    CRATES.into_iter().find(|name| is_within(module, name))
}

fn is_within(module: &str, folder: &str) -> bool {
    module.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn library(module: &str, named: &NamedPath) -> Option<String> {
    let (name, allowed) = LIBRARIES.iter().find(|(name, _)| *name == named.segments[0])?;
    let fine = crate_of(module).is_some() || allowed.iter().any(|folder| is_within(module, folder));
    (!fine).then(|| format!("only {} may use `{name}`", allowed.join(", ")))
}

fn room(module: &str, named: &NamedPath) -> Option<String> {
    let target = from_root(module, named)?.join("/");
    if let Some((from, to)) = STRANGERS.iter().find(|(from, to)| is_within(module, from) && is_within(&target, to)) {
        return Some(format!("`{from}` may not import `{to}`: they communicate only through the Kubernetes API"));
    }
    let room_of = |path: &str| {
        ROOMS.iter().map(|(name, _)| *name).chain(["app"]).chain(CRATES).find(|name| is_within(path, name))
    };
    let to = room_of(&target)?;
    let (from, below) = ROOMS.iter().find(|(name, _)| is_within(module, name))?;
    if to == *from || below.contains(&to) {
        return None;
    }
    Some(format!("`{from}` may not import `{to}`: {from} → {}", below.join(", ")))
}

/// Returns the path from the root, as [`module_of`] gives it, if it starts with `crate`, `self`, `super` or one of our crates.
pub(crate) fn from_root(module: &str, named: &NamedPath) -> Option<Vec<String>> {
    if named.segments[0] == "crate" {
        return Some(
            crate_of(module).into_iter().map(str::to_owned).chain(named.segments[1..].iter().cloned()).collect(),
        );
    }
    if let Some(name) = named.segments[0].strip_prefix("sparkgate_") {
        return Some([name.to_owned()].into_iter().chain(named.segments[1..].iter().cloned()).collect());
    }
    if named.segments[0] == "self" {
        return Some(module.split('/').map(str::to_owned).chain(named.segments[1..].iter().cloned()).collect());
    }
    let climbs = named.segments.iter().filter(|segment| *segment == "super").count();
    let up = climbs.checked_sub(named.depth).filter(|up| *up > 0)?;
    let own: Vec<String> = module.split('/').map(str::to_owned).collect();
    let mut path = own[..own.len().checked_sub(up)?].to_vec();
    path.extend(named.segments.iter().filter(|segment| !matches!(segment.as_str(), "super" | "self")).cloned());
    Some(path)
}
