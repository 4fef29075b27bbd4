//! `sparkgate admission`: the Kubernetes objects with which the cluster itself enforces the boundaries of tenants.

use std::{
    fs,
    io::{self, Write},
    path::Path,
};

use anyhow::{Context, anyhow};
use sparkgate_admission::{objects, to_yaml};

use super::settings::Admission;
use sparkgate_access::Access;
use sparkgate_spark::SecretPattern;

/// Reads the access file and prints its objects to standard output.
///
/// # Errors
/// The file can't be read or used.
pub(super) fn admission(settings: &Admission) -> anyhow::Result<()> {
    let Admission { access_file: access, gateway, applications, secret_pattern } = settings;
    secret_pattern.clone().into_iter().for_each(SecretPattern::apply);
    let objects = objects(&read_access(access)?, gateway, *applications)
        .map_err(|error| anyhow!(error).context(format!("generating the objects of {}", access.display())))?;
    io::stdout().write_all(to_yaml(&objects).as_bytes())?;
    Ok(())
}

/// Reads an access file by itself.
///
/// # Errors
/// It can't be read, or is no access file.
pub(super) fn read_access(path: &Path) -> anyhow::Result<Access> {
    let text = fs::read_to_string(path).with_context(|| format!("reading the access file {}", path.display()))?;
    Access::parse(&text).with_context(|| format!("{} is no access file", path.display()))
}
