//! Spark's recorded answers: text that shows what a case changes.
//!
//! ```text
//! = case
//! @ 3.5.9 4.0.5        the lines up to the next `@` are about these releases
//! ~ prefix             what the names of the objects begin with, below `{names}`
//! path<TAB>json        a leaf that is new or other than expected
//! -path                a leaf that isn't there
//! ! sentence           or else: the refusal
//! ```
//!
//! The expected leaves are those of that release's minimal driver, plus each property of the request unchanged. The
//! minimal driver itself is recorded in full, in `minimal.txt`.

use std::{collections::BTreeMap, fmt::Write, fs, path::PathBuf};

use crate::{
    answer::{Answer, Leaves},
    case::{self, Case},
    generate,
};

/// Represents the prefix of the names of a driver's objects.
const NAMES: &str = "{names}";

pub(crate) type ByVersion = BTreeMap<String, Answer>;
/// Answers by case and release.
pub(crate) type Answers = BTreeMap<String, ByVersion>;

/// All cases and what was recorded for them, by the file of the answers.
pub(crate) struct Suite {
    pub(crate) groups: BTreeMap<String, Vec<Case>>,
    pub(crate) answers: BTreeMap<String, Answers>,
}

impl Suite {
    pub(crate) fn read() -> Self {
        let groups = groups();
        let baseline = Baseline::read();
        let answers =
            groups.iter().map(|(group, cases)| (group.clone(), read(&format!("{group}.txt"), cases, &baseline)));
        Self { answers: answers.collect(), groups }
    }

    /// Returns each case with its answers.
    pub(crate) fn cases(&self) -> impl Iterator<Item = (&Case, Option<&ByVersion>)> {
        let of = |group: &String, case: &Case| self.answers[group].get(&case.name);
        self.groups.iter().flat_map(move |(group, cases)| cases.iter().map(move |case| (case, of(group, case))))
    }
}

/// Returns hand-written and generated cases by the file of their answers.
pub(crate) fn groups() -> BTreeMap<String, Vec<Case>> {
    let mut groups = case::hand_written();
    groups.insert("generated".into(), generate::cases(generate::SEED, generated()));
    groups
}

/// Returns the number of recorded generated cases.
fn generated() -> usize {
    let fingerprint = fs::read_to_string(path("fingerprint")).unwrap_or_default();
    fingerprint.split(' ').next().and_then(|count| count.parse().ok()).unwrap_or(500)
}

pub(crate) fn path(file: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/parity/recorded").join(file)
}

/// The minimal drivers by release.
pub(crate) struct Baseline(ByVersion);

impl Baseline {
    pub(crate) fn read() -> Self {
        let text = fs::read_to_string(path("minimal.txt")).unwrap_or_default();
        Self::new(parse(&text, |_, _| Leaves::new()).remove("minimal").unwrap_or_default())
    }

    pub(crate) fn new(answers: ByVersion) -> Self {
        Self(answers)
    }

    pub(crate) fn answers(&self) -> ByVersion {
        self.0.clone()
    }

    pub(crate) fn text(&self) -> String {
        let answers = [("minimal".to_owned(), self.0.clone())].into();
        write(&answers, |_, _| Leaves::new())
    }

    /// Returns the leaves that a case would have if it only passed on properties.
    fn expected(&self, case: Option<&Case>, version: &str) -> Leaves {
        let Some(Answer::Objects(minimal)) = self.0.get(version) else { return Leaves::new() };
        let mut leaves = minimal.clone();
        for (key, value) in case.iter().flat_map(|case| &case.request.spark_properties) {
            if key.starts_with("spark.") && key != "spark.master" {
                let key = serde_json::Value::from(escaped(key, true)).to_string();
                let path = format!("Properties[{}]", &key[1..key.len() - 1]);
                leaves.insert(path, serde_json::Value::from(escaped(value, false)).to_string());
            }
        }
        leaves
    }
}

/// Escapes a property approximately as Java does. This is only the expected text, not the one that is compared.
fn escaped(text: &str, key: bool) -> String {
    let mut out = String::new();
    for (at, c) in text.chars().enumerate() {
        match c {
            ' ' if key || at == 0 => out.push_str("\\ "),
            '=' | ':' | '#' | '!' | '\\' => out.extend(['\\', c]),
            other => out.push(other),
        }
    }
    out
}

/// Reads a file of answers for these cases.
pub(crate) fn read(file: &str, cases: &[Case], baseline: &Baseline) -> Answers {
    let by_name: BTreeMap<&str, &Case> = cases.iter().map(|case| (case.name.as_str(), case)).collect();
    let text = fs::read_to_string(path(file)).unwrap_or_default();
    parse(&text, |name, version| baseline.expected(by_name.get(name).copied(), version))
}

pub(crate) fn render(answers: &Answers, cases: &[Case], baseline: &Baseline) -> String {
    let by_name: BTreeMap<&str, &Case> = cases.iter().map(|case| (case.name.as_str(), case)).collect();
    write(answers, |name, version| baseline.expected(by_name.get(name).copied(), version))
}

fn write(answers: &Answers, expected: impl Fn(&str, &str) -> Leaves) -> String {
    let mut text = String::new();
    for (name, answers) in answers {
        let _ = writeln!(text, "= {name}");
        // Each line once, with all releases that have it. Lines common to all releases come first, even if there are
        // none.
        let all: Vec<&str> = answers.keys().map(String::as_str).collect();
        let mut by_line: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for (version, answer) in answers {
            for line in lines(answer, &expected(name, version)) {
                by_line.entry(line).or_default().push(version);
            }
        }
        let mut by_versions: BTreeMap<(bool, Vec<&str>), Vec<String>> = BTreeMap::new();
        by_versions.insert((false, all.clone()), Vec::new());
        for (line, versions) in by_line {
            by_versions.entry((versions != all, versions)).or_default().push(line);
        }
        for ((_, versions), lines) in by_versions {
            let _ = writeln!(text, "@ {}", versions.join(" "));
            for line in lines {
                let _ = writeln!(text, "{line}");
            }
        }
    }
    text
}

fn lines(answer: &Answer, expected: &Leaves) -> Vec<String> {
    let leaves = match answer {
        Answer::Refused(sentence) => return vec![format!("! {sentence}").trim_end().to_owned()],
        Answer::Objects(leaves) => leaves,
    };
    let (names, expected_names) = (names(leaves), names(expected));
    let leaves = replace(leaves, &names, NAMES);
    let expected = replace(expected, &expected_names, NAMES);
    let own = (names != expected_names).then(|| format!("~ {names}"));
    let gone = expected.keys().filter(|path| !leaves.contains_key(*path)).map(|path| format!("-{path}"));
    let new = leaves.iter().filter(|(path, value)| expected.get(*path) != Some(*value));
    own.into_iter().chain(gone).chain(new.map(|(path, value)| format!("{path}\t{value}"))).collect()
}

/// Returns the prefix of the names of a driver's objects, as far as it can be seen.
fn names(leaves: &Leaves) -> String {
    let name = leaves.get("NetworkPolicy.metadata.name").or_else(|| leaves.get("Pod.metadata.name"));
    let name = name.map(|json| json.trim_matches('"')).unwrap_or_default();
    let prefix = name.strip_suffix("-policy").or_else(|| name.strip_suffix("-driver")).unwrap_or_default();
    if prefix.len() > 16 { prefix.to_owned() } else { NAMES.to_owned() }
}

fn replace(leaves: &Leaves, from: &str, to: &str) -> Leaves {
    leaves.iter().map(|(path, value)| (path.replace(from, to), value.replace(from, to))).collect()
}

fn parse(text: &str, expected: impl Fn(&str, &str) -> Leaves) -> Answers {
    let mut answers = Answers::new();
    let mut names: BTreeMap<(String, String), String> = BTreeMap::new();
    let (mut name, mut versions) = (String::new(), Vec::new());
    for line in text.lines() {
        if let Some(case) = line.strip_prefix("= ") {
            name = case.to_owned();
        } else if let Some(alike) = line.strip_prefix("@ ") {
            versions = alike.split(' ').map(str::to_owned).collect();
            for version in &versions {
                answers.entry(name.clone()).or_default().entry(version.clone()).or_insert_with(|| {
                    let expected = expected(&name, version);
                    let own = self::names(&expected);
                    let objects = Answer::Objects(replace(&expected, &own, NAMES));
                    names.insert((name.clone(), version.clone()), own);
                    objects
                });
            }
        } else {
            for version in &versions {
                if let Some(own) = line.strip_prefix("~ ") {
                    names.insert((name.clone(), version.clone()), own.to_owned());
                } else {
                    apply(line, answers.get_mut(&name).and_then(|case| case.get_mut(version)).unwrap());
                }
            }
        }
    }
    for ((case, version), own) in names {
        if let Some(Answer::Objects(leaves)) = answers.get_mut(&case).and_then(|case| case.get_mut(&version)) {
            *leaves = replace(leaves, NAMES, &own);
        }
    }
    answers
}

fn apply(line: &str, answer: &mut Answer) {
    if let Some(sentence) = line.strip_prefix('!') {
        *answer = Answer::Refused(sentence.trim_start().to_owned());
    } else if let Answer::Objects(leaves) = answer {
        match (line.strip_prefix('-'), line.split_once('\t')) {
            (Some(gone), _) => drop(leaves.remove(gone)),
            (None, Some((path, value))) => drop(leaves.insert(path.to_owned(), value.to_owned())),
            (None, None) => panic!("a recorded line is neither a leaf nor a refusal: {line}"),
        }
    }
}
