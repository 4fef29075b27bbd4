//! `docs/reference/properties.md` matches the table in the code. `make properties` writes it.

use std::{fmt::Write, fs, path::Path};

use sparkgate::spark::keys::{Effect, KEYS, Key, misspelt};

const HEAD: &str = "\
# Spark's properties here

What becomes of the properties that Spark reads for a driver on Kubernetes. The **driver** column says what they do:

- **shaped**: they decide what the driver's pod and the objects beside it look like;
- **reads**: they are the driver process's to read, and reach it as they are;
- **–**: they tell `spark-submit` how to submit, which is the gateway's business; they change nothing;
- **refused**: no driver is made of a request that has them.

A `*` stands for a name. *Since* is the Spark release that brought the property: an older one hands it on like any other
text. Properties that aren't here reach the driver as they are, if they begin with `spark.`. A *file's name* is the name
of a file that the operator gave ([submitter.md](../use/submitter.md)); a path of the client's is refused.

<!-- Written by `make properties` from crates/spark/src/keys. -->
";

fn page() -> String {
    let mut page = HEAD.to_owned();
    for section in KEYS {
        write!(page, "\n## {}\n\n| property | since | driver | |\n|---|---|---|---|\n", section.title).unwrap();
        for row in section.keys {
            writeln!(page, "{}", line(row)).unwrap();
        }
    }
    page
}

fn line(row: &Key) -> String {
    let star = if row.key.ends_with('.') { "*" } else { "" };
    let effect = match row.effect {
        Effect::ShapesDriver => "shaped",
        Effect::ReadByDriver => "reads",
        Effect::SubmitClient => "–",
        Effect::Refused => "**refused**",
    };
    let meaning = row.meaning.replace('<', "&lt;");
    format!("| `{}{star}` | {} | {effect} | {meaning} |", row.key, row.since)
}

#[test]
fn the_properties_page_matches_the_table() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference/properties.md");
    if std::env::var_os("SPARKGATE_WRITE_DOCS").is_some() {
        fs::write(&path, page()).unwrap();
    }
    assert_eq!(fs::read_to_string(&path).unwrap_or_default(), page(), "run `make properties`");
}

/// The recorded tests against Spark name some five hundred of its properties.
#[test]
fn no_property_of_spark_counts_as_misspelt() {
    let mut names = std::collections::BTreeSet::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/parity")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
                continue;
            }
            let text = String::from_utf8_lossy(&fs::read(entry.path()).unwrap()).into_owned();
            let words = text.split(|c: char| !c.is_ascii_alphanumeric() && !"._-".contains(c));
            names.extend(words.filter(|word| word.starts_with("spark.")).map(str::to_owned));
        }
    }
    assert!(names.len() > 300, "{}", names.len());
    let warned: Vec<_> = names.iter().filter_map(|name| misspelt::warning(name)).collect();
    assert_eq!(warned, Vec::<String>::new());
}
