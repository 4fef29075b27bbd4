//! Pointers to the fields of a request (RFC 6901).

/// Converts `sparkProperties["spark.x"]`, `labels["a/b"]`, `appArgs[4]` or `maxRetries.application` to a JSON pointer.
pub fn pointer(field: &str) -> String {
    let (name, key) = match field.split_once("[\"") {
        Some((name, key)) => (name.to_owned(), Some(key.strip_suffix("\"]").unwrap_or(key))),
        None => (field.replace(['.', '['], "/").replace(']', ""), None),
    };
    match key {
        Some(key) => format!("#/{name}/{}", escape(key)),
        None => format!("#/{name}"),
    }
}

/// Escapes one segment of a JSON pointer (RFC 6901).
pub fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_becomes_a_pointer() {
        for (field, expected) in [
            ("appResource", "#/appResource"),
            ("sparkProperties[\"spark.driver.memory\"]", "#/sparkProperties/spark.driver.memory"),
            ("labels[\"example.org/~x\"]", "#/labels/example.org~1~0x"),
            ("maxRetries.application", "#/maxRetries/application"),
            ("appArgs[4]", "#/appArgs/4"),
        ] {
            assert_eq!(pointer(field), expected);
        }
    }
}
