//! Combines the command line, the variables and the file of settings: an option precedes a variable, a variable the file, and the
//! file the default.

use std::{
    ffi::{OsStr, OsString},
    fmt,
    path::PathBuf,
};

use clap::{Arg, ArgMatches, Args, Command, CommandFactory, FromArgMatches, builder::Resettable, parser::ValueSource};

use super::{
    cli::Cli,
    config_option::{FILE, is_reader},
    settings::{FileFault, Logs, SettingsFile},
};

/// The arguments of the program. They can be combined again with the file when it has changed.
#[derive(Clone)]
pub struct Arguments(Vec<OsString>);

/// The result of a combination.
pub struct Loaded {
    pub(super) cli: Cli,
    pub(super) settings: ResolvedSettings,
    pub(super) file: Option<PathBuf>,
    /// What is wrong with the file; only for the command that checks it.
    pub(super) faults: Vec<FileFault>,
    pub(super) arguments: Arguments,
}

/// The arguments can't be used.
#[derive(Debug)]
pub enum LoadError {
    /// The command line can't be used, or asks for help. The notes say which of its settings come from the file.
    CommandLine {
        error: clap::Error,
        notes: String,
    },
    File(FileFaults),
}

/// All faults of a file.
#[derive(Debug)]
pub struct FileFaults(Vec<FileFault>);

impl fmt::Display for FileFaults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let faults: Vec<_> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&faults.join("\n"))
    }
}

/// Where the value of a setting comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Origin {
    Flag,
    Variable(String),
    File { path: PathBuf, line: usize },
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag => f.write_str("flag"),
            Self::Variable(name) => f.write_str(name),
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Default => f.write_str("default"),
        }
    }
}

/// A setting with its value and its origin.
#[derive(Clone)]
pub(super) struct ResolvedSetting {
    pub(super) name: String,
    /// Empty if the setting isn't set and has no default.
    pub(super) values: Vec<String>,
    pub(super) origin: Origin,
    pub(super) is_secret: bool,
}

/// All settings of a command.
#[derive(Clone, Default)]
pub(super) struct ResolvedSettings(pub(super) Vec<ResolvedSetting>);

impl ResolvedSettings {
    /// Returns the value of a setting that has one.
    pub(super) fn value(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|setting| setting.name == name)?.values.first().map(String::as_str)
    }

    /// Returns the names of settings whose values differ.
    pub(super) fn changes<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = &'a str> {
        let pairs = self.0.iter().zip(&other.0);
        pairs.filter(|(one, other)| one.values != other.values).map(|(one, _)| one.name.as_str())
    }

    /// Returns a note for each option in a text whose value comes from the file: a message names options.
    pub(super) fn notes(&self, text: &str) -> String {
        let mentioned = |name: &str| {
            let option = format!("--{name}");
            let mut found = text.match_indices(&option).map(|(at, _)| &text[at + option.len()..]);
            found.any(|after| !after.starts_with(|next: char| next == '-' || next.is_ascii_alphanumeric()))
        };
        let from_file = self.0.iter().filter(|setting| matches!(setting.origin, Origin::File { .. }));
        let notes = from_file.filter(|setting| mentioned(&setting.name));
        notes.map(|setting| format!("\n  {}: `{}` is set here", setting.origin, setting.name)).collect()
    }
}

/// Returns the options of a command that are settings.
pub(super) fn options(command: &Command) -> Vec<Arg> {
    let logs = Logs::augment_args(Command::new("log"));
    let own = command.get_arguments().filter(|option| option.get_env().is_some() && option.get_id() != FILE);
    let own: Vec<_> = own.cloned().collect();
    let logs = logs.get_arguments().filter(|log| own.iter().all(|option| option.get_id() != log.get_id())).cloned();
    own.iter().cloned().chain(logs).collect()
}

impl Arguments {
    pub fn new(arguments: impl IntoIterator<Item = OsString>) -> Self {
        Self(arguments.into_iter().collect())
    }

    /// Combines the arguments with the variables and the file.
    ///
    /// # Errors
    /// [`LoadError`]. For `config check`, faults of the file are no error but part of the result.
    pub fn load(self) -> Result<Loaded, LoadError> {
        let mut program = Cli::command();
        program.build();
        let nothing =
            Resolved { inserted: Vec::new(), settings: ResolvedSettings(Vec::new()), file: None, faults: Vec::new() };
        let Some(given) = given(&self.0) else { return self.parse(nothing) };
        let names = path(&given);
        let command = names.iter().try_fold(&program, |command, name| command.find_subcommand(name));
        let (Some(command), Some(serve)) = (command, program.find_subcommand("serve")) else {
            return self.parse(nothing);
        };
        if !names.first().is_some_and(|name| is_reader(name)) {
            return self.parse(nothing);
        }
        let resolved = Resolved::new(command, serve, deepest(&given));
        if !resolved.faults.is_empty() && names != ["config", "check"] {
            return Err(LoadError::File(FileFaults(resolved.faults)));
        }
        self.parse(resolved)
    }

    /// Parses the arguments, with those of the file after the name of the command.
    fn parse(self, resolved: Resolved) -> Result<Loaded, LoadError> {
        let Resolved { inserted, settings, file, faults } = resolved;
        let mut arguments = self.0.clone();
        if !inserted.is_empty() {
            let names = |arguments: &[OsString]| {
                given(arguments).map(|given| path(&given).into_iter().map(str::to_owned).collect::<Vec<_>>())
            };
            let all = names(&arguments);
            let end = (1..arguments.len()).find(|end| names(&arguments[..*end]) == all).unwrap_or(arguments.len());
            arguments.splice(end..end, inserted);
        }
        let failed = |error: clap::Error| {
            let notes = settings.notes(&error.to_string());
            LoadError::CommandLine { error: error.format(&mut Cli::command()), notes }
        };
        let mut matches = without_empty(Cli::command()).try_get_matches_from(arguments).map_err(failed)?;
        let cli = Cli::from_arg_matches_mut(&mut matches).map_err(failed)?;
        Ok(Loaded { cli, settings, file, faults, arguments: self })
    }
}

/// What a command line, the variables and a file say together.
struct Resolved {
    /// The arguments that stand for the settings of the file.
    inserted: Vec<OsString>,
    settings: ResolvedSettings,
    file: Option<PathBuf>,
    faults: Vec<FileFault>,
}

impl Resolved {
    fn new(command: &Command, serve: &Command, given: &ArgMatches) -> Self {
        let path = given.try_get_one::<PathBuf>(FILE).ok().flatten();
        let known = options(serve);
        let file = path.map(|path| SettingsFile::read(path, serve, &known));
        let (mut inserted, mut settings) = (Vec::new(), Vec::new());
        for option in options(command) {
            // The same setting may have another name in another command.
            let of_serve = known.iter().find(|known| known.get_env() == option.get_env());
            let name = of_serve.unwrap_or(&option).get_long().unwrap_or_default().to_owned();
            let variable = option.get_env().and_then(|name| Some((name, variable(name)?)));
            let entry = file.as_ref().and_then(|file| Some((file, file.entry(&name)?)));
            let (origin, values) = if let Some(values) = on_command_line(given, &option) {
                (Origin::Flag, values)
            } else if let Some((variable, value)) = variable {
                (Origin::Variable(lossy(variable)), vec![lossy(&value)])
            } else if let Some((file, entry)) = entry {
                inserted.extend(entry.arguments(&option).into_iter().map(OsString::from));
                (Origin::File { path: file.path.clone(), line: entry.line }, entry.values.clone())
            } else {
                (Origin::Default, option.get_default_values().iter().map(|value| lossy(value)).collect())
            };
            let is_secret = option.is_hide_env_values_set();
            settings.push(ResolvedSetting { name, values, origin, is_secret });
        }
        let faults = file.map(|file| file.faults).unwrap_or_default();
        Self { inserted, settings: ResolvedSettings(settings), file: path.cloned(), faults }
    }
}

/// Returns the values of an option that the command line has.
fn on_command_line(given: &ArgMatches, option: &Arg) -> Option<Vec<String>> {
    let id = option.get_id().as_str();
    let values = given.try_get_raw(id).ok()??;
    let is_given = given.value_source(id) == Some(ValueSource::CommandLine);
    is_given.then(|| values.map(lossy).collect())
}

/// Returns what the arguments alone say, as far as they can be understood; `None` if they ask for help.
fn given(arguments: &[OsString]) -> Option<ArgMatches> {
    without_empty(Cli::command()).ignore_errors(true).try_get_matches_from(arguments).ok()
}

/// Returns the value of a variable that isn't empty: Compose and Helm set those that have no value.
fn variable(name: &OsStr) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// Takes empty variables for variables that aren't set.
fn without_empty(command: Command) -> Command {
    command
        .mut_args(|option| match option.get_env() {
            Some(name) if std::env::var_os(name).is_some_and(|value| value.is_empty()) => {
                option.env(Resettable::<clap::builder::OsStr>::Reset)
            }
            _ => option,
        })
        .mut_subcommands(without_empty)
}

/// Returns the names of the command and its subcommands.
fn path(mut matches: &ArgMatches) -> Vec<&str> {
    let mut names = Vec::new();
    while let Some((name, inner)) = matches.subcommand() {
        names.push(name);
        matches = inner;
    }
    names
}

/// Returns the matches of the innermost command.
fn deepest(mut matches: &ArgMatches) -> &ArgMatches {
    while let Some((_, inner)) = matches.subcommand() {
        matches = inner;
    }
    matches
}

fn lossy(text: &OsStr) -> String {
    text.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests;
