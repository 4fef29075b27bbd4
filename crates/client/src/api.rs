//! HTTP calls to the gateway, with retries where they are safe and may help.

mod call;

use std::{mem, time::Duration};

use bytes::Bytes;
use reqwest::{
    Body, Client, Response, StatusCode,
    header::{self, HeaderMap, HeaderValue},
};
use secrecy::{ExposeSecret, SecretString};
use tokio::time::{sleep, timeout};

use super::{
    backoff::{self, Miss},
    connection::Connection,
    error::{Error, root},
    options::Gateway,
    problem::Problem,
    screen::note,
    server::Server,
    tokens::{Origin, Tokens},
    transport,
};
pub(super) use call::Call;

/// The shortest pause before a retry that the user is informed of.
const LONG: Duration = Duration::from_secs(1);

/// The connection to a gateway.
#[derive(Debug)]
pub(super) struct Api {
    server: Server,
    http: Client,
    tokens: Tokens,
}

/// A successful response with its whole body.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

/// The error of one try, and whether a retry may help.
struct Failed {
    error: Error,
    miss: Option<Miss>,
}

impl Api {
    /// Creates a client for the gateway of a command.
    ///
    /// # Errors
    /// The settings, the contexts, the certificates or the token can't be used; or the token would be sent over plain HTTP.
    pub(super) fn new(gateway: &Gateway) -> Result<Self, Error> {
        let connection = Connection::of(gateway)?;
        let tokens = Tokens::of(gateway, &connection)?;
        check_privacy(&connection.server, &tokens)?;
        Self::with(&connection, tokens)
    }

    /// Returns a client of the same gateway with the token of a caller.
    ///
    /// # Errors
    /// The token would be sent over plain HTTP.
    pub(super) fn for_caller(&self, token: Option<SecretString>) -> Result<Self, Error> {
        let origin = Origin::Setting("the request's Authorization header");
        let tokens = token.map_or(Tokens::None, |token| Tokens::Text { token, origin });
        check_privacy(&self.server, &tokens)?;
        Ok(Self { server: self.server.clone(), http: self.http.clone(), tokens })
    }

    /// Creates a client that sends no token.
    ///
    /// # Errors
    /// The certificates can't be used.
    pub(super) fn without_token(connection: &Connection) -> Result<Self, Error> {
        Self::with(connection, Tokens::None)
    }

    fn with(connection: &Connection, tokens: Tokens) -> Result<Self, Error> {
        let http = transport::client(&connection.server, &connection.trust)?;
        Ok(Self { server: connection.server.clone(), http, tokens })
    }

    /// Returns the token's source.
    pub(super) fn tokens(&self) -> &Tokens {
        &self.tokens
    }

    /// Makes a call and reads the whole response.
    ///
    /// # Errors
    /// The gateway can't be reached or is overloaded, also after retries; or it refuses the request, which is not retried.
    pub(super) async fn send(&self, call: &Call) -> Result<Answer, Error> {
        let mut retries = Retries::of(call);
        loop {
            match self.answered(call).await {
                Ok(answer) => return Ok(answer),
                Err(failed) => retries.pause_after(failed).await?,
            }
        }
    }

    /// Makes a call whose response is read as it arrives.
    ///
    /// # Errors
    /// As [`Api::send`].
    pub(super) async fn open(&self, call: &Call) -> Result<Response, Error> {
        let mut retries = Retries::of(call);
        loop {
            match self.once(call).await {
                Ok(response) => return Ok(response),
                Err(failed) => retries.pause_after(failed).await?,
            }
        }
    }

    /// Makes a call with a body that `content` opens for each try.
    ///
    /// # Errors
    /// As [`Api::send`], and if the body can't be opened.
    pub(super) async fn upload(
        &self,
        call: &Call,
        content: impl AsyncFn() -> Result<Body, Error>,
    ) -> Result<(), Error> {
        let mut retries = Retries::of(call);
        loop {
            let body = content().await?;
            let uploaded = match self.once_with(call, body).await {
                Ok(response) => whole(call, response).await.map(drop),
                Err(failed) => Err(failed),
            };
            match uploaded {
                Ok(()) => return Ok(()),
                Err(failed) => retries.pause_after(failed).await?,
            }
        }
    }

    /// Makes a call that appends to an upload from `offset` on, up to `size`. If the connection breaks, `look` asks how much has arrived,
    /// and the upload continues there. The retries begin anew whenever more has arrived.
    ///
    /// # Errors
    /// As [`Api::send`], and if the body can't be opened.
    pub(super) async fn append(
        &self,
        call: &Call,
        look: &Call,
        mut offset: u64,
        size: u64,
        content: impl AsyncFn(u64) -> Result<Body, Error>,
    ) -> Result<(), Error> {
        let mut retries = Retries::of(call);
        loop {
            let part = call
                .clone()
                .header("content-length", HeaderValue::from(size.saturating_sub(offset)))
                .header("upload-offset", HeaderValue::from(offset))
                .header("upload-complete", HeaderValue::from_static("?1"));
            let body = content(offset).await?;
            let appended = match self.once_with(&part, body).await {
                Ok(response) => whole(&part, response).await.map(drop),
                Err(failed) => Err(failed),
            };
            let Err(mut failed) = appended else { return Ok(()) };
            // Another client uploads the same file, or the gateway has recorded more, or less, than it had answered.
            let elsewhere = match &failed.error {
                Error::Problem(problem) if problem.status == 409 => problem.upload_offset,
                _ => None,
            };
            if elsewhere.is_some() {
                failed.miss = Some(Miss::Broken);
            }
            retries.pause_after(failed).await?;
            let arrived = match elsewhere {
                Some(arrived) => arrived,
                None => match self.send(look).await {
                    Ok(_) => return Ok(()),
                    Err(Error::Problem(problem)) if problem.status == 404 => problem.upload_offset.unwrap_or(0),
                    Err(error) => return Err(error),
                },
            };
            if arrived > offset {
                retries = Retries::of(call);
            }
            offset = arrived;
        }
    }

    async fn answered(&self, call: &Call) -> Result<Answer, Failed> {
        let mut response = self.once(call).await?;
        let headers = mem::take(response.headers_mut());
        Ok(Answer { headers, body: whole(call, response).await? })
    }

    async fn once(&self, call: &Call) -> Result<Response, Failed> {
        self.once_with(call, call.body.clone().into()).await
    }

    async fn once_with(&self, call: &Call, body: Body) -> Result<Response, Failed> {
        let url = format!("{}{}", self.server, call.path);
        let mut request = self.http.request(call.method.clone(), url).header(header::ACCEPT, call.accept);
        for (name, value) in &call.headers {
            request = request.header(*name, value);
        }
        if let Some((token, origin)) = self.tokens.current().await.map_err(|error| Failed { error, miss: None })? {
            let token = authorized(&token, origin).map_err(|error| Failed { error, miss: None })?;
            request = request.header(header::AUTHORIZATION, token);
        }
        let response = match timeout(call.patience, request.body(body).send()).await {
            Err(_) => return Err(broken(call, format!("no response within {} seconds", call.patience.as_secs()))),
            Ok(Ok(response)) => response,
            Ok(Err(error)) if error.is_connect() => {
                let error = Error::NoGateway { server: self.server.clone(), cause: self.unreachable(&root(&error)) };
                return Err(Failed { error, miss: Some(Miss::NoConnection) });
            }
            Ok(Err(error)) if error.is_builder() => {
                let error =
                    Error::Here(format!("{}: the URL {} can't be used: {}", call.action, self.server, root(&error)));
                return Err(Failed { error, miss: None });
            }
            Ok(Err(error)) => return Err(broken(call, root(&error))),
        };
        if response.status().is_success() { Ok(response) } else { Err(self.refused(call, response).await) }
    }

    /// Returns why no connection could be made. The TLS library's words for a server without TLS don't help.
    fn unreachable(&self, cause: &str) -> String {
        if cause.contains("InvalidContentType") {
            let plain = self.server.to_string().replacen("https:", "http:", 1);
            return format!("the server there speaks HTTP without TLS: try {plain}");
        }
        cause.to_owned()
    }

    /// Reads the error from a response that is not a success.
    async fn refused(&self, call: &Call, mut response: Response) -> Failed {
        let (status, headers) = (response.status(), mem::take(response.headers_mut()));
        let body = match whole(call, response).await {
            Ok(body) => body,
            Err(failed) => return failed,
        };
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let mut problem = Problem::from_answer(status, &body, text("x-request-id"));
        if let (true, Some(place)) = (status.is_redirection(), text("location")) {
            problem.detail = format!("it points to {place}: give --server the URL of the gateway itself");
        }
        problem.upload_offset = text("upload-offset").and_then(|offset| offset.parse().ok());
        if status == StatusCode::UNAUTHORIZED {
            problem.advice = Some(self.tokens.advice());
        }
        // An unknown path, or an unknown version of Spark's protocol.
        let is_lost = problem.code.is_empty() && matches!(problem.status, 404 | 468);
        if let (true, Some(above)) = (is_lost, self.server.above_v1()) {
            problem.detail = format!("the URL {} ends in /v1, which this client adds itself: use {above}", self.server);
        }
        let busy = matches!(
            status,
            StatusCode::TOO_MANY_REQUESTS
                | StatusCode::BAD_GATEWAY
                | StatusCode::SERVICE_UNAVAILABLE
                | StatusCode::GATEWAY_TIMEOUT
        );
        let miss = busy.then(|| Miss::Busy(backoff::retry_after(text("retry-after"))));
        Failed { error: Error::Problem(Box::new(problem)), miss }
    }
}

/// Fails if there is a token, and others than the server could read it on its way.
fn check_privacy(server: &Server, tokens: &Tokens) -> Result<(), Error> {
    if tokens.origin().is_none() || server.is_private() {
        return Ok(());
    }
    Err(Error::Here(format!(
        "the token is not sent to {server}, because anyone on the way could read it there: use an https URL"
    )))
}

/// Returns the header with a token.
fn authorized(token: &SecretString, origin: &Origin) -> Result<HeaderValue, Error> {
    let mut value = HeaderValue::from_str(&format!("Bearer {}", token.expose_secret().trim()))
        .map_err(|_| Error::Here(format!("the token of {origin} has characters that no token has")))?;
    value.set_sensitive(true);
    Ok(value)
}

fn broken(call: &Call, cause: String) -> Failed {
    Failed { error: Error::Broken { action: call.action.clone(), cause }, miss: Some(Miss::Broken) }
}

async fn whole(call: &Call, response: Response) -> Result<Bytes, Failed> {
    match timeout(call.patience, response.bytes()).await {
        Ok(Ok(body)) => Ok(body),
        Ok(Err(error)) => Err(broken(call, root(&error))),
        Err(_) => Err(broken(call, format!("the response was incomplete after {} seconds", call.patience.as_secs()))),
    }
}

/// The retries of a call, until it succeeds or is refused, or until they are used up.
struct Retries<'a> {
    call: &'a Call,
    misses: u32,
}

impl<'a> Retries<'a> {
    fn of(call: &'a Call) -> Self {
        Self { call, misses: 0 }
    }

    /// Pauses before the next try.
    ///
    /// # Errors
    /// There is no next one.
    async fn pause_after(&mut self, failed: Failed) -> Result<(), Error> {
        let Failed { error, miss } = failed;
        self.misses += 1;
        let miss = miss.filter(|miss| self.call.is_repeatable || *miss == Miss::NoConnection);
        let pause = miss.and_then(|miss| backoff::pause(self.misses, miss, self.call.is_patient));
        let Some(pause) = pause else { return Err(error) };
        if pause >= LONG {
            note(&format!("{error}\n  retrying in {}s", pause.as_secs()));
        }
        sleep(pause).await;
        Ok(())
    }
}
