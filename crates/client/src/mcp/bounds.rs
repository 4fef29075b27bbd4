//! Bounds the size of results, which an assistant has to read.

use serde_json::Value;

use crate::clean;

/// The largest document, in bytes of JSON.
const LARGEST: usize = 60_000;
/// The longest text, list and object of a document. If it is too large with these, the next ones apply.
const STEPS: [(usize, usize, usize); 4] = [(4000, 100, 300), (1000, 50, 150), (300, 20, 50), (100, 5, 20)];

/// Shortens texts, lists and objects until a document isn't too large, and removes characters that no one sees.
pub(super) fn shorten(value: &mut Value) {
    for (text, list, object) in STEPS {
        shorten_to(value, text, list, object);
        if value.to_string().len() <= LARGEST {
            return;
        }
    }
    *value = "This is too large to be shown: ask for less.".into();
}

fn shorten_to(value: &mut Value, most_text: usize, most_list: usize, most_object: usize) {
    match value {
        Value::String(text) => *text = cut(&visible(text), most_text),
        Value::Array(items) => {
            let left = items.len().saturating_sub(most_list);
            items.truncate(most_list);
            items.iter_mut().for_each(|item| shorten_to(item, most_text, most_list, most_object));
            if left > 0 {
                items.push(format!("… {left} more").into());
            }
        }
        Value::Object(fields) => {
            let surplus: Vec<String> = fields.keys().skip(most_object).cloned().collect();
            for key in &surplus {
                fields.remove(key);
            }
            fields.values_mut().for_each(|field| shorten_to(field, most_text, most_list, most_object));
            if !surplus.is_empty() {
                fields.insert("…".to_owned(), format!("{} more", surplus.len()).into());
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Returns a text with its middle left out if it is longer than `most` characters: of a log or a message, the end matters most.
pub(super) fn cut(text: &str, most: usize) -> String {
    let count = text.chars().count();
    if count <= most {
        return text.to_owned();
    }
    let (first, last) = (most / 3, most - most / 3);
    let start: String = text.chars().take(first).collect();
    let end: String = text.chars().skip(count - last).collect();
    format!("{start} … {} characters left out … {end}", count - most)
}

/// Replaces control characters, and those that are invisible, in which instructions could be hidden from the user.
pub(super) fn visible(text: &str) -> String {
    let is_invisible = |c: char| matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{2064}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}');
    clean::lines(text).chars().map(|c| if is_invisible(c) { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_document_is_shortened_to_the_bound() {
        let long = "x".repeat(10_000);
        let mut value = json!({"log": format!("begin{long}end"), "items": vec![long; 300], "few": [1, 2]});
        shorten(&mut value);
        assert!(value.to_string().len() <= LARGEST, "{}", value.to_string().len());
        let log = value["log"].as_str().unwrap();
        assert!(log.starts_with("begin") && log.ends_with("end") && log.contains("left out"), "{log}");
        assert_eq!(value["few"], json!([1, 2]));
        assert!(value["items"].as_array().unwrap().last().unwrap().as_str().unwrap().contains("more"));
    }

    #[test]
    fn what_no_one_sees_is_replaced() {
        assert_eq!(visible("a\u{200b}b\u{e0041}\u{1b}[0m\tc\n"), "a\u{fffd}b\u{fffd}\u{fffd}[0m\tc\n");
    }
}
