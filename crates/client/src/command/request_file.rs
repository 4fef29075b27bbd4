//! A file with a request or a part of it, as JSON or YAML.

use std::{
    fs,
    io::{Read, stdin},
    path::Path,
};

use serde_json::Value;

use crate::error::Error;

/// Reads an object from a file, or from standard input if the path is `-`.
///
/// # Errors
/// It can't be read, or isn't an object in JSON or YAML.
pub(super) fn read(path: &Path) -> Result<Value, Error> {
    let is_stdin = path.as_os_str() == "-";
    let name = if is_stdin { "standard input".to_owned() } else { path.display().to_string() };
    let mut text = String::new();
    let read = match is_stdin {
        true => stdin().read_to_string(&mut text).map(drop),
        false => fs::read_to_string(path).map(|content| text = content),
    };
    read.map_err(|error| Error::Here(format!("reading the request from {name}: {error}")))?;
    parse(&text).map_err(|cause| Error::Here(format!("reading the request from {name}: {cause}")))
}

fn parse(text: &str) -> Result<Value, String> {
    let value: Value = match text.trim_start().starts_with('{') {
        true => serde_json::from_str(text).map_err(|error| error.to_string())?,
        false => {
            let options = serde_saphyr::options! { with_snippet: false };
            serde_saphyr::from_str_with_options(text, options).map_err(|error| error.to_string())?
        }
    };
    let is_object = value.is_object();
    is_object
        .then_some(value)
        .ok_or_else(|| "expected an object with the fields of a request, in JSON or YAML".to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_request_is_json_or_yaml() {
        let expected = json!({"name": "Pi", "appArgs": [10, "a"], "sparkProperties": {"spark.a": true}});
        assert_eq!(parse(&expected.to_string()), Ok(expected.clone()));
        assert_eq!(parse("name: Pi\nappArgs: [10, a]\nsparkProperties:\n  spark.a: true\n"), Ok(expected));
        for (text, part) in [("[1]", "an object"), ("", "an object"), ("{\"name\": ", "EOF"), ("name: [", "line")] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
