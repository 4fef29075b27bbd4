//! The contexts of a user: gateways by name, in `config.yaml`.

use std::{
    borrow::Borrow,
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
    str::FromStr,
};

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::{
    error::Error,
    paths::Paths,
    private_file::{self, Lock, Text},
    secret::Secret,
    server::Server,
};

/// The longest name of a context.
const LONGEST: usize = 63;

/// The contexts and which of them is used by default.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Contexts {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) current: Option<ContextName>,
    pub(super) contexts: BTreeMap<ContextName, Context>,
    /// Other users can read the file.
    #[serde(skip)]
    is_exposed: bool,
}

/// A gateway and what the client needs to call it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Context {
    pub(super) server: Server,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) ca_file: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) certificate: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) key: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) token: Option<Secret>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) token_file: Option<PathBuf>,
}

impl Context {
    pub(super) fn new(server: Server) -> Self {
        Self { server, ca_file: None, certificate: None, key: None, token: None, token_file: None }
    }

    /// Returns the files that the context names.
    fn files(&mut self) -> impl Iterator<Item = &mut PathBuf> {
        [&mut self.ca_file, &mut self.certificate, &mut self.key, &mut self.token_file].into_iter().flatten()
    }
}

impl Contexts {
    /// Reads the contexts. A user without the file has none.
    ///
    /// # Errors
    /// The file can't be read, or isn't one of contexts.
    pub(super) fn read(paths: &Paths) -> Result<Self, Error> {
        let path = paths.config();
        let Some(text) = Text::read(path)? else { return Ok(Self::default()) };
        let mut contexts: Self = parse(path, &text.text)?;
        // Relative paths are relative to the file, so that they mean the same in every folder.
        let folder = path.parent().unwrap_or_else(|| Path::new("/"));
        for file in contexts.contexts.values_mut().flat_map(Context::files) {
            *file = folder.join(&*file);
        }
        contexts.is_exposed = text.is_exposed;
        Ok(contexts)
    }

    /// Changes the contexts while no other command does. Returns what `change` returns.
    ///
    /// # Errors
    /// Those of [`Contexts::read`] and of `change`; the file can't be written.
    pub(super) fn update<T>(paths: &Paths, change: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        let _lock = Lock::take(&paths.config_lock())?;
        let mut contexts = Self::read(paths)?;
        let changed = change(&mut contexts)?;
        private_file::write(paths.config(), &text_of(&contexts)?)?;
        Ok(changed)
    }

    /// Returns the context of this name.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn get(&self, name: &ContextName, paths: &Paths) -> Result<&Context, Error> {
        self.contexts.get(name).ok_or_else(|| {
            let others: Vec<&str> = self.contexts.keys().map(Borrow::borrow).collect();
            let others = if others.is_empty() { "it has none".to_owned() } else { format!("it has {}", others.join(", ")) };
            Error::Here(format!(
                "there is no context `{name}` in {}: {others}. Create it with `sparkgate context set {name} --server URL`",
                paths.config().display()
            ))
        })
    }

    /// Returns the token that is written in a context.
    ///
    /// # Errors
    /// Other users can read the file.
    pub(super) fn token<'a>(&self, context: &'a Context, paths: &Paths) -> Result<Option<&'a Secret>, Error> {
        match (&context.token, self.is_exposed) {
            (Some(_), true) => Err(private_file::exposed(paths.config())),
            (token, _) => Ok(token.as_ref()),
        }
    }
}

/// Parses a file of the client. An error has no part of the text, which may be a secret.
///
/// # Errors
/// It isn't YAML, or not of this type.
pub(super) fn parse<T: DeserializeOwned + Default>(path: &Path, text: &str) -> Result<T, Error> {
    if text.trim().is_empty() {
        return Ok(T::default());
    }
    let options = serde_saphyr::options! { with_snippet: false };
    serde_saphyr::from_str_with_options(text, options)
        .map_err(|error| Error::Here(format!("reading {}: {}", path.display(), error)))
}

/// Formats a file of the client.
///
/// # Errors
/// A value has no notation in YAML.
pub(super) fn text_of(value: &impl Serialize) -> Result<String, Error> {
    serde_saphyr::to_string(value).map_err(|error| Error::Here(format!("writing YAML: {error}")))
}

/// The name of a context: letters, digits, `-`, `_` and `.`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(super) struct ContextName(String);

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected the name of a context: 1 to 63 letters, digits, `-`, `_` or `.`")]
pub(super) struct NoContextName;

impl FromStr for ContextName {
    type Err = NoContextName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let fine = (1..=LONGEST).contains(&text.len()) && text.chars().all(is_fine);
        if fine { Ok(Self(text.to_owned())) } else { Err(NoContextName) }
    }
}

impl TryFrom<String> for ContextName {
    type Error = NoContextName;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<ContextName> for String {
    fn from(name: ContextName) -> Self {
        name.0
    }
}

impl Borrow<str> for ContextName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ContextName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Contexts, Error> {
        parse(Path::new("/config.yaml"), text)
    }

    #[test]
    fn contexts_are_read_as_they_were_written() {
        let text = "current: prod\ncontexts:\n  prod:\n    server: https://gate.example/spark/\n    caFile: /ca.pem\n    \
                    token: s3cret\n  laptop: {server: 'localhost:6066'}\n";
        let contexts: Contexts = read(text).unwrap();
        let written = text_of(&contexts).unwrap();
        let again = read(&written).unwrap();
        for contexts in [&contexts, &again] {
            let prod = &contexts.contexts["prod"];
            assert_eq!(contexts.current.as_ref().map(ToString::to_string).as_deref(), Some("prod"));
            assert_eq!(prod.server.to_string(), "https://gate.example/spark");
            assert_eq!(prod.ca_file.as_deref(), Some(Path::new("/ca.pem")));
            assert!(!format!("{prod:?}").contains("s3cret"));
            assert_eq!(contexts.contexts["laptop"].server.to_string(), "http://localhost:6066");
        }
        assert!(written.contains("s3cret") && !written.contains("null"), "{written}");
        for empty in ["", "\n", "# nothing yet\n"] {
            assert!(read(empty).unwrap().contexts.is_empty(), "{empty:?}");
        }
    }

    #[test]
    fn an_error_in_the_file_names_the_place_and_no_secret() {
        for text in [
            "contexts:\n  prod:\n    server: https://gate.example\n    tokn: s3cret\n",
            "contexts:\n  prod:\n    server: https://gate.example\n    token: [s3cret]\n",
            "contexts:\n  prod:\n    server: https://gate.example\n    token: \"s3cret\n",
            "contexts:\n  prod:\n    server: ftp://s3cret\n",
            "contexts:\n  a/b:\n    server: https://gate.example\n",
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.starts_with("reading /config.yaml: ") && error.contains("line"), "{error}");
            assert!(!error.contains("s3cret"), "{error}");
        }
    }
}
