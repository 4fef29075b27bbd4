//! Errors of commands and their exit codes.

use std::{fmt, io};

use super::{problem::Problem, server::Server};

#[derive(Debug)]
pub(super) enum Error {
    /// No connection could be made.
    NoGateway { server: Server, cause: String },
    /// The connection broke, or there was no response in time, also after retries.
    Broken { action: String, cause: String },
    /// The gateway, or a proxy in front of it, answered with an error.
    Problem(Box<Problem>),
    /// The response is a success, but not a document of a gateway.
    NotUnderstood { action: String, cause: String },
    /// Writing to standard output failed.
    Output(io::Error),
    /// No submission has this name.
    Unknown(String),
    /// `--timeout` has expired.
    TimedOut(String),
    /// A local error: a file of the command line, or the system's certificates.
    Here(String),
    /// The command line names a file that doesn't exist.
    NoFile(String),
}

impl Error {
    /// Returns whether a retry may succeed: the request was not refused.
    pub(super) fn is_passing(&self) -> bool {
        match self {
            Self::NoGateway { .. } | Self::Broken { .. } => true,
            Self::Problem(problem) => matches!(problem.status, 429 | 502 | 503 | 504),
            Self::NotUnderstood { .. }
            | Self::Output(_)
            | Self::Unknown(_)
            | Self::TimedOut(_)
            | Self::Here(_)
            | Self::NoFile(_) => false,
        }
    }

    /// Returns the exit code: 2 for a file of the command line that doesn't exist, 4 if the submission, executor or log doesn't exist,
    /// 124 for an expired timeout (as in `timeout(1)`), 0 if standard output was closed, otherwise 1.
    pub(super) fn exit_code(&self) -> u8 {
        match self {
            Self::Problem(problem) if problem.status == 404 && problem.code.ends_with("-not-found") => 4,
            Self::NoFile(_) => 2,
            Self::Unknown(_) => 4,
            Self::TimedOut(_) => 124,
            Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => 0,
            _ => 1,
        }
    }

    /// Returns whether the error is not printed: the reader of standard output has closed it.
    pub(super) fn is_silent(&self) -> bool {
        matches!(self, Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoGateway { server, cause } => write!(
                f,
                "no gateway answers at {server}: {cause}. Set its URL with --server or SPARKGATE_URL, or start a \
                 gateway on this machine with `sparkgate dev`"
            ),
            Self::Broken { action, cause } => write!(f, "{action}: the connection broke: {cause}"),
            Self::Problem(problem) => problem.fmt(f),
            Self::NotUnderstood { action, cause } => {
                write!(f, "{action}: the response is not one of a Sparkgate that this client knows: {cause}")
            }
            Self::Output(error) => write!(f, "writing to standard output: {error}"),
            Self::Unknown(what) | Self::TimedOut(what) | Self::Here(what) => f.write_str(what),
            Self::NoFile(path) => write!(
                f,
                "there is no file {path} on this machine. A file inside the image is local:///PATH; other URIs, such as https or s3a, are \
                 passed on"
            ),
        }
    }
}

impl From<io::Error> for Error {
    /// Converts an error of standard output, the only one that is converted with `?`.
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

/// Returns the innermost cause. The messages of the layers above it ("client error (Connect)") don't help.
pub(super) fn root(error: &(dyn std::error::Error + 'static)) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_code_depends_on_the_error() {
        let problem = |status, code: &str| {
            Error::Problem(Box::new(Problem { status, code: code.to_owned(), ..Problem::default() }))
        };
        assert_eq!(problem(404, "submission-not-found").exit_code(), 4);
        assert_eq!(problem(404, "not-found").exit_code(), 1, "a path that this gateway doesn't serve");
        assert_eq!(problem(400, "invalid-request").exit_code(), 1);
        assert_eq!(Error::TimedOut(String::new()).exit_code(), 124);
        let pipe = Error::Output(io::ErrorKind::BrokenPipe.into());
        assert!(pipe.is_silent() && pipe.exit_code() == 0);
        assert!(!Error::Output(io::ErrorKind::StorageFull.into()).is_silent(), "a full disk is reported");
    }

    #[test]
    fn refused_request_is_not_retried() {
        let problem = |status| Error::Problem(Box::new(Problem { status, ..Problem::default() }));
        assert!(problem(503).is_passing() && !problem(409).is_passing() && !problem(500).is_passing());
    }
}
