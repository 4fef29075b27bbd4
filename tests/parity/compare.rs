//! Compares two answers leaf by leaf, and groups equal differences of many cases.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
};

use crate::answer::Answer;

/// One leaf that differs; `refusal` is the path of a refused case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Difference {
    pub(crate) path: String,
    pub(crate) ours: String,
    pub(crate) sparks: String,
}

pub(crate) fn differences(ours: &Answer, sparks: &Answer) -> Vec<Difference> {
    let refusal = |ours: &str, sparks: &str| {
        vec![Difference { path: "refusal".into(), ours: ours.to_owned(), sparks: sparks.to_owned() }]
    };
    match (ours, sparks) {
        (Answer::Refused(ours), Answer::Refused(sentence)) if ours.contains(sentence.as_str()) => Vec::new(),
        (Answer::Refused(ours), Answer::Refused(sentence)) => refusal(ours, sentence),
        (Answer::Refused(ours), Answer::Objects(_)) => refusal(ours, "takes it"),
        (Answer::Objects(_), Answer::Refused(sentence)) => refusal("takes it", &format!("refuses: {sentence}")),
        (Answer::Objects(ours), Answer::Objects(sparks)) => {
            let paths: BTreeSet<&String> = ours.keys().chain(sparks.keys()).collect();
            let show = |value: Option<&String>| value.map_or_else(|| "nothing".to_owned(), String::clone);
            let differ = paths.into_iter().filter(|path| ours.get(*path) != sparks.get(*path));
            differ
                .map(|path| Difference {
                    path: path.clone(),
                    ours: show(ours.get(path)),
                    sparks: show(sparks.get(path)),
                })
                .collect()
        }
    }
}

/// Differences of many cases, as a readable report.
#[derive(Debug, Default)]
pub(crate) struct Report {
    by_path: BTreeMap<String, Vec<(String, Difference)>>,
    cases: BTreeSet<String>,
}

impl Report {
    pub(crate) fn add(&mut self, case: &str, version: &str, differences: Vec<Difference>) {
        for difference in differences {
            self.cases.insert(case.to_owned());
            self.by_path.entry(difference.path.clone()).or_default().push((format!("{case} ({version})"), difference));
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_path.is_empty()
    }
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut paths: Vec<_> = self.by_path.iter().collect();
        paths.sort_by_key(|(_, found)| std::cmp::Reverse(found.len()));
        let mut text = String::new();
        for (path, found) in paths {
            let mut values: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
            for (place, difference) in found {
                values.entry((&difference.ours, &difference.sparks)).or_default().push(place);
            }
            let _ = writeln!(text, "{path}: differs in {} answers", found.len());
            let shown = if path == "refusal" { usize::MAX } else { 4 };
            for ((ours, sparks), places) in values.iter().take(shown) {
                let _ = writeln!(text, "    {}\n        ours   {ours}\n        Spark  {sparks}", few(places));
            }
            if values.len() > shown {
                let _ = writeln!(text, "    and {} more pairs of values", values.len() - shown);
            }
        }
        write!(f, "{text}{} cases differ", self.cases.len())
    }
}

fn few(places: &[&str]) -> String {
    match places {
        [a, b, c, rest @ ..] if !rest.is_empty() => format!("{a}, {b}, {c} and {} more", rest.len()),
        all => all.join(", "),
    }
}
