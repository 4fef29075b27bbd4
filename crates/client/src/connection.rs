//! Which gateway a command calls and how: from options, the environment, and the contexts of the user.

use std::{fmt, path::PathBuf};

use super::{
    contexts::{Context, ContextName, Contexts},
    error::Error,
    options::{Gateway, Given},
    paths::Paths,
    secret::Secret,
    server::Server,
};

/// The gateway of a user without a context: that of `sparkgate dev`.
const DEFAULT: &str = "http://127.0.0.1:6066";

/// A gateway, and how to reach it.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) server: Server,
    /// The context that the gateway is of.
    pub(super) context: Option<Chosen>,
    pub(super) trust: Trust,
    /// The paths of the user, if there are any.
    pub(super) paths: Option<Paths>,
}

/// A context with its name.
#[derive(Debug)]
pub(super) struct Chosen {
    pub(super) name: ContextName,
    pub(super) context: Context,
    contexts: Contexts,
}

impl Chosen {
    /// Returns the token that is written in the context.
    ///
    /// # Errors
    /// Other users can read the file.
    pub(super) fn token(&self, paths: &Paths) -> Result<Option<&Secret>, Error> {
        self.contexts.token(&self.context, paths)
    }
}

/// The certificates that the client trusts, and the one that it shows.
#[derive(Debug, Clone, Default)]
pub(super) struct Trust {
    pub(super) ca_file: Option<Setting>,
    pub(super) certificate: Option<Setting>,
    pub(super) key: Option<Setting>,
}

/// A file and the setting that names it.
#[derive(Debug, Clone)]
pub(super) struct Setting {
    pub(super) path: PathBuf,
    name: &'static str,
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.path.display())
    }
}

impl Connection {
    /// Returns the gateway of a command. Options precede the environment, the environment precedes the current context. What
    /// a context has besides its URL is used only for this URL: its token is for no other gateway.
    ///
    /// # Errors
    /// The contexts can't be read, or there is none of the name.
    pub(super) fn of(gateway: &Gateway) -> Result<Self, Error> {
        let paths = Paths::find()?;
        let contexts = paths.as_ref().map(Contexts::read).transpose()?.unwrap_or_default();
        let named = |name: &ContextName| match &paths {
            Some(paths) => Ok(contexts.get(name, paths)?.clone()),
            None => {
                Err(Paths::required().err().unwrap_or_else(|| Error::Here(format!("there is no context `{name}`"))))
            }
        };
        if let Some(given) = gateway.context.as_ref().filter(|given| given.is_flag) {
            named(&given.value)?;
        }
        let name = gateway.context.as_ref().map(|given| &given.value).or(contexts.current.as_ref());
        // A URL that precedes the context needs none.
        let url = precedes(gateway.server.as_ref(), gateway.context.as_ref());
        let context = match (name, url) {
            (None, _) => None,
            (Some(name), None) => Some((name.clone(), named(name)?)),
            (Some(name), Some(server)) => contexts
                .contexts
                .get(name)
                .filter(|context| context.server == *server)
                .map(|it| (name.clone(), it.clone())),
        };
        let server = url.or_else(|| context.as_ref().map(|(_, context)| &context.server)).cloned();
        let trust = Trust::of(gateway, context.as_ref().map(|(_, context)| context));
        Ok(Self {
            server: server.map_or_else(default_server, Ok)?,
            context: context.map(|(name, context)| Chosen { name, context, contexts }),
            trust,
            paths,
        })
    }
}

/// Returns the URL of the options or the environment, unless a context precedes it: one of the options precedes a URL of the
/// environment.
fn precedes<'a>(server: Option<&'a Given<Server>>, context: Option<&Given<ContextName>>) -> Option<&'a Server> {
    let context_precedes = |server: &Given<Server>| context.is_some_and(|context| context.is_flag) && !server.is_flag;
    server.filter(|server| !context_precedes(server)).map(|server| &server.value)
}

fn default_server() -> Result<Server, Error> {
    DEFAULT.parse().map_err(|error| Error::Here(format!("{DEFAULT}: {error}")))
}

impl Trust {
    fn of(gateway: &Gateway, context: Option<&Context>) -> Self {
        let setting = |path: &Option<PathBuf>, name| path.clone().map(|path| Setting { path, name });
        let of_context =
            |path: fn(&Context) -> &Option<PathBuf>, name| context.and_then(|context| setting(path(context), name));
        let ca_file = setting(&gateway.ca_file, "--ca-file").or_else(|| of_context(|it| &it.ca_file, "caFile"));
        // A certificate and its key are of one place.
        let (certificate, key) = match &gateway.certificate {
            Some(_) => (setting(&gateway.certificate, "--certificate"), setting(&gateway.key, "--key")),
            None => (of_context(|it| &it.certificate, "certificate"), of_context(|it| &it.key, "key")),
        };
        Self { ca_file, certificate, key }
    }

    /// Returns the same without the client's certificate, for other servers than the gateway.
    pub(super) fn without_certificate(&self) -> Self {
        Self { ca_file: self.ca_file.clone(), certificate: None, key: None }
    }
}
