//! Converts an application's name, which may contain any character, to names that Kubernetes accepts.

/// The maximum length of a label's value.
const LABEL_MAX: usize = 63;

/// Returns the prefix of `KubernetesConf.getResourceNamePrefix`: lower case, `[a-z0-9-]`, no runs of hyphens, and a letter
/// at the beginning (a leading digit becomes `x`). Spark doesn't limit its length.
pub(super) fn resource_prefix(app_name: &str, unique_id: &str) -> String {
    let clean = hyphenated(&format!("{app_name}-{unique_id}"));
    let clean = clean.strip_prefix('-').unwrap_or(&clean);
    match clean.strip_prefix(|c: char| c.is_ascii_digit()) {
        Some(rest) => format!("x{rest}"),
        None => clean.to_owned(),
    }
}

/// Returns the label of `KubernetesConf.getAppNameLabel`: the value of `spark-app-name`, cut to 63 characters, possibly empty.
pub(crate) fn app_name_label(app_name: &str) -> String {
    let mut label = hyphenated(app_name);
    label.truncate(LABEL_MAX);
    let label = label.strip_prefix('-').unwrap_or(&label);
    label.strip_suffix('-').unwrap_or(label).to_owned()
}

/// Trims a text, converts it to lower case, and replaces each run of other characters by one hyphen. The result is ASCII.
fn hyphenated(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    // Java's `trim` drops everything up to the space character, control characters included.
    let trimmed = text.trim_matches(|c: char| c <= ' ');
    for c in trimmed.to_lowercase().chars() {
        let c = if matches!(c, 'a'..='z' | '0'..='9') { c } else { '-' };
        if c != '-' || !out.ends_with('-') {
            out.push(c);
        }
    }
    out
}
