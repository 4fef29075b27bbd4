//! Compares the dependencies of the crates with the table of layers in `ARCHITECTURE.md`: a crate depends only on rows below its
//! own, and features don't know each other.

use std::{collections::BTreeSet, fs, path::Path};

const MAP: &str = include_str!("../../../ARCHITECTURE.md");
/// The crate of the harnesses, which is no layer.
const HARNESS: &str = "testing";

/// Returns the layers of the table, from top to bottom, and whether each is a feature.
fn layers() -> Vec<(&'static str, bool)> {
    let table = MAP.split("\n##").find(|part| part.starts_with(" Layers")).unwrap();
    let rows = table.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("/` | "));
    rows.map(|(layer, rest)| (layer, rest.starts_with("feature: "))).collect()
}

/// Returns the crates of the workspace that a manifest names as dependencies, by their folders.
fn dependencies(manifest: &str) -> BTreeSet<String> {
    let part = manifest.split("\n[").find(|part| part.starts_with("dependencies]")).unwrap_or_default();
    let names = part.lines().filter_map(|line| line.strip_prefix("sparkgate-")?.split(['.', ' ']).next());
    names.map(|name| name.replace('-', "_")).collect()
}

/// Returns the dependencies that the table forbids.
fn forbidden(layers: &[(&str, bool)], layer: &str, dependencies: &BTreeSet<String>) -> Vec<String> {
    let row = |name: &str| layers.iter().position(|(layer, _)| *layer == name);
    let Some(own) = row(layer) else { return vec![format!("{layer} has no row in ARCHITECTURE.md")] };
    let fine = |name: &str| row(name).is_some_and(|at| at > own && !(layers[own].1 && layers[at].1));
    dependencies.iter().filter(|name| !fine(name)).map(|name| format!("{layer} may not depend on {name}")).collect()
}

#[test]
fn each_crate_depends_only_on_layers_below_it() {
    let (root, layers) = (Path::new(env!("CARGO_MANIFEST_DIR")), layers());
    let (mut checked, mut found) = (0, Vec::new());
    for entry in fs::read_dir(root.join("crates")).unwrap() {
        let path = entry.unwrap().path();
        let layer = path.file_name().unwrap().to_str().unwrap();
        if layer != HARNESS {
            let manifest = fs::read_to_string(path.join("Cargo.toml")).unwrap();
            found.extend(forbidden(&layers, layer, &dependencies(&manifest)));
            checked += 1;
        }
    }
    assert_eq!(found, Vec::<String>::new());
    assert_eq!(checked + 1, layers.len(), "each row but that of the program is a crate: {layers:?}");
}

#[test]
fn a_dependency_upwards_or_between_features_is_found() {
    let layers = [("top", false), ("one", true), ("other", true), ("base", false)];
    let of = |layer, manifest: &str| forbidden(&layers, layer, &dependencies(manifest));
    let manifest = "[package]\nname = \"x\"\n\n[dependencies]\nsparkgate-other.workspace = true\nsparkgate-base = { path = \"\" }\n\n\
                    [dev-dependencies]\nsparkgate-top.workspace = true\n";
    assert_eq!(of("top", manifest), Vec::<String>::new());
    assert_eq!(of("one", manifest), ["one may not depend on other"]);
    assert_eq!(of("base", manifest), ["base may not depend on base", "base may not depend on other"]);
    assert_eq!(of("none", manifest), ["none has no row in ARCHITECTURE.md"]);
}
