//! A case: one request, and the files of its submitter.

use std::{collections::BTreeMap, fs, path::Path};

use base64::{Engine, prelude::BASE64_STANDARD};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sparkgate::spark::CreateSubmissionRequest;

/// The releases that are compared: the last patch release of each line.
pub(crate) const VERSIONS: [&str; 5] = ["3.5.9", "4.0.5", "4.1.4", "4.2.1", "4.3.0"];
/// The API server of every request that names none. The recorder replaces it by its own address.
pub(crate) const MASTER: &str = "kubernetes.example:6443";
pub(crate) const SPARK_SUBMIT: &str = "org.apache.spark.deploy.SparkSubmit";

#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) request: CreateSubmissionRequest,
    pub(crate) submitter: Submitter,
    /// The submitter's `spark-defaults.conf`.
    pub(crate) defaults: BTreeMap<String, String>,
    versions: Vec<String>,
}

/// Files by name. A text that begins with `base64:` represents bytes that are not UTF-8.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(crate) struct Submitter {
    /// In its working directory; properties name them by bare file name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) files: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) conf_dir: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hadoop_conf: Option<BTreeMap<String, String>>,
}

/// A case as it is written in its file; [`Written::case`] adds the rest.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Written {
    /// The request itself names an image, or none.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) bare: bool,
    pub(crate) request: Map<String, Value>,
    #[serde(skip_serializing_if = "Submitter::is_empty")]
    pub(crate) submitter: Submitter,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) defaults: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) only: Vec<String>,
}

impl Submitter {
    fn is_empty(&self) -> bool {
        self.files.is_empty() && self.conf_dir.is_empty() && self.hadoop_conf.is_none()
    }
}

impl Written {
    pub(crate) fn case(&self, name: &str) -> Case {
        let mut fields = self.request.clone();
        let text = |value: &str| Value::from(value);
        let command_line = fields.get("mainClass").and_then(Value::as_str) == Some(SPARK_SUBMIT);
        if !fields.contains_key("appResource") {
            if !fields.contains_key("mainClass") {
                fields.insert("mainClass".into(), text("org.example.Main"));
            }
            let resource = if command_line { "" } else { "local:///opt/spark/examples/jars/app.jar" };
            fields.insert("appResource".into(), text(resource));
        }
        for (field, default) in [
            ("clientSparkVersion", text("4.3.0")),
            ("mainClass", text("")),
            ("sparkProperties", Value::Object(Map::new())),
        ] {
            fields.entry(field).or_insert(default);
        }
        let mut request: CreateSubmissionRequest =
            serde_json::from_value(Value::Object(fields)).unwrap_or_else(|error| panic!("case {name}: {error}"));
        let properties = &mut request.spark_properties;
        properties.entry("spark.master".into()).or_insert_with(|| format!("k8s://http://{MASTER}"));
        if !self.bare {
            properties.entry("spark.kubernetes.container.image".into()).or_insert_with(|| "spark:test".into());
        }
        let versions = if self.only.is_empty() { VERSIONS.map(str::to_owned).to_vec() } else { self.only.clone() };
        Case {
            name: name.to_owned(),
            request,
            submitter: self.submitter.clone(),
            defaults: self.defaults.clone(),
            versions,
        }
    }
}

impl Case {
    pub(crate) fn is_generated(&self) -> bool {
        self.name.starts_with("generated-")
    }

    pub(crate) fn is_for(&self, version: &str) -> bool {
        self.versions.iter().any(|own| own == version)
    }

    /// Returns the text of the submitter's `spark-defaults.conf`.
    pub(crate) fn defaults_file(&self) -> String {
        self.defaults.iter().map(|(key, value)| format!("{key} {value}\n")).collect()
    }

    /// Returns the minimal request, with which all other answers are compared.
    pub(crate) fn minimal() -> Self {
        Written::default().case("minimal")
    }
}

/// Returns the hand-written cases by group (the name of their file).
pub(crate) fn hand_written() -> BTreeMap<String, Vec<Case>> {
    written()
        .into_iter()
        .map(|(group, cases)| (group, cases.iter().map(|(name, case)| case.case(name)).collect()))
        .collect()
}

fn written() -> BTreeMap<String, BTreeMap<String, Written>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/parity/cases");
    let mut groups = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "json") {
            let cases = serde_json::from_str(&fs::read_to_string(&path).unwrap())
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            groups.insert(path.file_stem().unwrap().to_string_lossy().into_owned(), cases);
        }
    }
    groups
}

pub(crate) fn bytes(text: &str) -> Vec<u8> {
    match text.strip_prefix("base64:") {
        Some(encoded) => BASE64_STANDARD.decode(encoded).unwrap(),
        None => text.as_bytes().to_vec(),
    }
}
