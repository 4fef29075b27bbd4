//! A client of Spark Connect that can do one thing: let Spark make a table of a statement's rows, as text.

use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, header};
use http_body_util::BodyExt;
use percent_encoding::percent_decode;
use prost::Message;
use reqwest::Client;
use secrecy::{ExposeSecret, SecretString};
use tokio::time::timeout;
use uuid::Uuid;

use super::arrow;
use crate::{
    connection::Trust,
    error::{Error, root},
    server::Server,
    transport,
};

/// How long a query may run.
const LONGEST: Duration = Duration::from_secs(300);
/// How long the end of a session may take.
const RELEASE: Duration = Duration::from_secs(5);
/// The largest response, in bytes: rows and columns as text.
const LARGEST: usize = 8 << 20;
/// The most characters of a value.
const LONGEST_VALUE: i32 = 500;
const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");
const ACTION: &str = "running the query";

/// Messages of `spark/connect/base.proto` and `relations.proto`, as far as they are used. Their tags are the same in all releases.
mod proto {
    #[derive(prost::Message)]
    pub(super) struct ExecutePlanRequest {
        #[prost(string, tag = "1")]
        pub(super) session_id: String,
        #[prost(message, optional, tag = "2")]
        pub(super) user_context: Option<UserContext>,
        #[prost(message, optional, tag = "3")]
        pub(super) plan: Option<Plan>,
        #[prost(string, optional, tag = "4")]
        pub(super) client_type: Option<String>,
    }

    #[derive(prost::Message)]
    pub(super) struct ReleaseSessionRequest {
        #[prost(string, tag = "1")]
        pub(super) session_id: String,
        #[prost(message, optional, tag = "2")]
        pub(super) user_context: Option<UserContext>,
    }

    #[derive(prost::Message)]
    pub(super) struct UserContext {
        #[prost(string, tag = "1")]
        pub(super) user_id: String,
    }

    #[derive(prost::Message)]
    pub(super) struct Plan {
        #[prost(message, optional, tag = "1")]
        pub(super) root: Option<Relation>,
    }

    #[derive(prost::Message)]
    pub(super) struct Relation {
        #[prost(message, optional, tag = "10")]
        pub(super) sql: Option<Sql>,
        #[prost(message, optional, boxed, tag = "20")]
        pub(super) show_string: Option<Box<ShowString>>,
    }

    #[derive(prost::Message)]
    pub(super) struct Sql {
        #[prost(string, tag = "1")]
        pub(super) query: String,
    }

    #[derive(prost::Message)]
    pub(super) struct ShowString {
        #[prost(message, optional, boxed, tag = "1")]
        pub(super) input: Option<Box<Relation>>,
        #[prost(int32, tag = "2")]
        pub(super) num_rows: i32,
        #[prost(int32, tag = "3")]
        pub(super) truncate: i32,
    }

    #[derive(prost::Message)]
    pub(super) struct ExecutePlanResponse {
        #[prost(message, optional, tag = "2")]
        pub(super) arrow_batch: Option<ArrowBatch>,
    }

    #[derive(prost::Message)]
    pub(super) struct ArrowBatch {
        #[prost(bytes = "bytes", tag = "2")]
        pub(super) data: bytes::Bytes,
    }
}

/// The server of a session, behind the gateway.
pub(super) struct Remote {
    http: Client,
    server: Server,
    /// The parameters that are sent as metadata.
    metadata: HeaderMap,
    /// The session of Spark, in which nothing of the user's other clients is.
    session: String,
}

impl Remote {
    /// Creates a client from a connection string (<https://github.com/apache/spark/blob/master/sql/connect/docs/client-connection-string.md>).
    ///
    /// # Errors
    /// The string can't be used, or the token would be sent over plain HTTP.
    pub(super) fn new(url: &str, token: Option<SecretString>, trust: &Trust) -> Result<Self, Error> {
        let (server, mut metadata) = parse(url).ok_or_else(|| Error::Here(format!("{url} is no connection string")))?;
        if let Some(token) = token {
            if !server.is_private() {
                return Err(Error::Here(format!("the token is not sent to {server}, which has no TLS")));
            }
            let value = HeaderValue::try_from(format!("Bearer {}", token.expose_secret().trim()));
            let mut value = value.map_err(|_| Error::Here("the token has characters that no header has".to_owned()))?;
            value.set_sensitive(true);
            metadata.insert(header::AUTHORIZATION, value);
        }
        let http = transport::http2_client(&server, trust)?;
        Ok(Self { http, server, metadata, session: Uuid::new_v4().to_string() })
    }

    /// Runs a statement, and returns its first rows as a table.
    ///
    /// # Errors
    /// Spark or the gateway refuses it, with their words; it takes too long, or its result is too large.
    pub(super) async fn table(&self, statement: &str, rows: u32) -> Result<String, Error> {
        let answer = timeout(LONGEST, self.executed(statement, rows)).await;
        // This also ends a query that still runs. Releases before 4.0 don't know it, and end the session when it is idle.
        let release = proto::ReleaseSessionRequest { session_id: self.session.clone(), user_context: Some(user()) };
        let _ = timeout(RELEASE, self.call("ReleaseSession", &release)).await;
        let minutes = LONGEST.as_secs() / 60;
        answer.map_err(|_| Error::TimedOut(format!("the query was ended after {minutes} minutes")))?
    }

    async fn executed(&self, statement: &str, rows: u32) -> Result<String, Error> {
        let sql = proto::Relation { sql: Some(proto::Sql { query: statement.to_owned() }), show_string: None };
        let show = proto::ShowString {
            input: Some(Box::new(sql)),
            num_rows: i32::try_from(rows).unwrap_or(i32::MAX),
            truncate: LONGEST_VALUE,
        };
        let root = proto::Relation { sql: None, show_string: Some(Box::new(show)) };
        let request = proto::ExecutePlanRequest {
            session_id: self.session.clone(),
            user_context: Some(user()),
            plan: Some(proto::Plan { root: Some(root) }),
            client_type: Some(concat!("sparkgate/", env!("CARGO_PKG_VERSION")).to_owned()),
        };
        let unreadable = |cause: String| Error::NotUnderstood { action: ACTION.to_owned(), cause };
        let messages = self.call("ExecutePlan", &request).await?;
        for message in messages {
            let response =
                proto::ExecutePlanResponse::decode(message).map_err(|error| unreadable(error.to_string()))?;
            if let Some(batch) = response.arrow_batch {
                return arrow::first_text(&batch.data).ok_or_else(|| unreadable("the result is no text".to_owned()));
            }
        }
        Err(unreadable("it has no result".to_owned()))
    }

    /// Makes a call, and returns the messages of its response.
    async fn call(&self, method: &str, request: &impl Message) -> Result<Vec<Bytes>, Error> {
        let broken = |cause: String| Error::Broken { action: ACTION.to_owned(), cause };
        let url = format!("{}/spark.connect.SparkConnectService/{method}", self.server);
        let call = self.http.post(url).headers(self.metadata.clone()).header(header::CONTENT_TYPE, GRPC);
        let call = call.header(header::TE, "trailers").body(framed(request));
        let response = call.send().await.map_err(|error| broken(root(&error)))?;
        let status = response.status();
        if !status.is_success() {
            return Err(broken(format!("{} answered {status}", self.server)));
        }
        let (head, mut body) = http::Response::<reqwest::Body>::from(response).into_parts();
        // A refusal has only headers.
        let mut ended = status_of(&head.headers);
        let mut data = BytesMut::new();
        while let Some(frame) = body.frame().await {
            match frame.map_err(|error| broken(root(&error)))?.into_data() {
                Ok(more) => data.extend_from_slice(&more),
                Err(frame) => ended = ended.or_else(|| frame.trailers_ref().and_then(status_of)),
            }
            if data.len() > LARGEST {
                return Err(Error::Here(
                    "the result is too large: select fewer or shorter columns, or fewer rows".to_owned(),
                ));
            }
        }
        match ended {
            Some((0, _)) => messages(data.freeze()).ok_or_else(|| broken("a message is cut off".to_owned())),
            Some((code, message)) => Err(Error::Here(format!("{message} (gRPC status {code})"))),
            None => Err(broken("the response has no status".to_owned())),
        }
    }
}

/// Returns what the client claims to be: it changes no right.
fn user() -> proto::UserContext {
    proto::UserContext { user_id: "sparkgate-mcp".to_owned() }
}

/// Reads a connection string: the server, and the parameters that become metadata.
fn parse(url: &str) -> Option<(Server, HeaderMap)> {
    let (host, parameters) = url.strip_prefix("sc://")?.split_once('/').unwrap_or((url.strip_prefix("sc://")?, ""));
    let mut metadata = HeaderMap::new();
    let mut scheme = "http";
    for parameter in parameters.split(';').filter(|parameter| !parameter.is_empty()) {
        match parameter.split_once('=')? {
            ("use_ssl", value) => scheme = if value == "true" { "https" } else { "http" },
            ("token" | "user_id" | "session_id" | "user_agent", _) => {}
            (name, value) => {
                metadata.insert(http::HeaderName::try_from(name).ok()?, HeaderValue::from_str(value).ok()?);
            }
        }
    }
    Some((format!("{scheme}://{host}").parse().ok()?, metadata))
}

/// Returns a message as gRPC sends it: not compressed, with its length.
fn framed(message: &impl Message) -> Vec<u8> {
    let message = message.encode_to_vec();
    let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
    [&[0], &length.to_be_bytes()[..], &message].concat()
}

/// Takes the messages of a response apart. `None` if one is compressed or cut off.
fn messages(mut data: Bytes) -> Option<Vec<Bytes>> {
    let mut messages = Vec::new();
    while !data.is_empty() {
        let is_compressed = data.try_get_u8().ok()? != 0;
        let length = usize::try_from(data.try_get_u32().ok()?).ok()?;
        if is_compressed || length > data.len() {
            return None;
        }
        messages.push(data.split_to(length));
    }
    Some(messages)
}

/// Returns the status in headers or trailers, with its message.
fn status_of(headers: &HeaderMap) -> Option<(u32, String)> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let code = text("grpc-status").parse().ok()?;
    Some((code, percent_decode(text("grpc-message").as_bytes()).decode_utf8_lossy().into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_string_is_a_server_and_metadata() {
        let (server, metadata) =
            parse("sc://c.example:443/;use_ssl=true;token=x;x-sparkgate-session=driver-1").unwrap();
        assert_eq!((server.to_string(), metadata.len()), ("https://c.example:443".to_owned(), 1));
        assert_eq!(metadata["x-sparkgate-session"], "driver-1");
        assert_eq!(parse("sc://localhost:15002").unwrap().0.to_string(), "http://localhost:15002");
        for wrong in ["http://c.example", "sc://", "sc://c.example/;a"] {
            assert!(parse(wrong).is_none(), "{wrong}");
        }
        let token = Some(SecretString::from("sg_x"));
        assert!(Remote::new("sc://c.example:15002/;a=b", token, &Trust::default()).is_err(), "a token without TLS");
    }

    #[test]
    fn messages_have_their_lengths() {
        let sent = framed(&proto::Sql { query: "SELECT 1".to_owned() });
        let two = Bytes::from([sent.clone(), sent].concat());
        let read = messages(two.clone()).unwrap();
        assert_eq!(read.len(), 2);
        assert_eq!(proto::Sql::decode(read[0].clone()).unwrap().query, "SELECT 1");
        assert_eq!(messages(two.slice(..two.len() - 1)), None);
    }
}
