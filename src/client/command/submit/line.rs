//! spark-submit's own options. They are sent as they are written, and the gateway reads them as the spark-submit of its
//! Spark does; here it is only known which there are, so that `--help` lists them and a slip is told at once.

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
}

/// Name, what its value is, help.
const VALUED: [(&str, &str, &str); 26] = [
    ("class", "CLASS", "The application's main class (Java, Scala)"),
    ("name", "NAME", "The application's name"),
    ("conf", "KEY=VALUE", "A Spark property; may be repeated"),
    ("jars", "URIS", "Jars for driver and executors, separated by commas"),
    ("packages", "COORDINATES", "Maven packages for driver and executors, separated by commas"),
    ("exclude-packages", "COORDINATES", "What --packages must not bring along"),
    ("repositories", "URLS", "More repositories for --packages"),
    ("py-files", "URIS", ".zip, .egg or .py files for the PYTHONPATH"),
    ("files", "URIS", "Files for the working directory of each executor"),
    ("archives", "URIS", "Archives to unpack there"),
    ("driver-memory", "SIZE", "Memory of the driver, such as 1024m or 2g"),
    ("driver-cores", "N", "Cores of the driver"),
    ("driver-java-options", "OPTIONS", "Options for the driver's JVM"),
    ("driver-library-path", "PATH", "Library path of the driver"),
    ("driver-class-path", "PATH", "Class path of the driver"),
    ("driver-default-class-path", "PATH", "Class path of the driver, behind the other (Spark 4)"),
    ("executor-memory", "SIZE", "Memory of each executor"),
    ("executor-cores", "N", "Cores of each executor"),
    ("num-executors", "N", "How many executors to start"),
    ("proxy-user", "USER", "The user to run as"),
    ("principal", "PRINCIPAL", "Kerberos principal"),
    ("keytab", "NAME", "Kerberos keytab"),
    ("master", "URL", "Best left out: the gateway knows its cluster"),
    ("deploy-mode", "MODE", "No effect: the driver always runs in the cluster"),
    ("queue", "NAME", "No effect: for YARN"),
    ("total-executor-cores", "N", "No effect: for standalone clusters"),
];

const SWITCHES: [(&str, &str); 3] = [
    ("supervise", "No effect: see --retries"),
    ("verbose", "No effect"),
    ("load-spark-defaults", "No effect: the gateway's defaults always count"),
];

/// What spark-submit has and this can't do, and what to do instead.
const ELSEWHERE: [(&str, &str); 4] = [
    ("kill", "nothing would be submitted: use `sparkgate kill ID`"),
    ("status", "nothing would be submitted: use `sparkgate status ID`"),
    ("remote", "a client of Spark Connect has no driver to submit"),
    ("extra-properties-file", "give all properties in one --properties-file, or as --conf"),
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
            .help("The application (a URI that the cluster can read, such as local:///opt/app.jar) and its arguments")
            .required(true)
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
    /// In the order in which they were given: of `--conf` and the options that stand for one, the last wins.
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
