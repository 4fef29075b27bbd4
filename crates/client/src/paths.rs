//! Where the client's own files are (XDG Base Directory Specification).

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use super::error::Error;

/// The files of the client: all are in the folder of `config.yaml`.
#[derive(Debug, Clone)]
pub(super) struct Paths {
    config: PathBuf,
}

impl Paths {
    /// Returns the paths of this user: `SPARKGATE_CONFIG`, or below `XDG_CONFIG_HOME` or `~/.config`. `None` if the environment
    /// has none of these variables.
    ///
    /// # Errors
    /// `SPARKGATE_CONFIG` is relative, and there is no current folder.
    pub(super) fn find() -> Result<Option<Self>, Error> {
        let Some(path) = config_file(|name| std::env::var_os(name)) else { return Ok(None) };
        let config = std::path::absolute(&path)
            .map_err(|error| Error::Here(format!("SPARKGATE_CONFIG {}: {error}", path.display())))?;
        Ok(Some(Self { config }))
    }

    /// Returns the paths of this user, for a command that can't do without.
    ///
    /// # Errors
    /// As [`Paths::find`]; there are none.
    pub(super) fn required() -> Result<Self, Error> {
        Self::find()?.ok_or_else(|| {
            Error::Here("there is no place for contexts: HOME is not set. Set SPARKGATE_CONFIG to a file".to_owned())
        })
    }

    /// Returns the file of contexts.
    pub(super) fn config(&self) -> &Path {
        &self.config
    }

    pub(super) fn config_lock(&self) -> PathBuf {
        self.config.with_file_name("config.lock")
    }

    /// Returns the file of logins.
    pub(super) fn credentials(&self) -> PathBuf {
        self.config.with_file_name("credentials.yaml")
    }

    pub(super) fn credentials_lock(&self) -> PathBuf {
        self.config.with_file_name("credentials.lock")
    }
}

fn config_file(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let variable = |name| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    // The specification has relative paths ignored.
    let base = || variable("XDG_CONFIG_HOME").filter(|path| path.is_absolute());
    let home = || Some(variable("HOME")?.join(".config"));
    variable("SPARKGATE_CONFIG").or_else(|| Some(base().or_else(home)?.join("sparkgate/config.yaml")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_of_contexts_is_where_the_environment_says() {
        let path = |variables: &[(&str, &str)]| {
            let found = config_file(|name| Some(variables.iter().find(|(variable, _)| *variable == name)?.1.into()));
            found.map(|path| path.to_str().unwrap().to_owned())
        };
        let (home, base) = (("HOME", "/home/a"), ("XDG_CONFIG_HOME", "/conf"));
        assert_eq!(path(&[home]).as_deref(), Some("/home/a/.config/sparkgate/config.yaml"));
        assert_eq!(path(&[home, base]).as_deref(), Some("/conf/sparkgate/config.yaml"));
        assert_eq!(path(&[home, base, ("SPARKGATE_CONFIG", "/my.yaml")]).as_deref(), Some("/my.yaml"));
        let relative = [home, ("XDG_CONFIG_HOME", "conf"), ("SPARKGATE_CONFIG", "")];
        assert_eq!(path(&relative).as_deref(), Some("/home/a/.config/sparkgate/config.yaml"));
        assert_eq!(path(&[]), None);
    }
}
