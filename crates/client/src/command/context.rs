//! `sparkgate context`.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use super::Outcome;
use crate::{
    connection::Connection,
    contexts::{self, ContextName, Contexts},
    credentials,
    error::Error,
    fields::Fields,
    options::Gateway,
    paths::Paths,
    screen::{self, note},
    server::Server,
    table::{Cell, Column, cut, whole},
    tokens::Tokens,
};

/// Which gateways there are, and which is used.
#[derive(Debug, Subcommand)]
pub enum Context {
    /// List the contexts. The current one has a `*`.
    List,
    /// Make a context the current one, which commands use that name no other gateway.
    Use(Named),
    /// Create a context, or change those settings of it that are given.
    Set(Set),
    /// Delete a context.
    Delete(Named),
    /// Show the gateway that commands with the same options use, and where its token is from.
    Show(Show),
}

#[derive(Debug, Args)]
pub struct Named {
    /// The context's name.
    #[arg(value_name = "NAME")]
    name: ContextName,
}

#[derive(Debug, Args)]
pub struct Set {
    /// The context's name.
    #[arg(value_name = "NAME")]
    name: ContextName,
    /// URL of the gateway, without /v1. A new context needs one.
    #[arg(long, value_name = "URL")]
    server: Option<Server>,
    /// File of certificates (PEM) to trust besides the system's.
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
    /// File of the token to send.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// File of the certificate (PEM) that this client shows to the gateway.
    #[arg(long, value_name = "FILE")]
    certificate: Option<PathBuf>,
    /// File of the certificate's private key (PEM).
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct Show {
    #[command(flatten)]
    gateway: Gateway,
}

impl Context {
    pub(super) fn run(self) -> Outcome {
        match self {
            Self::List => list()?,
            Self::Use(Named { name }) => {
                let paths = Paths::required()?;
                Contexts::update(&paths, |contexts| {
                    contexts.get(&name, &paths)?;
                    contexts.current = Some(name.clone());
                    Ok(())
                })?;
                note(&format!("the current context is now `{name}`"));
            }
            Self::Set(set) => set.run()?,
            Self::Delete(Named { name }) => delete(&name)?,
            Self::Show(show) => show.run()?,
        }
        Ok(0)
    }
}

const COLUMNS: [Column<'static>; 4] = [whole("CURRENT"), whole("NAME"), cut("SERVER"), whole("TOKEN")];

fn list() -> Result<(), Error> {
    let paths = Paths::required()?;
    let Contexts { current, contexts, .. } = Contexts::read(&paths)?;
    let logins = credentials::servers(&paths)?;
    let row = |(name, context): (&ContextName, &contexts::Context)| {
        let token = match (&context.token, &context.token_file) {
            _ if logins.get(name) == Some(&context.server) => "login",
            (Some(_), _) => "config",
            (None, Some(_)) => "file",
            (None, None) => "",
        };
        let mark = if current.as_ref() == Some(name) { "*" } else { "" };
        vec![Cell::new(mark), Cell::new(&name.to_string()), Cell::new(&context.server.to_string()), Cell::new(token)]
    };
    screen::table(&COLUMNS, &contexts.iter().map(row).collect::<Vec<_>>())?;
    if contexts.is_empty() {
        note("no contexts: create one with `sparkgate context set NAME --server URL`");
    }
    Ok(())
}

impl Set {
    fn run(self) -> Result<(), Error> {
        let paths = Paths::required()?;
        let files =
            [&self.ca_file, &self.token_file, &self.certificate, &self.key].map(|path| absolute(path.as_deref()));
        let [ca_file, token_file, certificate, key] = files;
        let (ca_file, token_file, certificate, key) = (ca_file?, token_file?, certificate?, key?);
        let is_first = Contexts::update(&paths, |contexts| {
            let context = match (contexts.contexts.get_mut(&self.name), self.server) {
                (Some(context), server) => {
                    if let Some(server) = server {
                        context.server = server;
                    }
                    context
                }
                (None, Some(server)) => {
                    contexts.contexts.entry(self.name.clone()).or_insert_with(|| contexts::Context::new(server))
                }
                (None, None) => {
                    return Err(Error::Here(format!("the new context `{}` needs a URL: give --server URL", self.name)));
                }
            };
            for (setting, file) in [
                (&mut context.ca_file, ca_file),
                (&mut context.token_file, token_file),
                (&mut context.certificate, certificate),
                (&mut context.key, key),
            ] {
                if file.is_some() {
                    *setting = file;
                }
            }
            let is_first = contexts.current.is_none();
            if is_first {
                contexts.current = Some(self.name.clone());
            }
            Ok(is_first)
        })?;
        let current = if is_first { ", and is now the current one" } else { "" };
        note(&format!("the context `{}` is set{current}", self.name));
        Ok(())
    }
}

/// Returns the path as the configuration has it: it means the same in every folder.
fn absolute(path: Option<&Path>) -> Result<Option<PathBuf>, Error> {
    let absolute = path.map(|path| {
        std::path::absolute(path).map_err(|error| Error::Here(format!("resolving {}: {error}", path.display())))
    });
    absolute.transpose()
}

fn delete(name: &ContextName) -> Result<(), Error> {
    let paths = Paths::required()?;
    Contexts::update(&paths, |contexts| {
        contexts.get(name, &paths)?;
        contexts.contexts.remove(name);
        contexts.current.take_if(|current| current == name);
        Ok(())
    })?;
    let with_login = match credentials::delete(&paths, name)? {
        Some(_) => "` and its login are deleted",
        None => "` is deleted",
    };
    note(&format!("the context `{name}{with_login}"));
    Ok(())
}

impl Show {
    fn run(&self) -> Result<(), Error> {
        let connection = Connection::of(&self.gateway)?;
        let tokens = Tokens::of(&self.gateway, &connection)?;
        let mut fields = Fields::default();
        let file =
            |setting: &Option<crate::connection::Setting>| setting.as_ref().map(|it| it.path.display().to_string());
        fields.add("Context", connection.context.as_ref().map(|chosen| chosen.name.to_string()));
        fields.add("Server", connection.server.to_string());
        fields.add("CA file", file(&connection.trust.ca_file));
        fields.add("Certificate", file(&connection.trust.certificate));
        fields.add("Key", file(&connection.trust.key));
        fields.add("Token", tokens.origin().map_or_else(|| "none".to_owned(), |origin| format!("from {origin}")));
        screen::text(&fields.finish())
    }
}
