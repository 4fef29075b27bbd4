//! Forms and their fields. Browsers send empty fields, too, which stand for nothing here.

use axum::{body::Body, http::HeaderMap, http::header};

use sparkgate_web::problem::{Code, Problem};

/// The largest form in bytes.
const MOST: usize = 64 << 10;

/// Returns a query without its empty parameters.
pub(super) fn filled(query: &str) -> String {
    let parameters = form_urlencoded::parse(query.as_bytes()).filter(|(_, value)| !value.is_empty());
    form_urlencoded::Serializer::new(String::new()).extend_pairs(parameters).finish()
}

/// Returns the values of a parameter.
pub(super) fn values(query: &str, wanted: &str) -> Vec<String> {
    let values = form_urlencoded::parse(query.as_bytes()).filter(|(name, _)| name == wanted);
    values.map(|(_, value)| value.into_owned()).collect()
}

/// Returns a query with other values of these parameters, and without a cursor, which belongs to the query before.
pub(super) fn with(query: &str, changed: &[(&str, &str)]) -> String {
    let is_kept = |name: &str| name != "cursor" && changed.iter().all(|(other, _)| name != *other);
    let kept = form_urlencoded::parse(query.as_bytes()).filter(|(name, _)| is_kept(name));
    let mut new = form_urlencoded::Serializer::new(String::new());
    new.extend_pairs(kept).extend_pairs(changed.iter().filter(|(_, value)| !value.is_empty()));
    new.finish()
}

/// Returns a query without one value of a parameter, and without a cursor.
pub(super) fn without(query: &str, removed: &str, value: &str) -> String {
    let is_kept = |name: &str, given: &str| name != "cursor" && !(name == removed && given == value);
    let kept = form_urlencoded::parse(query.as_bytes()).filter(|(name, value)| is_kept(name, value));
    form_urlencoded::Serializer::new(String::new()).extend_pairs(kept).finish()
}

/// Returns a query with one more value of a parameter, and without a cursor.
pub(super) fn and(query: &str, name: &str, value: &str) -> String {
    let kept = without(query, name, value);
    let mut new = form_urlencoded::Serializer::new(kept);
    new.append_pair(name, value);
    new.finish()
}

/// Reads the body of a form.
///
/// # Errors
/// It is too large, or no form.
pub(super) async fn read(headers: &HeaderMap, body: Body) -> Result<Vec<(String, String)>, Problem> {
    let given = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if !given.to_ascii_lowercase().starts_with("application/x-www-form-urlencoded") {
        let detail = format!("Content-Type is {given:?}: this path takes a form.");
        return Err(Problem::new(Code::UnsupportedMediaType, detail));
    }
    let bytes = axum::body::to_bytes(body, MOST).await.map_err(|_| {
        Problem::new(Code::RequestTooLarge, format!("The form could not be read, or has more than {MOST} bytes."))
    })?;
    Ok(form_urlencoded::parse(&bytes).into_owned().collect())
}

/// Returns the value of a field, without space around it; empty if the form hasn't it.
pub(super) fn field<'a>(fields: &'a [(String, String)], wanted: &str) -> &'a str {
    fields.iter().find(|(name, _)| name == wanted).map_or("", |(_, value)| value.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_fields_stand_for_nothing() {
        assert_eq!(filled("name=&owner=a%26b&state=&label=x%3Dy&x"), "owner=a%26b&label=x%3Dy");
    }

    #[test]
    fn a_filter_is_changed_in_the_query() {
        let query = "state=FAILED&owner=a&state=LOST&cursor=xyz";
        assert_eq!(with(query, &[("state", "RUNNING")]), "owner=a&state=RUNNING");
        assert_eq!(with(query, &[("state", "")]), "owner=a");
        assert_eq!(with(query, &[]), "state=FAILED&owner=a&state=LOST");
        assert_eq!(values(query, "state"), ["FAILED", "LOST"]);
        assert_eq!(without(query, "state", "LOST"), "state=FAILED&owner=a");
        assert_eq!(and(query, "state", "LOST"), "state=FAILED&owner=a&state=LOST");
        assert_eq!(and("", "label", "a=b"), "label=a%3Db");
    }
}
