//! `docs/reference/metrics.md` has the list of the code. `make metrics-docs` writes it.

use std::{fmt::Write, fs, path::Path};

use sparkgate::metrics::{Description, descriptions};

const BEGIN: &str = "<!-- The tables are written by `make metrics-docs` from crates/metrics/src/catalogue.rs. -->\n";

fn tables() -> String {
    let mut text = String::new();
    let mut section = "";
    for Description { section: of, name, kind, labels, help, advice } in descriptions() {
        if section != *of {
            section = of;
            write!(text, "\n## {section}\n\n| metric | type | labels | meaning |\n|---|---|---|---|\n").unwrap();
        }
        let labels: Vec<_> = labels.iter().map(|label| format!("`{label}`")).collect();
        let labels = if labels.is_empty() { "–".to_owned() } else { labels.join(", ") };
        let advice = advice.map(|advice| format!(" **What to do:** {advice}")).unwrap_or_default();
        writeln!(text, "| `{name}` | {} | {labels} | {help}{advice} |", kind.as_str()).unwrap();
    }
    text
}

#[test]
fn the_metrics_page_has_every_metric() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference/metrics.md");
    let page = fs::read_to_string(&path).unwrap();
    let (head, _) = page.split_once(BEGIN).unwrap();
    let expected = format!("{head}{BEGIN}{}", tables());
    if std::env::var_os("SPARKGATE_WRITE_DOCS").is_some() {
        fs::write(&path, &expected).unwrap();
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), expected, "run `make metrics-docs`");
}
