//! The options that client commands share: the gateway, how to reach it, and the output format.

use std::{ffi::OsStr, path::PathBuf, str::FromStr};

use clap::{ArgMatches, Args, Command, FromArgMatches, ValueEnum, error::ErrorKind, parser::ValueSource};
use secrecy::{ExposeSecret, SecretString};

use super::{
    contexts::ContextName,
    error::Error,
    screen,
    server::{NoServer, Server},
};

/// The options as the command line and the environment have them.
#[derive(Debug, Clone, Args)]
struct Flags {
    /// Context to use: a gateway of your configuration (`sparkgate context list`) [default: the current context].
    #[arg(long, env = "SPARKGATE_CLIENT_CONTEXT", value_name = "NAME", help_heading = "Gateway")]
    context: Option<String>,
    /// URL of the gateway, without /v1 [default: that of the context, else `http://127.0.0.1:6066`].
    #[arg(long, env = "SPARKGATE_URL", value_name = "URL", help_heading = "Gateway")]
    server: Option<ServerOrNone>,
    /// File of certificates (PEM) to trust besides the system's.
    #[arg(long, env = "SPARKGATE_CA_FILE", value_name = "FILE", help_heading = "Gateway")]
    ca_file: Option<String>,
    /// File of the certificate (PEM) that this client shows to the gateway.
    #[arg(long, env = "SPARKGATE_CLIENT_CERTIFICATE", value_name = "FILE", help_heading = "Gateway")]
    certificate: Option<String>,
    /// File of the certificate's private key (PEM) [default: the certificate's file].
    #[arg(long, env = "SPARKGATE_CLIENT_KEY", value_name = "FILE", help_heading = "Gateway")]
    key: Option<String>,
    /// Token that is sent with each request (`Authorization: Bearer`), over https or to this machine only. Other users can read
    /// the command line: prefer the variable, a file or `sparkgate login`.
    #[arg(long, env = "SPARKGATE_TOKEN", hide_env_values = true, value_name = "TOKEN", help_heading = "Gateway")]
    token: Option<SecretString>,
    /// File of the token. It is read again for each request.
    #[arg(long, env = "SPARKGATE_TOKEN_FILE", value_name = "FILE", help_heading = "Gateway")]
    token_file: Option<String>,
}

/// A URL, or an empty text: an empty variable is none.
#[derive(Debug, Clone)]
struct ServerOrNone(Option<Server>);

impl FromStr for ServerOrNone {
    type Err = NoServer;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.is_empty() { Ok(Self(None)) } else { text.parse().map(|server| Self(Some(server))) }
    }
}

/// The gateway that the user names and how to reach it. An empty variable is none.
#[derive(Debug, Clone)]
pub(super) struct Gateway {
    pub(super) context: Option<Given<ContextName>>,
    pub(super) server: Option<Given<Server>>,
    pub(super) ca_file: Option<PathBuf>,
    pub(super) certificate: Option<PathBuf>,
    pub(super) key: Option<PathBuf>,
    pub(super) token: Option<GivenToken>,
}

/// A setting, and whether an option of the command line has it. The others are of the environment.
#[derive(Debug, Clone)]
pub(super) struct Given<T> {
    pub(super) value: T,
    pub(super) is_flag: bool,
}

/// A token of the command line or the environment.
#[derive(Debug, Clone)]
pub(super) enum GivenToken {
    Text { token: SecretString, option: &'static str },
    File(PathBuf),
}

impl FromArgMatches for Gateway {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let flags = Flags::from_arg_matches(matches)?;
        let is_flag = |id: &str| matches.value_source(id) == Some(ValueSource::CommandLine);
        let path = |text: Option<String>| text.filter(|text| !text.is_empty()).map(PathBuf::from);
        // `--context "$NAME"` without a value must not call the current context's gateway.
        let empty = |id: &str, option: &str| {
            let is_empty = is_flag(id) && matches.get_raw(id).is_some_and(|mut texts| texts.any(OsStr::is_empty));
            let error = || clap::Error::raw(ErrorKind::InvalidValue, format!("{option} has an empty value\n"));
            if is_empty { Err(error()) } else { Ok(()) }
        };
        empty("context", "--context")?;
        empty("server", "--server")?;
        let context = flags.context.filter(|name| !name.is_empty()).map(|name| {
            let wrong = |error| clap::Error::raw(ErrorKind::ValueValidation, format!("--context '{name}': {error}\n"));
            Ok::<_, clap::Error>(Given { value: name.parse().map_err(wrong)?, is_flag: is_flag("context") })
        });
        if is_flag("token") && is_flag("token_file") {
            return Err(clap::Error::raw(ErrorKind::ArgumentConflict, "give --token or --token-file, not both\n"));
        }
        let option = if is_flag("token") { "--token" } else { "SPARKGATE_TOKEN" };
        let text = flags.token.filter(|token| !token.expose_secret().trim().is_empty());
        let text = text.map(|token| GivenToken::Text { token, option });
        let file = path(flags.token_file).map(GivenToken::File);
        Ok(Self {
            context: context.transpose()?,
            server: flags.server.and_then(|server| server.0).map(|value| Given { value, is_flag: is_flag("server") }),
            ca_file: path(flags.ca_file),
            certificate: path(flags.certificate),
            key: path(flags.key),
            token: if is_flag("token_file") { file.or(text) } else { text.or(file) },
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for Gateway {
    fn augment_args(command: Command) -> Command {
        Flags::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Flags::augment_args_for_update(command)
    }
}

/// The options of commands that print documents.
#[derive(Debug, Clone, Args)]
pub(super) struct Target {
    #[command(flatten)]
    pub(super) gateway: Gateway,
    /// Output format: text tables, the gateway's JSON unchanged, or the same as YAML.
    #[arg(short, long, default_value = "table", value_name = "FORMAT", help_heading = "Gateway")]
    output: Format,
}

impl Target {
    /// Returns whether documents are printed as the gateway sends them.
    pub(super) fn is_document(&self) -> bool {
        self.output != Format::Table
    }

    /// Prints a document of the gateway.
    ///
    /// # Errors
    /// Those of standard output; the document isn't JSON.
    pub(super) fn document(&self, body: &[u8]) -> Result<(), Error> {
        match self.output {
            Format::Yaml => screen::yaml(body),
            Format::Json | Format::Table => screen::document(body),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Table,
    Json,
    Yaml,
}

/// The output format of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum ListFormat {
    Table,
    Wide,
    Name,
    Json,
    Yaml,
}

impl ListFormat {
    /// Returns whether lists are printed as the gateway sends them.
    pub(super) fn is_document(self) -> bool {
        matches!(self, Self::Json | Self::Yaml)
    }

    /// Prints a document of the gateway.
    ///
    /// # Errors
    /// Those of standard output; the document isn't JSON.
    pub(super) fn document(self, body: &[u8]) -> Result<(), Error> {
        if self == Self::Yaml { screen::yaml(body) } else { screen::document(body) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &[&str]) -> Result<Gateway, clap::Error> {
        let command = Gateway::augment_args(Command::new("test").no_binary_name(true));
        Gateway::from_arg_matches(&command.try_get_matches_from(words)?)
    }

    #[test]
    fn a_token_is_given_once() {
        let file = parsed(&["--token-file", "/t"]).unwrap().token;
        assert!(matches!(file, Some(GivenToken::File(path)) if path.to_str() == Some("/t")));
        let text = parsed(&["--token", "s3cret"]).unwrap().token;
        assert!(matches!(text, Some(GivenToken::Text { option: "--token", .. })));
        assert!(parsed(&["--token", " "]).unwrap().token.is_none());
        let error = parsed(&["--token", "s3cret", "--token-file", "/t"]).unwrap_err().to_string();
        assert_eq!(error, "error: give --token or --token-file, not both\n");
    }

    #[test]
    fn an_empty_option_is_an_error() {
        for option in ["--context", "--server"] {
            let error = parsed(&[option, ""]).unwrap_err().to_string();
            assert_eq!(error, format!("error: {option} has an empty value\n"));
        }
        assert!(parsed(&["--server", "gateway:6066"]).unwrap().server.is_some_and(|server| server.is_flag));
    }

    #[test]
    fn a_wrong_name_of_a_context_is_an_error_of_the_command_line() {
        let error = parsed(&["--context", "a/b"]).unwrap_err().to_string();
        assert!(error.starts_with("error: --context 'a/b': expected the name of a context"), "{error}");
    }
}
