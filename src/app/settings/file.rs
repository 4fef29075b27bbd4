//! The file of settings, `sparkgate.toml`. Its keys are the long names of the options of `serve`, and its values are parsed as
//! those of the options are: a setting is defined once.

use std::{
    fmt, fs,
    path::{Path, PathBuf},
};

use clap::{Arg, ArgAction, Command, error::ErrorKind};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use sparkgate_web::suggest::closest;

/// A file of settings.
pub(in crate::app) struct SettingsFile {
    pub(in crate::app) path: PathBuf,
    /// The settings that can be used.
    pub(in crate::app) entries: Vec<Entry>,
    pub(in crate::app) faults: Vec<FileFault>,
}

/// A setting of a file.
pub(in crate::app) struct Entry {
    /// The long name of the option, without dashes.
    pub(in crate::app) name: String,
    /// The values as texts; more than one only if the option takes a list.
    pub(in crate::app) values: Vec<String>,
    pub(in crate::app) line: usize,
}

/// What is wrong at one place of a file, with what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::app) struct FileFault {
    path: PathBuf,
    /// Line and column; `None` if the file can't be read.
    place: Option<(usize, usize)>,
    message: String,
}

/// Writes a fault as compilers do: `FILE:LINE:COLUMN: message`.
impl fmt::Display for FileFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, place, message } = self;
        match place {
            Some((line, column)) => write!(f, "{}:{line}:{column}: {message}", path.display()),
            None => write!(f, "{}: {message}", path.display()),
        }
    }
}

impl SettingsFile {
    /// Reads a file. `command` is the one whose options are the settings, `known` these options.
    pub(in crate::app) fn read(path: &Path, command: &Command, known: &[Arg]) -> Self {
        match fs::read_to_string(path) {
            Ok(text) => Self::parse(path, &text, command, known),
            Err(error) => {
                let message = format!("the file of settings can't be read: {error}");
                let fault = FileFault { path: path.to_owned(), place: None, message };
                Self { path: path.to_owned(), entries: Vec::new(), faults: vec![fault] }
            }
        }
    }

    fn parse(path: &Path, text: &str, command: &Command, known: &[Arg]) -> Self {
        let (mut entries, mut faults) = (Vec::new(), Vec::new());
        let mut fault = |at: usize, message: String| {
            faults.push(FileFault { path: path.to_owned(), place: Some(place(text, at)), message });
        };
        let (table, errors) = DeTable::parse_recoverable(text);
        for error in &errors {
            fault(error.span().map_or(0, |span| span.start), error.message().to_owned());
        }
        for (key, value) in table.get_ref() {
            let name = key.get_ref();
            let Some(option) = known.iter().find(|option| option.get_long() == Some(name)) else {
                fault(key.span().start, unknown(name, value.get_ref(), known));
                continue;
            };
            let line = place(text, key.span().start).0;
            let entry = values(option, value).map(|values| Entry { name: name.to_string(), values, line });
            match entry.and_then(|entry| tried(command, option, entry)) {
                Ok(entry) => entries.push(entry),
                // A value that the parser of TOML has replaced is reported above.
                Err(_) if !errors.is_empty() => {}
                Err(message) => fault(value.span().start, message),
            }
        }
        faults.sort_by_key(|fault| fault.place);
        Self { path: path.to_owned(), entries, faults }
    }

    /// Returns the setting of this name.
    pub(in crate::app) fn entry(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.name == name)
    }
}

impl Entry {
    /// Returns the arguments of a command line that set an option to these values.
    pub(in crate::app) fn arguments(&self, option: &Arg) -> Vec<String> {
        let name = option.get_long().unwrap_or(&self.name);
        match option.get_action() {
            ArgAction::SetTrue if self.values == ["true"] => vec![format!("--{name}")],
            ArgAction::SetTrue => Vec::new(),
            _ => self.values.iter().map(|value| format!("--{name}={value}")).collect(),
        }
    }
}

/// Returns line and column of a byte of a text, both counted from 1.
fn place(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line = before.rsplit('\n').next().unwrap_or_default();
    (before.matches('\n').count() + 1, line.chars().count() + 1)
}

fn unknown(name: &str, value: &DeValue<'_>, known: &[Arg]) -> String {
    if value.is_table() {
        return format!("`{name}` is a table: write settings at the top of the file, without tables");
    }
    let names: Vec<&str> = known.iter().filter_map(|option| option.get_long()).collect();
    let plain = name.to_lowercase().replace('_', "-");
    match closest(plain.strip_prefix("sparkgate-").unwrap_or(&plain), &names) {
        Some(near) => format!("there is no setting `{name}`: did you mean `{near}`?"),
        None => format!("there is no setting `{name}`: `sparkgate config show` lists all"),
    }
}

/// Returns a value of the file as texts for an option.
fn values(option: &Arg, value: &Spanned<DeValue<'_>>) -> Result<Vec<String>, String> {
    let takes_bool = matches!(option.get_action(), ArgAction::SetTrue)
        || option.get_possible_values().iter().map(|value| value.get_name()).eq(["true", "false"]);
    let takes_list = option.get_value_delimiter().is_some();
    let expected = match (takes_bool, takes_list) {
        (true, _) => "true or false, without quotes",
        (_, true) => "a text in quotes, or a list of them in brackets",
        _ => "a text in quotes, or a number",
    };
    let text = |value: &DeValue<'_>| match value {
        DeValue::String(text) if !takes_bool => Some(text.to_string()),
        DeValue::Integer(number) if !takes_bool => {
            Some(i64::from_str_radix(number.as_str(), number.radix()).ok()?.to_string())
        }
        DeValue::Float(number) if !takes_bool => Some(number.as_str().to_owned()),
        DeValue::Boolean(value) if takes_bool => Some(value.to_string()),
        _ => None,
    };
    let texts = match value.get_ref() {
        DeValue::Array(list) if takes_list => list.iter().map(|value| text(value.get_ref())).collect(),
        value => text(value).map(|text| vec![text]),
    };
    let name = option.get_long().unwrap_or_default();
    texts.ok_or_else(|| format!("`{name}` expects {expected}"))
}

/// Lets the parser of the option try the values.
fn tried(command: &Command, option: &Arg, entry: Entry) -> Result<Entry, String> {
    let line = [command.get_name().to_owned()].into_iter().chain(entry.arguments(option));
    match command.clone().mut_args(|option| option.env(None::<&str>)).try_get_matches_from(line) {
        // It may need others, which come from elsewhere.
        Err(error) if error.kind() != ErrorKind::MissingRequiredArgument => {
            Err(match option.is_hide_env_values_set() {
                true => format!("`{}` can't be used", entry.name),
                false => reason(&error),
            })
        }
        _ => Ok(entry),
    }
}

/// Returns what clap says is wrong, without what it adds for a command line.
pub(in crate::app) fn reason(error: &clap::Error) -> String {
    let text = error.to_string();
    let what = text.split("\n\n").next().unwrap_or_default();
    let what = what.strip_prefix("error: ").unwrap_or(what);
    what.lines().map(str::trim).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
