use clap::CommandFactory;

use super::*;
use crate::app::{Cli, arguments::options};

fn parse(text: &str) -> SettingsFile {
    let mut program = Cli::command();
    program.build();
    let serve = program.find_subcommand("serve").unwrap().clone();
    SettingsFile::parse(Path::new("s.toml"), text, &serve, &options(&serve))
}

#[track_caller]
fn faults(text: &str) -> Vec<String> {
    parse(text).faults.iter().map(ToString::to_string).collect()
}

#[test]
fn each_kind_of_value_is_what_the_option_takes() {
    let file = parse(
        "# a comment\nlisten = \"127.0.0.1:7000\"\ntrusted-network = true\noutcome-finalizer = false\n\
         max-retries = 1_000\nnamespaces = [\"a\", \"b\"]\nallowed-hosts = \"x,y\"\nretention = \"off\"\nlog = 'debug'\n",
    );
    assert_eq!(file.faults, []);
    let entries: Vec<_> = file.entries.iter().map(|entry| (&*entry.name, entry.line, entry.values.join("|"))).collect();
    let mut expected = vec![
        ("listen", 2, "127.0.0.1:7000".to_owned()),
        ("trusted-network", 3, "true".to_owned()),
        ("outcome-finalizer", 4, "false".to_owned()),
        ("max-retries", 5, "1000".to_owned()),
        ("namespaces", 6, "a|b".to_owned()),
        ("allowed-hosts", 7, "x,y".to_owned()),
        ("retention", 8, "off".to_owned()),
        ("log", 9, "debug".to_owned()),
    ];
    expected.sort();
    let mut entries = entries;
    entries.sort();
    assert_eq!(entries, expected);
}

#[test]
fn every_fault_is_named_with_its_place_and_a_remedy() {
    let text = "max_retires = 3\n\
                nonsense = 1\n\
                max-retries = \"many\"\n  trusted-network = \"true\"\n\
                log-format = \"xml\"\n\
                listen = [\"127.0.0.1:1\"]\n\
                [http]\nlisten = \"x\"\n";
    let faults = faults(text);
    let starts = [
        "s.toml:1:1: there is no setting `max_retires`: did you mean `max-retries`?",
        "s.toml:2:1: there is no setting `nonsense`: `sparkgate config show` lists all",
        "s.toml:3:15: invalid value 'many' for '--max-retries <MAX_RETRIES>': ",
        "s.toml:4:21: `trusted-network` expects true or false, without quotes",
        "s.toml:5:14: invalid value 'xml' for '--log-format <FORMAT>' [possible values: text, json]",
        "s.toml:6:10: `listen` expects a text in quotes, or a number",
        "s.toml:7:2: `http` is a table: write settings at the top of the file, without tables",
    ];
    assert_eq!(faults.len(), starts.len(), "{faults:#?}");
    for (fault, start) in faults.iter().zip(starts) {
        assert!(fault.starts_with(start), "{fault}\n{start}");
    }
}

#[test]
fn a_variable_s_name_leads_to_the_setting() {
    assert!(faults("SPARKGATE_DATABASE_URL = \"x\"").concat().contains("did you mean `database-url`?"));
}

#[test]
fn broken_toml_has_a_place() {
    let faults = faults("log = \"info\"\nlisten = \n");
    assert!(faults.concat().starts_with("s.toml:2:"), "{faults:?}");
}

#[test]
fn a_secret_is_not_quoted() {
    let faults = faults("database-url = [\"SEKRETPW\"]\n");
    assert!(!faults.is_empty() && !faults.concat().contains("SEKRETPW"), "{faults:?}");
}

#[test]
fn the_example_of_the_documentation_can_be_used() {
    let page = include_str!("../../../../docs/operate/operations.md");
    let example = page.split("```").find_map(|part| part.strip_prefix("toml\n")).unwrap();
    let file = parse(example);
    assert!(file.faults.is_empty() && file.entries.len() > 5, "{:?}", file.faults);
}
