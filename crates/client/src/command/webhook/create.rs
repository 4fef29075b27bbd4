//! `sparkgate webhook create`.

use std::{
    io::{Read, stdin},
    path::{Path, PathBuf},
};

use clap::Args;
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value, json};

use super::WithSecret;
use crate::{
    api::{Api, Call},
    clean,
    command::{Outcome, label},
    document,
    error::Error,
    options::Target,
    private_file,
    screen::{self, note},
    span::Span,
};

#[derive(Debug, Args)]
pub struct Create {
    #[command(flatten)]
    target: Target,
    /// The URL that changes are sent to.
    #[arg(value_name = "URL")]
    url: String,
    /// The tenant whose submissions it is for [default: the one in which you may have the webhook].
    #[arg(long, value_name = "TENANT")]
    tenant: Option<String>,
    /// Only your own submissions, instead of all of the tenant.
    #[arg(long)]
    own: bool,
    /// The format of messages: cloudevents or openlineage [default: cloudevents].
    #[arg(long = "format", value_name = "FORMAT")]
    message_format: Option<String>,
    /// Only changes to these states, separated by commas.
    #[arg(long, value_name = "STATES", value_delimiter = ',')]
    state: Vec<String>,
    /// Only submissions whose name has this prefix.
    #[arg(long, value_name = "PREFIX")]
    name: Option<String>,
    /// Only submissions of this user.
    #[arg(long, value_name = "USER")]
    owner: Option<String>,
    /// Only submissions in this namespace.
    #[arg(short, long)]
    namespace: Option<String>,
    /// Only submissions with this label; may be repeated, all labels must match.
    #[arg(short, long = "label", value_name = "KEY=VALUE", value_parser = label)]
    labels: Vec<(String, String)>,
    /// How long changes are sent, such as 90d [default: until the webhook is deleted].
    #[arg(long, value_name = "TIME")]
    expires: Option<Span>,
    /// File of a signing secret of your own, `whsec_…`; - is standard input. Without it, the gateway generates one.
    #[arg(long, value_name = "FILE")]
    secret_file: Option<PathBuf>,
    /// File of the token that the receiver gets as `Authorization: Bearer`; - is standard input.
    #[arg(long, value_name = "FILE")]
    bearer_token_file: Option<PathBuf>,
}

impl Create {
    /// Prints the secret alone to standard output, for `SECRET=$(sparkgate webhook create …)`. The user has a secret of its own
    /// already: then it is the id.
    pub(super) async fn run(self) -> Outcome {
        let api = Api::new(&self.target.gateway)?;
        // A second webhook would be left over if the reply to the first were lost.
        let call = Call::post("creating a webhook", &["webhooks"], self.body()?.to_string()).not_repeated();
        let answer = api.send(&call).await.inspect_err(|error| {
            if error.is_passing() {
                note("the webhook may exist nevertheless: see `sparkgate webhook list`, and delete it");
            }
        })?;
        let WithSecret { document, secret } = document::read(call.action(), &answer.body)?;
        let has_own = self.secret_file.is_some();
        match self.target.is_document() {
            true => self.target.document(&answer.body)?,
            false => screen::line(&clean::line(if has_own { &document.id } else { &secret }))?,
        }
        let whose = if self.own { "your submissions" } else { "all submissions" };
        let end = if has_own { "" } else { ". Its secret can't be shown again" };
        note(&format!("created the webhook {} for {whose} in {}{end}", document.id, document.tenant));
        Ok(0)
    }

    fn body(&self) -> Result<Value, Error> {
        let labels: Map<String, Value> =
            self.labels.iter().map(|(key, value)| (key.clone(), value.as_str().into())).collect();
        let mut filter = json!({"states": self.state, "labels": labels});
        for (key, value) in [("name", &self.name), ("owner", &self.owner), ("namespace", &self.namespace)] {
            if let Some(value) = value {
                filter[key] = value.as_str().into();
            }
        }
        let mut body = json!({"url": self.url, "filter": filter});
        if self.own {
            body["submissions"] = "own".into();
        }
        for (key, value) in [("tenant", &self.tenant), ("format", &self.message_format)] {
            if let Some(value) = value {
                body[key] = value.as_str().into();
            }
        }
        if let Some(expires) = self.expires {
            body["expiresInSeconds"] = expires.seconds().into();
        }
        for (key, what, file) in
            [("secret", "secret", &self.secret_file), ("bearerToken", "bearer token", &self.bearer_token_file)]
        {
            if let Some(file) = file {
                body[key] = read(file, what)?.expose_secret().into();
            }
        }
        Ok(body)
    }
}

/// Reads a secret from a file that only its user can read, or from standard input.
fn read(path: &Path, what: &str) -> Result<SecretString, Error> {
    let is_stdin = path.as_os_str() == "-";
    let name = if is_stdin { "standard input".to_owned() } else { path.display().to_string() };
    let here = |cause: &str| Error::Here(format!("reading the {what} from {name}: {cause}"));
    let text: SecretString = match is_stdin {
        true => {
            let mut text = String::new();
            stdin().read_to_string(&mut text).map_err(|error| here(&error.to_string()))?;
            text.into()
        }
        false => private_file::read(path)?.ok_or_else(|| here("No such file or directory"))?.into(),
    };
    match text.expose_secret().trim() {
        "" => Err(here("it is empty")),
        text => Ok(text.into()),
    }
}
