//! The files that are written from the settings, and compared with them.

use std::{fmt::Write, fs, path::Path};

use clap::CommandFactory;
use serde_json::Value;

use super::{Setting, is_reloaded, schema, settings};
use crate::app::cli::Cli;

const BEGIN: &str = "<!-- The tables are written by `make settings` from src/app/settings. -->\n";

/// Returns the settings of the program.
fn all() -> Vec<Setting> {
    settings(&Cli::command())
}

/// Compares a file with what it should be, or writes it.
fn compare(file: &str, expected: impl FnOnce(&str) -> String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let expected = expected(&fs::read_to_string(&path).unwrap());
    if std::env::var_os("SPARKGATE_WRITE_DOCS").is_some() {
        fs::write(&path, &expected).unwrap();
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), expected, "{file}: run `make settings`");
}

/// Turns names of pages into links, and URLs in angle brackets into code.
fn linked(help: &str) -> String {
    let mut text = String::new();
    for (at, word) in help.split(' ').enumerate() {
        let (open, rest) = if let Some(rest) = word.strip_prefix('(') { ("(", rest) } else { ("", word) };
        let (page, end) = rest.split_at(rest.find(".md").map_or(0, |at| at + 3));
        let word = match page.strip_prefix("docs/") {
            Some(page) => format!("{open}[{}](../{page}){end}", page.rsplit('/').next().unwrap()),
            None => word.replace(['<', '>'], "`"),
        };
        let separator = if at == 0 { "" } else { " " };
        write!(text, "{separator}{}", word.replace('|', "\\|")).unwrap();
    }
    text
}

fn variable(setting: &Setting) -> &str {
    setting.option.get_env().unwrap().to_str().unwrap()
}

fn is_secret(setting: &Setting) -> bool {
    setting.option.is_hide_env_values_set()
}

fn section(setting: &Setting) -> &str {
    setting.option.get_help_heading().unwrap_or_default()
}

/// Returns the tables of the page, one for each section.
fn tables(settings: &[Setting]) -> String {
    let mut sections: Vec<&str> = Vec::new();
    for setting in settings {
        if !sections.contains(&section(setting)) {
            sections.push(section(setting));
        }
    }
    let mut text = String::new();
    for title in sections {
        write!(text, "\n## {title}\n\n| setting | default | meaning |\n|---|---|---|\n").unwrap();
        for setting in settings.iter().filter(|setting| section(setting) == title) {
            let Setting { name, otherwise, default, .. } = setting;
            let default = match (default.is_empty(), otherwise) {
                (false, _) => format!("`{}`", default.join(",")),
                (true, Some(otherwise)) => linked(otherwise),
                (true, None) => "–".to_owned(),
            };
            let (variable, meaning) = (variable(setting), linked(&setting.meaning()));
            writeln!(text, "| `{name}`<br>`{variable}` | {default} | {meaning} |").unwrap();
        }
    }
    text
}

#[test]
fn the_page_has_every_setting() {
    compare("docs/reference/settings.md", |page| {
        let (head, _) = page.split_once(BEGIN).unwrap();
        format!("{head}{BEGIN}{}", tables(&all()))
    });
}

#[test]
fn the_chart_has_the_settings_that_it_does_not_set_itself() {
    let deployment = include_str!("../../../charts/sparkgate/templates/deployment.yaml");
    let is_set = |setting: &Setting| deployment.contains(&format!("name: {}\n", variable(setting)));
    let mut settings = all();
    assert!(settings.iter().filter(|setting| is_set(setting)).count() > 10);
    settings.retain(|setting| !is_set(setting) && !is_secret(setting));
    compare("charts/sparkgate/values.schema.json", |text| {
        const BEGIN: &str = "\n    \"settings\": ";
        const END: &str = "\n    },\n";
        let (head, rest) = text.split_once(BEGIN).unwrap();
        let (_, tail) = rest.split_once(END).unwrap();
        let mut schema = schema(&settings);
        schema.as_object_mut().unwrap().retain(|key, _| !["$schema", "title"].contains(&key.as_str()));
        let schema = format!("{schema:#}").replace('\n', "\n    ");
        format!("{head}{BEGIN}{}{END}{tail}", schema.strip_suffix("\n    }").unwrap())
    });
    compare("charts/sparkgate/files/reloaded-settings.json", |_| {
        let reloaded = settings.iter().filter(|setting| is_reloaded(&setting.name));
        let names: Vec<Value> = reloaded.map(|setting| setting.name.as_str().into()).collect();
        format!("{:#}\n", Value::Array(names))
    });
}

#[test]
fn every_setting_has_a_section_and_a_default_or_an_example() {
    for setting in all() {
        let name = &setting.name;
        assert!(!section(&setting).is_empty(), "{name}: give its struct a `next_help_heading`");
        let is_tried = !setting.default.is_empty() || setting.example.is_some() || is_secret(&setting);
        assert!(is_tried, "{name}: name an example, `such as …`, in its doc comment");
        assert_eq!(variable(&setting), format!("SPARKGATE_{}", name.replace('-', "_").to_uppercase()));
    }
}
