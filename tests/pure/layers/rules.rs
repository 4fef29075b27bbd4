//! What a source file may import.

use proc_macro2::TokenStream;

use crate::layers::paths::{NamedPath, named_paths};

/// Libraries of the program and the file of `app` that may use each, to start a part. Cargo.toml says what a crate may use.
const LIBRARIES: [(&str, &str); 3] = [("kube", "app/sandbox"), ("axum", "app/serve"), ("opentelemetry", "app/traces")];

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
                if let Some(reason) = library(&module, &named).or_else(|| stranger(&module, &named)) {
                    complain(named.line, reason);
                }
            }
        }
    }
    // A use-group names a folder once for each of its items.
    found.dedup();
    found
}

/// Returns the module of a file: `src/app/serve.rs` is `app/serve`, and `crates/store/src/query.rs` is `store/query`.
pub(crate) fn module_of(path: &str) -> String {
    let path = path.trim_start_matches("src/").trim_start_matches("crates/").trim_end_matches(".rs");
    path.replacen("/src/", "/", 1).trim_end_matches("/lib").to_owned()
}

/// Returns the crate that the module belongs to, unless it is one of the root package.
fn crate_of(module: &str) -> Option<&str> {
    module.split('/').next().filter(|name| !["app", "lib", "main"].contains(name))
}

fn is_within(module: &str, folder: &str) -> bool {
    module.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn library(module: &str, named: &NamedPath) -> Option<String> {
    let (name, allowed) = LIBRARIES.iter().find(|(name, _)| *name == named.segments[0])?;
    let is_fine = crate_of(module).is_some() || is_within(module, allowed);
    (!is_fine).then(|| format!("only {allowed} may use `{name}`"))
}

fn stranger(module: &str, named: &NamedPath) -> Option<String> {
    let target = from_root(module, named)?.join("/");
    let (from, to) = STRANGERS.iter().find(|(from, to)| is_within(module, from) && is_within(&target, to))?;
    Some(format!("`{from}` may not import `{to}`: they communicate only through the Kubernetes API"))
}

/// Returns the path from the root, as [`module_of`] gives it, if it starts with `crate`, `self`, `super` or one of our crates.
pub(crate) fn from_root(module: &str, named: &NamedPath) -> Option<Vec<String>> {
    if named.segments[0] == "crate" {
        let of_crate = crate_of(module).into_iter().map(str::to_owned);
        return Some(of_crate.chain(named.segments[1..].iter().cloned()).collect());
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
