//! Describes the settings from the options of `serve`: as a JSON Schema, which the chart contains, and in the page
//! `docs/reference/settings.md`. `make settings` writes both.

#[cfg(test)]
mod written;

use std::any::TypeId;

use clap::{Arg, ArgAction, Command};
use serde_json::{Map, Value, json};

use super::{arguments::options, settings::is_reloaded};

/// What precedes an example in the help of an option, and its default if that isn't a value.
const EXAMPLE: &str = "such as ";
const DEFAULT: &str = "[default: ";

/// The notations of values, by the names that they have in the help: a regular expression.
const NOTATIONS: [(&str, &str); 11] = [
    ("ADDR", ":[0-9]+$"),
    ("CIDR", "^[0-9a-fA-F.:]+(/[0-9]+)?$"),
    ("CODE", "^[A-Za-z0-9]{1,10}$"),
    ("ORIGIN", "^https?://[^/]+$"),
    ("PATH", "^/"),
    ("PORTS", "^[0-9]+(-[0-9]+)?$"),
    ("PRICE", "^[0-9]{1,9}([.][0-9]{1,9})?$"),
    ("SIZE", "^[0-9]+(KiB|MiB|GiB)$"),
    ("SIZE|off", "^([0-9]+(KiB|MiB)|off)$"),
    ("TIME|off", "^(off|([0-9]+(s|sec|m|min|h|d))+)$"),
    ("URL", "^[a-z0-9]+://[^/]"),
];

/// A setting, as its option describes it.
pub(super) struct Setting {
    option: Arg,
    /// The key in the file, which is also the long name of the option.
    name: String,
    help: String,
    default: Vec<String>,
    /// What counts if it isn't set and has no default value.
    otherwise: Option<String>,
    kind: Kind,
    example: Option<String>,
}

/// The type of the values.
enum Kind {
    Switch,
    Choice(Vec<String>),
    Number,
    Text,
    List,
}

/// Returns the settings of the program: the options of `serve` that have a variable.
pub(super) fn settings(program: &Command) -> Vec<Setting> {
    let serve = program.find_subcommand("serve");
    serve.map(options).unwrap_or_default().iter().map(Setting::new).collect()
}

/// Returns the JSON Schema of a file with these settings.
pub(super) fn schema(settings: &[Setting]) -> Value {
    let properties: Map<_, _> = settings.iter().map(|setting| (setting.name.clone(), setting.schema())).collect();
    json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Settings of the gateway",
        "type": "object",
        "additionalProperties": false,
        "properties": properties,
    })
}

impl Setting {
    fn new(option: &Arg) -> Self {
        let name = option.get_long().unwrap_or_default().to_owned();
        let text = option.get_long_help().or_else(|| option.get_help()).map(ToString::to_string).unwrap_or_default();
        let (help, otherwise) = match text.split_once(DEFAULT) {
            Some((help, otherwise)) => (help.trim_end(), otherwise.split(']').next().map(str::to_owned)),
            None => (text.as_str(), option.is_required_set().then(|| "required".to_owned())),
        };
        let is_path = matches!(notation(option), Some("FILE" | "FILE|-" | "DIR"));
        let default = option.get_default_values().iter().map(|value| value.to_string_lossy().into_owned());
        let is_flag = matches!(option.get_action(), ArgAction::SetTrue);
        Self {
            help: format!("{}.", help.trim_end_matches('.')),
            default: if is_flag { vec!["false".to_owned()] } else { default.collect() },
            otherwise,
            kind: Kind::new(option),
            example: if is_path { Some(format!("/etc/sparkgate/{name}")) } else { example(help) },
            option: option.clone(),
            name,
        }
    }

    /// Returns what the setting means and, if that is so, that it changes without a restart.
    fn meaning(&self) -> String {
        let effect = if is_reloaded(&self.name) { " A change needs no restart." } else { "" };
        format!("{}{effect}", self.help)
    }

    /// Returns the JSON Schema of the value.
    fn schema(&self) -> Value {
        let mut schema = Map::new();
        let mut set = |key: &str, value: Value| schema.insert(key.to_owned(), value);
        let otherwise = self.otherwise.as_ref().map(|text| format!(" Default: {text}.")).unwrap_or_default();
        set("description", format!("{}{otherwise}", self.meaning()).into());
        let pattern = NOTATIONS.iter().find(|(name, _)| notation(&self.option) == Some(name));
        let text = match pattern {
            Some((_, pattern)) => json!({"type": "string", "pattern": pattern}),
            None => json!({"type": "string", "minLength": 1}),
        };
        match &self.kind {
            Kind::Switch => drop(set("type", "boolean".into())),
            Kind::Choice(values) => drop(set("enum", values.clone().into())),
            Kind::Number => {
                set("type", "integer".into());
                set("minimum", 0.into());
            }
            Kind::Text => text.as_object().into_iter().flatten().for_each(|(key, value)| drop(set(key, value.clone()))),
            Kind::List => {
                set("type", json!(["array", "string"]));
                set("items", text);
            }
        }
        if let Some(default) = self.value(&self.default) {
            set("default", default);
        }
        if let Some(example) = self.value(self.example.as_slice()) {
            set("examples", json!([example]));
        }
        Value::Object(schema)
    }

    /// Returns a value as the file has it.
    fn value(&self, texts: &[String]) -> Option<Value> {
        let text = texts.first()?;
        match self.kind {
            Kind::Switch => text.parse::<bool>().ok().map(Value::from),
            Kind::Number => text.parse::<u64>().ok().map(Value::from),
            Kind::List => Some(texts.into()),
            Kind::Text | Kind::Choice(_) => Some(text.as_str().into()),
        }
    }
}

impl Kind {
    fn new(option: &Arg) -> Self {
        let choices: Vec<_> = option.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
        let parsed = option.get_value_parser().type_id();
        if matches!(option.get_action(), ArgAction::SetTrue) || choices == ["true", "false"] {
            Self::Switch
        } else if !choices.is_empty() {
            Self::Choice(choices)
        } else if option.get_value_delimiter().is_some() {
            Self::List
        } else if parsed == TypeId::of::<u32>() || parsed == TypeId::of::<usize>() {
            Self::Number
        } else {
            Self::Text
        }
    }
}

/// Returns the name of the value in the help.
fn notation(option: &Arg) -> Option<&str> {
    option.get_value_names()?.first().map(|name| name.as_str())
}

/// Returns the example that a help has.
fn example(help: &str) -> Option<String> {
    let (_, after) = help.split_once(EXAMPLE)?;
    let word = after.split_whitespace().next()?.trim_start_matches(['<', '`']);
    Some(word.trim_end_matches(['>', '`', ',', '.', ':']).to_owned())
}
