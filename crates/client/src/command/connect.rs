//! `sparkgate connect`.

use std::time::Duration;

use clap::Args;
use secrecy::ExposeSecret;
use serde_json::{Map, Value, json};
use tokio::{process::Command, time::sleep};

use super::{
    Outcome, label,
    request_options::texts,
    session::{Document, State, look},
};
use crate::{
    api::{Api, Call},
    clean, document,
    error::Error,
    options::Gateway,
    screen::{self, note},
    span::Span,
};

/// The variables that clients of Spark Connect read.
const REMOTE: &str = "SPARK_REMOTE";
const TOKEN: &str = "SPARK_CONNECT_AUTHENTICATE_TOKEN";
/// Pause between two looks at a session that is being opened.
const LOOK: Duration = Duration::from_secs(1);

#[derive(Debug, Args)]
pub struct Connect {
    #[command(flatten)]
    gateway: Gateway,
    /// The name of the session. Your live session of this name is used again.
    #[arg(default_value = "default")]
    name: String,
    /// Use the session of this name that members of your tenant share, if the tenant's operator permits such sessions.
    #[arg(long)]
    shared: bool,
    /// End the session after so long without a request, such as 30m [default: that of the gateway].
    #[arg(long, value_name = "TIME")]
    idle: Option<Span>,
    /// End it so long after its start, whether it is used or not, such as 8h.
    #[arg(long, value_name = "TIME")]
    run_timeout: Option<Span>,
    /// A property of Spark; may be repeated. Those of a session that lives already don't change.
    #[arg(short, long = "conf", value_name = "KEY=VALUE", value_parser = label)]
    conf: Vec<(String, String)>,
    /// The namespace of the driver: `spark.kubernetes.namespace`.
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,
    /// The Spark version of the driver, such as 4.3.0, or a line, 4.3: 4.0 or later.
    #[arg(long, value_name = "VERSION")]
    spark_version: Option<String>,
    /// The queue that has to admit the session.
    #[arg(long, value_name = "QUEUE")]
    queue: Option<String>,
    /// Add your token to the connection string that is printed. Without it, programs find the token in `SPARK_CONNECT_AUTHENTICATE_TOKEN`.
    #[arg(long, conflicts_with = "command")]
    with_token: bool,
    /// A command to run in the session, with `SPARK_REMOTE` and the token in its environment; its exit code is that of this command.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

impl Connect {
    pub(super) async fn run(self) -> Outcome {
        let api = Api::new(&self.gateway)?;
        let session = self.opened(&api).await?;
        let url = session.url.clone().ok_or_else(|| Error::Here(format!("the session {} has no URL", session.id)))?;
        let token = api.tokens().current().await?.map(|(token, _)| token);
        let Some((program, arguments)) = self.command.split_first() else {
            let token =
                token.filter(|_| self.with_token).map(|token| format!(";token={}", token.expose_secret().trim()));
            screen::line(&format!("{}{}", clean::line(&url), token.unwrap_or_default()))?;
            return Ok(0);
        };
        let mut command = Command::new(program);
        command.args(arguments).env(REMOTE, &url);
        if let Some(token) = token {
            command.env(TOKEN, token.expose_secret().trim());
        }
        let status = command.status().await;
        let status = status.map_err(|error| Error::Here(format!("running {program}: {error}")))?;
        // A signal has no code.
        Ok(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
    }

    /// Opens the session, and waits until it is ready.
    async fn opened(&self, api: &Api) -> Result<Document, Error> {
        let action = format!("opening the session {}", self.name);
        let call = Call::post(action, &["sessions"], self.request().to_string());
        let mut session: Document = document::read(call.action(), &api.send(&call).await?.body)?;
        let mut said = String::new();
        loop {
            match session.state {
                State::Ready => return Ok(session),
                State::Ended => {
                    let why = session.message.unwrap_or_default();
                    return Err(Error::Here(format!("the session {} has ended: {why}", session.id)));
                }
                State::Opening => {}
            }
            let message = session.message.take().unwrap_or_default();
            if message != said {
                note(&format!("{}: {}", clean::line(&session.id), clean::line(&message)));
                said = message;
            }
            sleep(LOOK).await;
            session = look(api, &session.id).await?;
        }
    }

    fn request(&self) -> Value {
        let mut properties = self.conf.clone();
        let namespace = self.namespace.clone();
        properties.extend(namespace.map(|namespace| ("spark.kubernetes.namespace".to_owned(), namespace)));
        let fields = [
            ("name", Some(json!(self.name))),
            ("shared", self.shared.then_some(json!(true))),
            ("sparkProperties", texts(&properties)),
            ("sparkVersion", self.spark_version.clone().map(Value::from)),
            ("queue", self.queue.clone().map(Value::from)),
            ("idleTimeoutSeconds", self.idle.map(|time| json!(time.seconds()))),
            ("runTimeoutSeconds", self.run_timeout.map(|time| json!(time.seconds()))),
        ];
        Value::Object(Map::from_iter(fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)))))
    }
}
