//! The objects as one text.

use crate::object::Object;

/// Writes the objects as YAML documents, each with its purpose as a comment.
pub fn to_yaml(objects: &[Object]) -> String {
    let mut text = String::new();
    for object in objects {
        text.push_str("---\n");
        for line in object.purpose.lines() {
            text.push_str("# ");
            text.push_str(line);
            text.push('\n');
        }
        // JSON is YAML: a value that can't be written as YAML, of which none is known, stays readable.
        text.push_str(&serde_saphyr::to_string(&object.manifest).unwrap_or_else(|_| format!("{}\n", object.manifest)));
    }
    text
}
