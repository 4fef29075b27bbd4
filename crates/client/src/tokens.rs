//! The token that a request carries, and where it is from.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use chrono::{DateTime, Utc};
use secrecy::{ExposeSecret, SecretString};
use tokio::sync::Mutex;

use super::{
    connection::{Chosen, Connection, Trust},
    contexts::ContextName,
    credentials::{self, Login},
    dev_token,
    error::Error,
    options::{Gateway, GivenToken},
    paths::Paths,
    private_file,
    secret::Secret,
};

/// Where a command has its token from.
#[derive(Debug)]
pub(super) enum Tokens {
    None,
    Text { token: SecretString, origin: Origin },
    File(TokenFile),
    Login(Box<LoginTokens>),
}

/// A file with a token, which its writer may replace at any time, as Kubernetes does.
#[derive(Debug)]
pub(super) struct TokenFile {
    path: PathBuf,
    /// The token when the command started. A pipe can't be read again.
    first: SecretString,
    origin: Origin,
}

/// The tokens of a login, which are renewed before they end.
#[derive(Debug)]
pub(super) struct LoginTokens {
    paths: Paths,
    name: ContextName,
    trust: Trust,
    login: Mutex<Login>,
    origin: Origin,
}

/// The place that a token is from, in words for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Origin {
    /// An option or a variable.
    Setting(&'static str),
    File(PathBuf),
    /// The configuration of a context.
    Context(ContextName),
    Login(ContextName),
    /// The file of a `sparkgate dev` on this machine.
    Dev(PathBuf),
}

impl Tokens {
    /// Returns the tokens of a command: of its options or the environment, else of its context, else of a `sparkgate dev` on
    /// this machine.
    ///
    /// # Errors
    /// A file can't be read, or other users can read it.
    pub(super) fn of(gateway: &Gateway, connection: &Connection) -> Result<Self, Error> {
        match &gateway.token {
            Some(GivenToken::Text { token, option }) => {
                return Ok(Self::Text { token: token.clone(), origin: Origin::Setting(option) });
            }
            Some(GivenToken::File(path)) => return TokenFile::open(path).map(Self::File),
            None => {}
        }
        let of_context = match (&connection.context, &connection.paths) {
            (Some(chosen), Some(paths)) => match LoginTokens::of(chosen, connection, paths)? {
                Some(login) => Self::Login(Box::new(login)),
                None => Self::from_context(chosen, chosen.token(paths)?.map(Secret::text))?,
            },
            _ => Self::None,
        };
        Ok(match (of_context, dev_token::find(&connection.server)) {
            (Self::None, Some((token, path))) => Self::Text { token, origin: Origin::Dev(path) },
            (tokens, _) => tokens,
        })
    }

    fn from_context(chosen: &Chosen, token: Option<&SecretString>) -> Result<Self, Error> {
        match (token, &chosen.context.token_file) {
            (Some(_), Some(_)) => Err(Error::Here(format!(
                "the context `{}` has `token` and `tokenFile`: remove one of them",
                chosen.name
            ))),
            (Some(token), None) => {
                Ok(Self::Text { token: token.clone(), origin: Origin::Context(chosen.name.clone()) })
            }
            (None, Some(path)) => TokenFile::open(path).map(Self::File),
            (None, None) => Ok(Self::None),
        }
    }

    /// Returns the token for a request.
    ///
    /// # Errors
    /// The token's file can't be read any more, or the login has ended.
    pub(super) async fn current(&self) -> Result<Option<(SecretString, &Origin)>, Error> {
        match self {
            Self::None => Ok(None),
            Self::Text { token, origin } => Ok(Some((token.clone(), origin))),
            Self::File(file) => Ok(Some((file.token()?, &file.origin))),
            Self::Login(login) => Ok(Some((login.token().await?, &login.origin))),
        }
    }

    /// Returns where the token is from, if there is one.
    pub(super) fn origin(&self) -> Option<&Origin> {
        match self {
            Self::None => None,
            Self::Text { origin, .. } => Some(origin),
            Self::File(file) => Some(&file.origin),
            Self::Login(login) => Some(&login.origin),
        }
    }

    /// Returns when the token ends, if that is known here.
    pub(super) async fn expires_at(&self) -> Option<DateTime<Utc>> {
        match self {
            Self::Login(login) => login.login.lock().await.expires_at,
            _ => None,
        }
    }

    /// Returns what to do about a gateway that doesn't accept the token.
    pub(super) fn advice(&self) -> String {
        match self.origin() {
            None => "no token was sent: run `sparkgate login`, or set SPARKGATE_TOKEN".to_owned(),
            Some(Origin::Login(name)) => {
                format!("the token is from the login of the context `{name}`: run `sparkgate login --context {name}`")
            }
            Some(origin) => format!("the token is from {origin}: replace it, or remove it and run `sparkgate login`"),
        }
    }
}

impl TokenFile {
    fn open(path: &Path) -> Result<Self, Error> {
        let origin = Origin::File(path.to_owned());
        Ok(Self { path: path.to_owned(), first: read(path)?, origin })
    }

    fn token(&self) -> Result<SecretString, Error> {
        if self.path.is_file() { read(&self.path) } else { Ok(self.first.clone()) }
    }
}

impl LoginTokens {
    /// Returns the tokens of a context, if its user has logged in to its gateway.
    fn of(chosen: &Chosen, connection: &Connection, paths: &Paths) -> Result<Option<Self>, Error> {
        let login = credentials::find(paths, &chosen.name)?.filter(|login| login.server == connection.server);
        Ok(login.map(|login| Self {
            paths: paths.clone(),
            name: chosen.name.clone(),
            trust: connection.trust.clone(),
            login: Mutex::new(login),
            origin: Origin::Login(chosen.name.clone()),
        }))
    }

    async fn token(&self) -> Result<SecretString, Error> {
        let mut login = self.login.lock().await;
        *login = credentials::renewed(&self.paths, &self.name, &login, &self.trust).await?;
        Ok(login.access_token.text().clone())
    }
}

fn read(path: &Path) -> Result<SecretString, Error> {
    let here = |cause: &str| Error::Here(format!("the token file {}: {cause}", path.display()));
    let text: SecretString = private_file::read(path)?.ok_or_else(|| here("No such file or directory"))?.into();
    let token = text.expose_secret().trim();
    if token.is_empty() { Err(here("it is empty")) } else { Ok(token.into()) }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Setting(name) => f.write_str(name),
            Self::File(path) => write!(f, "the file {}", path.display()),
            Self::Context(name) => write!(f, "the context `{name}`"),
            Self::Login(name) => write!(f, "the login of the context `{name}`"),
            Self::Dev(path) => write!(f, "`sparkgate dev` ({})", path.display()),
        }
    }
}
