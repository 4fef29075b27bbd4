//! `sparkgate render`: what would be created for a request, without creating it. No database, no cluster.

use std::io::{Read, Write};

use chrono::Utc;
use serde_json::Value;

use sparkgate_policy::Policy;
use sparkgate_service::{PreparedSubmission, SparkSettings};
use sparkgate_spark::{
    CreateSubmissionRequest, DriverObjects, Refusal, keys,
    rest::{RequestError, parse_partial},
};

/// Errors of [`render`] and [`run`].
#[derive(Debug, thiserror::Error)]
pub enum RenderError {
    /// The input isn't a request.
    #[error("the request on standard input can't be read")]
    Input(#[from] RequestError),
    #[error("an object can't be written as JSON")]
    Output(#[from] serde_json::Error),
    /// The request is refused, as it would be over HTTP.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The driver breaks rules of the policy. They were written to the notes.
    #[error("the policy refuses the driver: {0} violations")]
    Policy(usize),
    #[error("standard input or output failed")]
    Io(#[from] std::io::Error),
}

/// Renders one request (Spark's `CreateSubmissionRequest` as JSON) into a Kubernetes `List` in the order of creation:
/// the driver pod, what its feature steps add, the main `ConfigMap`.
///
/// Names are generated anew for each call.
///
/// # Errors
/// [`RenderError::Input`] and [`RenderError::Refused`].
pub fn render(input: &[u8], settings: &SparkSettings) -> Result<Value, RenderError> {
    let (request, _) = parse_partial(input, settings.lines.newest())?;
    Ok(driver(request, settings)?.to_list()?)
}

/// Builds the driver of a request, with newly generated names.
///
/// # Errors
/// [`Refusal`].
pub fn driver(request: CreateSubmissionRequest, settings: &SparkSettings) -> Result<DriverObjects, Refusal> {
    built(request, settings).map(|(_, driver)| driver)
}

fn built(
    request: CreateSubmissionRequest,
    settings: &SparkSettings,
) -> Result<(PreparedSubmission, DriverObjects), Refusal> {
    let prepared = PreparedSubmission::new(request, settings)?;
    let submitted_at = Utc::now();
    let driver = prepared.build(settings, &prepared.names(submitted_at), submitted_at, &[])?;
    Ok((prepared, driver))
}

/// Runs the command: reads a request from `input` and writes its `List` to `output`. Writes fields and properties without
/// effect, which may be misspelt, to `notes`. (Over HTTP these are the reply's `unknownFields` and a line of the gateway's
/// log.) Writes there, too, which rules of `policy` the driver breaks.
///
/// # Errors
/// Those of [`render`], and failures of the streams.
pub fn run(
    mut input: impl Read,
    mut output: impl Write,
    mut notes: impl Write,
    settings: &SparkSettings,
    policy: Option<&Policy>,
) -> Result<(), RenderError> {
    let mut body = Vec::new();
    input.read_to_end(&mut body)?;
    let (request, unknown) = parse_partial(&body, settings.lines.newest())?;
    for field in &unknown {
        writeln!(notes, "sparkgate: note: {field}: a request has no such field")?;
    }
    for key in request.spark_properties.keys() {
        if let Some(warning) = keys::misspelt::warning(key) {
            writeln!(notes, "sparkgate: note: {warning}")?;
        } else if !key.starts_with("spark.") {
            writeln!(notes, "sparkgate: note: {key}: dropped because it doesn't begin with spark.")?;
        } else if !keys::is_known(key) && !key.starts_with("spark.sparkgate.") {
            writeln!(notes, "sparkgate: note: {key}: unknown to every Spark release")?;
        }
    }
    let (prepared, mut driver) = built(request, settings)?;
    let violations = policy.map(|policy| prepared.judge(policy, &mut driver, &[])).transpose()?.unwrap_or_default();
    for violation in &violations {
        writeln!(notes, "sparkgate: policy: {violation}")?;
    }
    writeln!(output, "{:#}", driver.to_list()?)?;
    if violations.is_empty() { Ok(()) } else { Err(RenderError::Policy(violations.len())) }
}
