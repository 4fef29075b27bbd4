//! Finds the server programs of Postgres on this system.

use std::{
    env,
    path::{Path, PathBuf},
};

use anyhow::Context;

/// Returns the directory with `pg_ctl` and `initdb`: on `PATH`, or where Debian, Red Hat and Homebrew install them (there, the
/// newest version).
pub(super) fn find() -> anyhow::Result<PathBuf> {
    let on_path = env::var_os("PATH").map(|path| env::split_paths(&path).collect::<Vec<_>>()).unwrap_or_default();
    let usual = ["/usr/lib/postgresql", "/usr/pgsql", "/opt/homebrew/opt", "/usr/local/opt"].map(Path::new);
    let mut versions: Vec<PathBuf> = usual.into_iter().flat_map(children).map(|version| version.join("bin")).collect();
    versions.sort_by_key(|dir| std::cmp::Reverse(version(dir)));
    let complete = |dir: &PathBuf| ["pg_ctl", "initdb", "postgres"].iter().all(|name| dir.join(name).is_file());
    on_path.into_iter().chain(versions).find(complete).context(
        "no Postgres server found on PATH or in the usual places: install one \
         (Debian and Ubuntu: apt install postgresql)",
    )
}

fn children(dir: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

fn version(dir: &Path) -> u32 {
    let name = dir.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned();
    name.chars().filter(char::is_ascii_digit).collect::<String>().parse().unwrap_or(0)
}
