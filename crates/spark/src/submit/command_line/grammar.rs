//! The options of spark-submit, and the parser that splits a command line into them (`SparkSubmitOptionParser`).

use crate::{refusal::Refusal, version::SparkVersion};

/// The effect of an option on a driver on Kubernetes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// `key=value`.
    Conf,
    /// The launcher turns it into a `--conf` of this key, so a later `--conf` overrides it.
    ConfOf(&'static str),
    /// Sets this key, whatever any `--conf` says.
    Property(&'static str),
    /// As `Property`, for a list of URIs.
    Uris(&'static str),
    Master,
    Class,
    ProxyUser,
    DeployMode,
    TotalExecutorCores,
    /// For other cluster managers, for the terminal, or for something that is done anyway.
    Nothing,
    Refused(&'static str),
}

struct CliOption {
    name: &'static str,
    short: &'static str,
    takes_value: bool,
    since: SparkVersion,
    meaning: Meaning,
}

const fn valued(name: &'static str, meaning: Meaning) -> CliOption {
    CliOption { name, short: "", takes_value: true, since: SparkVersion::V3_5, meaning }
}

const fn switch(name: &'static str, short: &'static str, meaning: Meaning) -> CliOption {
    CliOption { name, short, takes_value: false, since: SparkVersion::V3_5, meaning }
}

const CLIENTS_FILE: Meaning = Meaning::Refused(
    "the file is on the client's machine and can't be read here. Send its content as sparkProperties, or ask the \
     operator for a named spark-defaults.conf (spark.sparkgate.defaults)",
);
const KILL: Meaning = Meaning::Refused("nothing would be submitted. Send POST /v1/submissions/kill/<id> instead");
const STATUS: Meaning = Meaning::Refused("nothing would be submitted. Send GET /v1/submissions/status/<id> instead");
const PRINTS: Meaning = Meaning::Refused("nothing would be submitted, and its output would be lost. Leave it out");

const OPTIONS: [CliOption; 37] = [
    valued("--archives", Meaning::Uris("spark.archives")),
    valued("--class", Meaning::Class),
    CliOption { short: "-c", ..valued("--conf", Meaning::Conf) },
    valued("--deploy-mode", Meaning::DeployMode),
    valued("--driver-class-path", Meaning::ConfOf("spark.driver.extraClassPath")),
    valued("--driver-cores", Meaning::Property("spark.driver.cores")),
    CliOption {
        since: SparkVersion::V4_0,
        ..valued("--driver-default-class-path", Meaning::ConfOf("spark.driver.defaultExtraClassPath"))
    },
    valued("--driver-java-options", Meaning::ConfOf("spark.driver.extraJavaOptions")),
    valued("--driver-library-path", Meaning::ConfOf("spark.driver.extraLibraryPath")),
    valued("--driver-memory", Meaning::ConfOf("spark.driver.memory")),
    valued("--exclude-packages", Meaning::Property("spark.jars.excludes")),
    valued("--executor-cores", Meaning::Property("spark.executor.cores")),
    valued("--executor-memory", Meaning::Property("spark.executor.memory")),
    CliOption { since: SparkVersion::V4_2, ..valued("--extra-properties-file", CLIENTS_FILE) },
    valued("--files", Meaning::Uris("spark.files")),
    valued("--jars", Meaning::Uris("spark.jars")),
    valued("--keytab", Meaning::Property("spark.kerberos.keytab")),
    valued("--kill", KILL),
    valued("--master", Meaning::Master),
    valued("--name", Meaning::Property("spark.app.name")),
    valued("--num-executors", Meaning::Property("spark.executor.instances")),
    valued("--packages", Meaning::Property("spark.jars.packages")),
    valued("--principal", Meaning::Property("spark.kerberos.principal")),
    valued("--properties-file", CLIENTS_FILE),
    valued("--proxy-user", Meaning::ProxyUser),
    valued("--py-files", Meaning::Uris("spark.submit.pyFiles")),
    valued("--queue", Meaning::Nothing),
    valued("--remote", Meaning::Refused("Remote cannot be specified with master and/or deploy mode.")),
    valued("--repositories", Meaning::Property("spark.jars.repositories")),
    valued("--status", STATUS),
    valued("--total-executor-cores", Meaning::TotalExecutorCores),
    switch("--help", "-h", PRINTS),
    CliOption { since: SparkVersion::V4_0, ..switch("--load-spark-defaults", "", Meaning::Nothing) },
    switch("--supervise", "", Meaning::Nothing),
    switch("--usage-error", "", PRINTS),
    switch("--verbose", "-v", Meaning::Nothing),
    switch("--version", "", PRINTS),
];

/// One option with its value (empty for a switch), or the application's resource. `at` is the argument's index in the line.
pub(super) enum Word<'a> {
    Option { at: usize, name: &'static str, meaning: Meaning, value: &'a str },
    Resource { at: usize, text: &'a str },
}

/// Reads a command line argument by argument.
pub(super) struct Words<'a> {
    line: &'a [String],
    next: usize,
    version: SparkVersion,
}

impl<'a> Words<'a> {
    pub(super) fn new(line: &'a [String], version: SparkVersion) -> Self {
        Self { line, next: 0, version }
    }

    /// Returns the arguments that have not been read: after the resource, these are the application's own arguments.
    pub(super) fn rest(&self) -> &'a [String] {
        self.line.get(self.next..).unwrap_or_default()
    }

    fn take(&mut self) -> Option<&'a str> {
        let word = self.line.get(self.next)?;
        self.next += 1;
        Some(word)
    }

    pub(super) fn next(&mut self) -> Result<Option<Word<'a>>, Refusal> {
        let at = self.next;
        let refused = |reason| Err(Refusal::field(super::field(at), reason));
        let Some(word) = self.take() else { return Ok(None) };
        let (name, joined) = split(word);
        let is_named = |option: &&CliOption| option.name == name || (option.short == name && !name.is_empty());
        let option = match OPTIONS.iter().filter(|option| option.since <= self.version).find(is_named) {
            Some(option) => option,
            None if name.starts_with('-') => {
                let joined = name.contains(char::is_whitespace);
                let hint = if joined { ". Each option and each value is an entry of its own in appArgs." } else { "" };
                return refused(format!("Unrecognized option: {name}{hint}"));
            }
            None => return Ok(Some(Word::Resource { at, text: name })),
        };
        let value = match (option.takes_value, joined) {
            (false, _) => "",
            (true, Some(value)) => value,
            (true, None) => match self.take() {
                Some(value) => value,
                None => return refused(format!("Missing argument for option '{name}'.")),
            },
        };
        Ok(Some(Word::Option { at, name: option.name, meaning: option.meaning, value }))
    }
}

/// Splits `--option=value` as the pattern `(--[^=]+)=(.+)` does: neither part is empty, and the value has no line break.
fn split(word: &str) -> (&str, Option<&str>) {
    let breaks_line = |c: char| matches!(c, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}');
    match word.split_once('=') {
        Some((name, value))
            if name.len() > 2 && name.starts_with("--") && !value.is_empty() && !value.contains(breaks_line) =>
        {
            (name, Some(value))
        }
        _ => (word, None),
    }
}
