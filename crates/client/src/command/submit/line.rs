//! spark-submit's own options. They are sent unchanged, and the gateway parses them as the spark-submit of its Spark
//! release does. The client only has their names, so that `--help` lists them and a misspelt option is an error at once.

use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches};

pub(super) const HEADING: &str = "Options of spark-submit";
const APPLICATION: &str = "application";

/// A spark-submit command line: options, the application, its arguments.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct CommandLine(Vec<String>);

impl CommandLine {
    pub(super) fn words(&self) -> &[String] {
        &self.0
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Creates a command line from words.
    pub(super) fn of(words: Vec<String>) -> Self {
        Self(words)
    }

    /// Returns the options, and the application with its arguments.
    pub(super) fn parts(&self) -> (&[String], &[String]) {
        let mut at = 0;
        while let Some(name) = self.0.get(at).and_then(|word| word.strip_prefix("--")) {
            at += if SWITCHES.iter().any(|(switch, _)| *switch == name) { 1 } else { 2 };
        }
        self.0.split_at(at.min(self.0.len()))
    }

    /// Returns whether an option is given.
    pub(super) fn has(&self, option: &str) -> bool {
        let (options, _) = self.parts();
        let mut words = options.iter();
        while let Some(word) = words.next() {
            let name = word.strip_prefix("--").unwrap_or(word);
            if name == option {
                return true;
            }
            if !SWITCHES.iter().any(|(switch, _)| *switch == name) {
                words.next();
            }
        }
        false
    }

    /// Returns the values of the options that have one, with their names, and the application.
    pub(super) fn values_mut(&mut self) -> (Vec<(String, &mut String)>, Option<&mut String>) {
        let mut values = Vec::new();
        let mut words = self.0.iter_mut();
        while let Some(word) = words.next() {
            let Some(name) = word.strip_prefix("--") else { return (values, Some(word)) };
            if SWITCHES.iter().any(|(switch, _)| *switch == name) {
                continue;
            }
            let name = name.to_owned();
            values.extend(words.next().map(|value| (name, value)));
        }
        (values, None)
    }
}

/// Name, value's name and help of each option with a value.
const VALUED: [(&str, &str, &str); 26] = [
    ("class", "CLASS", "The application's main class (Java, Scala)"),
    ("name", "NAME", "The application's name"),
    ("conf", "KEY=VALUE", "A Spark property; may be repeated"),
    ("jars", "URIS", "Jars for driver and executors, separated by commas; local files are uploaded"),
    ("packages", "COORDINATES", "Maven packages for driver and executors, separated by commas"),
    ("exclude-packages", "COORDINATES", "Maven packages to exclude from --packages"),
    ("repositories", "URLS", "Additional repositories for --packages"),
    ("py-files", "URIS", ".zip, .egg or .py files for the PYTHONPATH; local files are uploaded"),
    ("files", "URIS", "Files for the working directory of each executor; local files are uploaded"),
    ("archives", "URIS", "Archives to unpack in the working directory of each executor; local files are uploaded"),
    ("driver-memory", "SIZE", "Memory of the driver, such as 1024m or 2g"),
    ("driver-cores", "N", "Cores of the driver"),
    ("driver-java-options", "OPTIONS", "Options for the driver's JVM"),
    ("driver-library-path", "PATH", "Library path of the driver"),
    ("driver-class-path", "PATH", "Class path of the driver"),
    ("driver-default-class-path", "PATH", "Class path of the driver, after --driver-class-path (Spark 4)"),
    ("executor-memory", "SIZE", "Memory of each executor"),
    ("executor-cores", "N", "Cores of each executor"),
    ("num-executors", "N", "Number of executors"),
    ("proxy-user", "USER", "The user to run as"),
    ("principal", "PRINCIPAL", "Kerberos principal"),
    ("keytab", "NAME", "Kerberos keytab"),
    ("master", "URL", "Not needed: the gateway knows its cluster"),
    ("deploy-mode", "MODE", "No effect: the driver always runs in the cluster"),
    ("queue", "NAME", "No effect: for YARN"),
    ("total-executor-cores", "N", "No effect: for standalone clusters"),
];

const SWITCHES: [(&str, &str); 3] = [
    ("supervise", "Restart the driver whenever it fails"),
    ("verbose", "No effect"),
    ("load-spark-defaults", "No effect: the gateway's defaults always apply"),
];

/// Options of spark-submit that this command refuses, each with the reason or an alternative.
const ELSEWHERE: [(&str, &str); 4] = [
    ("kill", "nothing would be submitted: use `sparkgate kill ID`"),
    ("status", "nothing would be submitted: use `sparkgate status ID`"),
    ("remote", "a Spark Connect client has no driver to submit"),
    ("extra-properties-file", "put all properties into one --properties-file, or use --conf"),
];

impl Args for CommandLine {
    fn augment_args(command: Command) -> Command {
        let valued = VALUED.map(|(name, value, help)| {
            let option = option(name, help).action(ArgAction::Append).value_name(value).allow_hyphen_values(true);
            if name == "conf" { option.short('c') } else { option }
        });
        let switches = SWITCHES.map(|(name, help)| {
            let switch = option(name, help).action(ArgAction::SetTrue).overrides_with(name);
            if name == "verbose" { switch.short('v') } else { switch }
        });
        let elsewhere = ELSEWHERE.map(|(name, instead)| {
            let refuse = move |_: &str| Err::<String, _>(instead);
            option(name, "").hide(true).value_name("VALUE").value_parser(refuse)
        });
        let application = Arg::new(APPLICATION)
            .value_name("APP [ARGS]")
            .help("The application and its arguments: a local file, which is uploaded, or a URI that the cluster can read, such as local:///opt/app.jar")
            .num_args(1..)
            .trailing_var_arg(true);
        command.args(valued).args(switches).args(elsewhere).arg(application)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

fn option(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).help(help).help_heading(HEADING)
}

impl FromArgMatches for CommandLine {
    /// Collects the options in the order in which they were given, because the last of `--conf` and the options that stand
    /// for the same property wins.
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut options = Vec::new();
        for (name, ..) in VALUED {
            let places = matches.indices_of(name).into_iter().flatten();
            let values = matches.get_many::<String>(name).into_iter().flatten();
            options.extend(places.zip(values).map(|(place, value)| (place, name, value)));
        }
        options.sort_unstable();
        let mut words = Vec::new();
        for (name, _) in SWITCHES {
            words.extend((matches.get_flag(name)).then(|| format!("--{name}")));
        }
        for (_, name, value) in options {
            words.extend([format!("--{name}"), value.clone()]);
        }
        words.extend(matches.get_many::<String>(APPLICATION).into_iter().flatten().cloned());
        Ok(Self(words))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
