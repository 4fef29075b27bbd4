//! The form that runs a submission again with changes.

use axum::{
    extract::{Request, State},
    http::{StatusCode, Uri},
    response::Response,
};
use maud::{Markup, html};
use serde_json::{Value, json};

use super::{
    form::{self, field},
    heading::{Actions, heading},
    layout::{Frame, Section},
    page::page,
    text::{cut, visible},
};
use crate::v1::submissions::rerun::{Stored, check_rerun, read_patch, rerun_of, stored};
use sparkgate_service::{Session, Submission};
use sparkgate_submission::SubmissionId;
use sparkgate_web::{id::Id, problem::Problem, session::Caller, state::AppState};

/// An example of changes.
const PATCH: &str = r#"{"environmentVariables": {"DAY": "2026-01-02"}}"#;
/// The longest detail of a problem that the page shows, in bytes.
const DETAIL: usize = 2000;

/// The properties that have fields of their own: the name of the field, its label, an example.
const PROPERTIES: [(&str, &str, &str); 5] = [
    ("spark.driver.memory", "Driver memory", "1g"),
    ("spark.executor.memory", "Executor memory", "1g"),
    ("spark.executor.instances", "Executors", "2"),
    ("spark.executor.cores", "Cores of an executor", "1"),
    ("spark.kubernetes.container.image", "Image", ""),
];
const ARGUMENTS: &str = "arguments";

/// The values of the form's fields.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Fields {
    /// Those of [`PROPERTIES`]; empty for a property that isn't set, and `None` for one that can't be shown as it is.
    properties: [Option<String>; PROPERTIES.len()],
    /// The arguments, one in each line; `None` if one of them has several lines, or can't be shown as it is.
    arguments: Option<String>,
    /// A JSON merge patch of the request.
    patch: String,
}

impl Fields {
    /// Returns the fields of a stored request.
    fn of(request: &Value) -> Self {
        let set = |key: &str| {
            let value = request["sparkProperties"][key].as_str().unwrap_or_default();
            is_shown(value).then(|| value.to_owned())
        };
        let arguments: Vec<&str> =
            request["appArgs"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let is_line = |argument: &&str| !argument.is_empty() && !argument.contains('\n') && is_shown(argument);
        let are_lines = arguments.iter().all(is_line);
        Self {
            properties: PROPERTIES.map(|(key, ..)| set(key)),
            arguments: are_lines.then(|| arguments.join("\n")),
            patch: String::new(),
        }
    }

    /// Returns what a browser sent.
    fn sent(fields: &[(String, String)]) -> Self {
        let arguments = fields.iter().find(|(name, _)| name == ARGUMENTS);
        Self {
            properties: PROPERTIES
                .map(|(key, ..)| fields.iter().any(|(name, _)| name == key).then(|| field(fields, key).to_owned())),
            arguments: arguments.map(|(_, lines)| lines.replace('\r', "").trim_end_matches('\n').to_owned()),
            patch: field(fields, "patch").to_owned(),
        }
    }

    /// Returns the merge patch that makes these fields of a request's: the changed ones, under the patch of the form.
    ///
    /// # Errors
    /// The patch of the form isn't a JSON object.
    fn patch(&self, was: &Self) -> Result<Value, Problem> {
        let written = read_patch(self.patch.as_bytes())?;
        let mut patch = json!({});
        let changed = PROPERTIES.iter().zip(self.properties.iter().zip(&was.properties));
        for ((key, ..), (value, _)) in changed.filter(|(_, (value, was))| value != was) {
            let Some(value) = value else { continue };
            patch["sparkProperties"][key] = if value.is_empty() { Value::Null } else { value.as_str().into() };
        }
        if let Some(lines) = self.arguments.as_ref().filter(|_| self.arguments != was.arguments) {
            let lines: Vec<&str> = lines.lines().collect();
            patch["appArgs"] = if lines.is_empty() { Value::Null } else { lines.into() };
        }
        // Not applied to the request: what a later patch removes stays an instruction to remove it.
        merge(&mut patch, written);
        Ok(patch)
    }
}

/// Returns whether a page shows a text as it is: whole, and without characters that have no shape.
fn is_shown(text: &str) -> bool {
    visible(text) == text
}

/// Puts a patch over another one.
fn merge(under: &mut Value, over: Value) {
    match (under, over) {
        (Value::Object(under), Value::Object(over)) => {
            for (key, value) in over {
                merge(under.entry(key).or_insert(Value::Null), value);
            }
        }
        (under, over) => *under = over,
    }
}

/// Shows the form.
pub(super) async fn show(
    State(state): State<AppState>,
    Caller(caller): Caller,
    Id { id }: Id,
    uri: Uri,
) -> Result<Response, Problem> {
    let stored = stored(&state, &caller, &id).await?;
    let content = match check_rerun(&state, &caller, &stored).await {
        Ok(()) => html! {},
        Err(problem) if is_of_request(&problem) => refusal("Without a change it would be refused", &problem),
        Err(problem) => return Err(problem),
    };
    let Stored { of, request } = &stored;
    let content = around(of, &caller, &html! { (content) (fields(of, &Fields::of(request))) });
    Ok(page(frame(uri.path(), &caller).around(&content)))
}

fn frame<'a>(path: &'a str, caller: &'a Session) -> Frame<'a> {
    Frame { title: "Run again", section: Section::Submissions, path, caller: Some(caller), live: None }
}

fn around(of: &Submission, caller: &Session, content: &Markup) -> Markup {
    html! {
        (heading(of, of.id.as_str(), "rerun", Actions::of(caller, of)))
        section { h2 { "Run it again" } (content) }
    }
}

fn fields(of: &Submission, fields: &Fields) -> Markup {
    html! {
        form.rerun method="post" action={ "../" (of.id) "/rerun" } {
            p.quiet { "The request as it was launched: with the operator's defaults of that time, and without secrets." }
            div.fields {
                @for ((key, label, example), value) in PROPERTIES.iter().zip(&fields.properties) {
                    @if let Some(value) = value {
                        label { (label) input name=(key) value=(value) placeholder=(example) title=(key) autocomplete="off"; }
                    }
                }
            }
            @if let Some(lines) = &fields.arguments {
                label { "Arguments, one in each line"
                    textarea name=(ARGUMENTS) rows=(lines.lines().count().clamp(2, 12)) spellcheck="false" { (lines) } }
            }
            details open[!fields.patch.is_empty()] {
                summary { "More, as JSON" }
                label for="patch" {
                    "A JSON merge patch of the request. Secrets aren't stored: set them here, or to " code { "null" }
                    " to leave them to the operator's defaults."
                }
                textarea #patch name="patch" rows="6" spellcheck="false" placeholder=(PATCH) { (fields.patch) }
            }
            button.primary { "Run again" }
        }
    }
}

/// Submits the request of a submission again, with the changes of a form, and shows the new submission.
pub(super) async fn submit(
    State(state): State<AppState>,
    Caller(caller): Caller,
    Id { id }: Id,
    request: Request,
) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    let sent = Fields::sent(&form::read(&parts.headers, body).await?);
    let stored = stored(&state, &caller, &id).await?;
    match rerun(&state, &caller, &stored, &sent).await {
        Ok(new) => Ok(super::page::seen_at(format!("../{new}"))),
        Err(problem) if is_of_request(&problem) => Ok(refused(&problem, &stored.of, &sent, parts.uri.path(), &caller)),
        Err(problem) => Err(problem),
    }
}

async fn rerun(state: &AppState, caller: &Session, stored: &Stored, sent: &Fields) -> Result<SubmissionId, Problem> {
    let patch = sent.patch(&Fields::of(&stored.request))?;
    let accepted = rerun_of(state, caller, stored, &patch).await?;
    Ok(accepted.submission.id)
}

/// Returns whether another request may be accepted.
fn is_of_request(problem: &Problem) -> bool {
    matches!(problem.code.status(), 400 | 403 | 409 | 413 | 422 | 429)
}

fn refusal(title: &str, problem: &Problem) -> Markup {
    html! {
        div.refused role="alert" {
            h3 { (title) }
            p { (cut(&problem.detail, DETAIL)) }
            @if problem.errors.len() > 1 {
                ul { @for error in &problem.errors { li { code { (error.pointer.as_deref().unwrap_or_default()) } " " (cut(&error.detail, DETAIL)) } } }
            }
        }
    }
}

/// Shows why a request was refused, above the form with what was typed.
fn refused(problem: &Problem, of: &Submission, sent: &Fields, path: &str, caller: &Session) -> Response {
    problem.log();
    let content = html! { (refusal(problem.code.title(), problem)) (fields(of, sent)) };
    let mut response = page(frame(path, caller).around(&around(of, caller, &content)));
    *response.status_mut() = StatusCode::from_u16(problem.code.status()).unwrap_or(StatusCode::BAD_REQUEST);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored() -> Fields {
        Fields::of(&json!({"appArgs": ["a b", "c"], "sparkProperties": {"spark.driver.memory": "1g", "x": "y"}}))
    }

    #[test]
    fn only_what_was_changed_is_in_the_patch() {
        let was = stored();
        assert_eq!(was.arguments.as_deref(), Some("a b\nc"));
        assert_eq!(was.patch(&was).unwrap(), json!({}));
        let mut sent = was.clone();
        sent.properties[0] = Some(String::new());
        sent.properties[2] = Some("4".to_owned());
        sent.arguments = Some("a b\nd".to_owned());
        sent.patch = r#"{"sparkProperties": {"x": null, "spark.executor.instances": "5"}}"#.to_owned();
        let expected = json!({
            "sparkProperties": {"spark.driver.memory": null, "spark.executor.instances": "5", "x": null},
            "appArgs": ["a b", "d"],
        });
        assert_eq!(sent.patch(&was).unwrap(), expected);
        sent.arguments = Some(String::new());
        assert_eq!(sent.patch(&was).unwrap()["appArgs"], Value::Null);
        sent.patch = "[]".to_owned();
        assert!(sent.patch(&was).is_err());
    }

    #[test]
    fn what_a_field_would_change_has_none() {
        let image = json!({"spark.kubernetes.container.image": "spark\u{202e}"});
        let was = Fields::of(&json!({"appArgs": ["SELECT\n1"], "sparkProperties": image}));
        assert_eq!((&was.arguments, &was.properties[4]), (&None, &None));
        assert_eq!(was.patch(&was).unwrap(), json!({}));
    }
}
