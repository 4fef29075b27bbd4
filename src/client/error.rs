//! Why a command did not do what it was asked for, and the exit code that tells scripts.

use std::{fmt, io};

use super::{problem::Problem, server::Server};

#[derive(Debug)]
pub(super) enum Error {
    /// Nobody took the connection.
    NoGateway { server: Server, cause: String },
    /// The connection broke, or nothing came in time; repeats too.
    Broken { action: String, cause: String },
    /// The gateway, or what answered in its place, said no.
    Problem(Box<Problem>),
    /// It said yes, and then something that is no answer of a gateway.
    NotUnderstood { action: String, cause: String },
    /// Standard output.
    Output(io::Error),
    /// `--timeout` is over.
    TimedOut(String),
    /// A file of the command line, the system's certificates.
    Here(String),
}

impl Error {
    /// Whether another try may go better: nobody said no.
    pub(super) fn is_passing(&self) -> bool {
        match self {
            Self::NoGateway { .. } | Self::Broken { .. } => true,
            Self::Problem(problem) => matches!(problem.status, 429 | 502 | 503 | 504),
            Self::NotUnderstood { .. } | Self::Output(_) | Self::TimedOut(_) | Self::Here(_) => false,
        }
    }

    /// 4 for a submission, executor or log that doesn't exist, 124 for a time that is over (as `timeout` has it), 0 for a reader that had enough, else 1.
    pub(super) fn exit_code(&self) -> u8 {
        match self {
            Self::Problem(problem) if problem.status == 404 && problem.code.ends_with("-not-found") => 4,
            Self::TimedOut(_) => 124,
            Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => 0,
            _ => 1,
        }
    }

    /// Whether there is nobody to tell it.
    pub(super) fn is_silent(&self) -> bool {
        matches!(self, Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoGateway { server, cause } => write!(
                f,
                "no gateway answers at {server}: {cause}. Name yours with --server URL or SPARKGATE_URL, or start one \
                 here with `sparkgate dev`"
            ),
            Self::Broken { action, cause } => write!(f, "{action}: the connection broke: {cause}"),
            Self::Problem(problem) => problem.fmt(f),
            Self::NotUnderstood { action, cause } => {
                write!(f, "{action}: the answer is not one of a Sparkgate that this client knows: {cause}")
            }
            Self::Output(error) => write!(f, "writing to standard output: {error}"),
            Self::TimedOut(what) | Self::Here(what) => f.write_str(what),
        }
    }
}

impl From<io::Error> for Error {
    /// Only standard output is written with `?`.
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

/// The innermost cause: what the layers above say of it ("client error (Connect)") helps nobody.
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
    fn exit_codes_tell_scripts_what_happened() {
        let problem = |status, code: &str| {
            Error::Problem(Box::new(Problem { status, code: code.to_owned(), ..Problem::default() }))
        };
        assert_eq!(problem(404, "submission-not-found").exit_code(), 4);
        assert_eq!(problem(404, "not-found").exit_code(), 1, "a path that this gateway doesn't serve");
        assert_eq!(problem(400, "invalid-request").exit_code(), 1);
        assert_eq!(Error::TimedOut(String::new()).exit_code(), 124);
        let pipe = Error::Output(io::ErrorKind::BrokenPipe.into());
        assert!(pipe.is_silent() && pipe.exit_code() == 0);
        assert!(!Error::Output(io::ErrorKind::StorageFull.into()).is_silent(), "a full disk is told");
    }

    #[test]
    fn only_what_nobody_refused_is_tried_again() {
        let problem = |status| Error::Problem(Box::new(Problem { status, ..Problem::default() }));
        assert!(problem(503).is_passing() && !problem(409).is_passing() && !problem(500).is_passing());
    }
}
