//! The commands in groups, for the help.

use clap::Subcommand;

use super::Command;

/// Each command, in the order of its group.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Work", &["submit", "rerun", "wait", "kill", "hold", "release", "requeue", "files", "connect", "session"]),
    (
        "Look",
        &[
            "list",
            "top",
            "jobs",
            "status",
            "logs",
            "diff",
            "open",
            "executors",
            "attempts",
            "manifest",
            "events",
            "usage",
            "mcp",
        ],
    ),
    ("Sign in", &["login", "logout", "whoami", "context", "token"]),
    (
        "Operate",
        &[
            "queue",
            "webhook",
            "audit",
            "doctor",
            "config",
            "admission",
            "bootstrap-key",
            "migrate",
            "adopt-cluster",
            "release-finalizers",
            "prune-audit",
            "rotate-installation-key",
            "healthcheck",
        ],
    ),
    ("Serve", &["dev", "serve", "sandbox", "render", "openapi", "completions"]),
];

/// The template of the program's help.
pub(super) fn template() -> String {
    let commands = Command::augment_subcommands(clap::Command::new("sparkgate"));
    let about = |name: &str| {
        let about = commands.find_subcommand(name).and_then(clap::Command::get_about).map(ToString::to_string);
        let about = about.unwrap_or_default();
        about.split(". ").next().unwrap_or_default().to_owned()
    };
    let width = GROUPS.iter().flat_map(|(_, names)| *names).map(|name| name.len()).max().unwrap_or(0);
    let mut text = "{about-with-newline}\n{usage-heading} {usage}\n".to_owned();
    for (title, names) in GROUPS {
        text += &format!("\n{title}:\n");
        for name in names {
            text += &format!("  {name:width$}  {}\n", about(name));
        }
    }
    text + "\n`sparkgate help COMMAND` has all of a command.\n\n{options}"
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_command_is_in_one_group() {
        let commands = Command::augment_subcommands(clap::Command::new("sparkgate"));
        let all: BTreeSet<&str> = commands.get_subcommands().map(clap::Command::get_name).collect();
        let grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        assert_eq!(grouped.iter().copied().collect::<BTreeSet<_>>(), all);
        assert_eq!(grouped.len(), all.len(), "one is in two groups");
        assert!(template().contains("  submit                   Submit an application"), "{}", template());
    }
}
