//! The file of Spark lines: its form, and the checks of its values.

use std::{collections::BTreeMap, fmt};

use serde::Deserialize;
use serde_saphyr::{Location, Spanned};

use super::{IMAGE, SPARK_VERSION, SparkLine, SparkLines, is_selector, listed};
use crate::{options::SubmissionOptions, submitter::Submitter};

use sparkgate_access::{Entries, Fault, Text};
use sparkgate_spark::SparkVersion;

const IMAGES: [&str; 2] = ["spark.kubernetes.driver.container.image", "spark.kubernetes.executor.container.image"];
/// Since 4.1, the driver's own release is filled in here.
const PLACEHOLDER: &str = "{{SPARK_VERSION}}";
/// The greatest size of the file in bytes.
const LARGEST: usize = 1 << 20;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Document {
    lines: Spanned<Vec<LineDocument>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct LineDocument {
    version: Text,
    image: Option<Text>,
    named_defaults: Option<Vec<Text>>,
    defaults: Option<Entries<String>>,
    driver_pod_template: Option<Text>,
    executor_pod_template: Option<Text>,
}

/// The file of Spark lines can't be used. Its text has one line for each fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SparkLinesError {
    pub faults: Vec<Fault>,
}

impl std::error::Error for SparkLinesError {}

impl fmt::Display for SparkLinesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("these Spark lines can't be used:")?;
        self.faults.iter().try_for_each(|fault| write!(f, "\n  {fault}"))
    }
}

impl From<Fault> for SparkLinesError {
    fn from(fault: Fault) -> Self {
        Self { faults: vec![fault] }
    }
}

impl SparkLines {
    /// Reads the file, if there is one: first its form, then all of its values. Its lines are served in addition to the gateway's
    /// own release. `defaults` are those of `--spark-defaults`.
    ///
    /// # Errors
    /// All faults of the file's values, or the first one of its form; a default of the gateway that selects another release.
    pub fn read(
        text: Option<&str>,
        own: SparkVersion,
        defaults: &BTreeMap<String, String>,
        submitter: &Submitter,
    ) -> Result<Self, SparkLinesError> {
        let mut checked = Checked { own, defaults, submitter, lines: BTreeMap::new(), faults: Vec::new() };
        if let Some(text) = text {
            checked.read(text)?;
        }
        checked.finish()
    }
}

/// The lines that were read so far.
struct Checked<'a> {
    own: SparkVersion,
    defaults: &'a BTreeMap<String, String>,
    submitter: &'a Submitter,
    lines: BTreeMap<sparkgate_spark::SparkLine, SparkLine>,
    faults: Vec<Fault>,
}

impl Checked<'_> {
    fn fault(&mut self, location: &Location, path: String, message: impl fmt::Display) {
        self.faults.push(Fault::at(location, path, message));
    }

    fn read(&mut self, text: &str) -> Result<(), Fault> {
        if text.len() > LARGEST {
            return Err(Fault::in_file(format!("the file has {} bytes, more than {LARGEST}", text.len())));
        }
        let options = serde_saphyr::options! { with_snippet: false };
        let document: Document =
            serde_saphyr::from_str_with_options(text, options).map_err(|error| Fault::from_yaml(&error))?;
        if document.lines.value.is_empty() {
            self.fault(&document.lines.referenced, "lines".to_owned(), "there must be one line at least");
        }
        for (index, line) in document.lines.value.into_iter().enumerate() {
            self.add(&format!("lines[{index}]"), line);
        }
        Ok(())
    }

    fn add(&mut self, path: &str, document: LineDocument) {
        let LineDocument { version: text, image, named_defaults, defaults, .. } = document;
        let version = self.version(path, &text);
        // Its other fields are checked in any case.
        let mut line = SparkLine::bare(version.unwrap_or(self.own));
        for (index, name) in named_defaults.unwrap_or_default().into_iter().enumerate() {
            self.named_defaults(&mut line, &format!("{path}.namedDefaults[{index}]"), &name);
        }
        let templates = [
            ("driverPodTemplate", document.driver_pod_template, "spark.kubernetes.driver.podTemplateFile"),
            ("executorPodTemplate", document.executor_pod_template, "spark.kubernetes.executor.podTemplateFile"),
        ];
        let fields = templates.iter().filter_map(|(name, text, key)| text.as_ref().map(|_| (*name, *key)));
        let fields: Vec<_> = fields.chain(image.as_ref().map(|_| ("image", IMAGE))).collect();
        self.properties(&mut line, &format!("{path}.defaults"), defaults.unwrap_or(Entries(Vec::new())), &fields);
        for (field, name, key) in templates {
            let Some(name) = name else { continue };
            match self.submitter.file(&name.value) {
                Some(file) => {
                    line.templates.insert(name.value.clone(), file.clone());
                    line.defaults.insert(key.to_owned(), name.value);
                }
                None => {
                    let reason = format!("the submitter directory has no file `{}` in files/", name.value);
                    self.fault(&name.referenced, format!("{path}.{field}"), reason);
                }
            }
        }
        if version.is_some() || image.is_some() {
            self.image(&mut line, path, image, &text);
        }
        if let Some(version) = version {
            self.lines.insert(version.line(), line);
        }
    }

    /// Parses a release, of which there is one for each line.
    fn version(&mut self, path: &str, text: &Text) -> Option<SparkVersion> {
        let own = self.own;
        let version = text.value.parse::<SparkVersion>().map_err(|error| error.to_string());
        let version = version.and_then(|version| match self.lines.contains_key(&version.line()) {
            true => Err(format!("line {} has another release already: a line has one", version.line())),
            false if version.line() == own.line() && version != own => {
                Err(format!("the gateway's own release of this line is {own} (--spark-version): name the same one"))
            }
            false => Ok(version),
        });
        version.map_err(|reason| self.fault(&text.referenced, format!("{path}.version"), reason)).ok()
    }

    fn named_defaults(&mut self, line: &mut SparkLine, path: &str, name: &Text) {
        let Some(mut defaults) = self.submitter.named_defaults(&name.value).cloned() else {
            let reason = format!("the submitter directory has no `{}.conf` in defaults/", name.value);
            return self.fault(&name.referenced, path.to_owned(), reason);
        };
        // The same file may be for requests that select it, and with it the version.
        if let Some(version) = defaults.remove(SPARK_VERSION)
            && !line.version.is_named(&version)
        {
            let reason = format!("`{}.conf` sets {SPARK_VERSION} to {version}: it is for another line", name.value);
            self.fault(&name.referenced, path.to_owned(), reason);
        }
        line.defaults.extend(defaults);
    }

    /// Adds properties. `fields` are properties for which the line has fields, by their names.
    fn properties(&mut self, line: &mut SparkLine, path: &str, entries: Entries<String>, fields: &[(&str, &str)]) {
        for (key, value) in entries.0 {
            let own = BTreeMap::from([(key.value.clone(), value)]);
            let reason = if let Some((field, _)) = fields.iter().find(|(_, property)| *property == key.value) {
                Some(format!("`{field}` sets it already: remove one of them"))
            } else if is_selector(&key.value) {
                Some("the defaults of a line can't select a version or named defaults".to_owned())
            } else if !key.value.starts_with("spark.") || key.value.chars().any(|c| c.is_whitespace() || c.is_control())
            {
                Some("the name of a property begins with `spark.` and has no spaces".to_owned())
            } else {
                SubmissionOptions::take(&mut own.clone()).err().map(|refusal| refusal.reason)
            };
            match reason {
                Some(reason) => self.fault(&key.referenced, format!("{path}[{:?}]", key.value), reason),
                None => line.defaults.extend(own),
            }
        }
    }

    /// Sets the image. Without one, the gateway's own default would be used, which is an image of the gateway's own release.
    fn image(&mut self, line: &mut SparkLine, path: &str, image: Option<Text>, version: &Text) {
        let gateways = self.defaults;
        if let Some(image) = image {
            if image.value.trim().is_empty() || image.value.chars().any(char::is_whitespace) {
                self.fault(&image.referenced, format!("{path}.image"), "the name of an image has no spaces");
            }
            line.defaults.insert(IMAGE.to_owned(), image.value);
        }
        if let Some(image) = line.defaults.get(IMAGE).cloned() {
            // These have precedence in Spark, so those of the gateway would hide the line's image.
            for key in IMAGES.into_iter().filter(|key| gateways.contains_key(*key)) {
                line.defaults.entry(key.to_owned()).or_insert_with(|| image.clone());
            }
            return;
        }
        let fills_in = line.version >= SparkVersion::V4_1;
        let mut unfit = [IMAGE].into_iter().chain(IMAGES).filter(|key| !line.defaults.contains_key(*key));
        let unfit = unfit.find_map(|key| gateways.get(key).filter(|image| !(fills_in && image.contains(PLACEHOLDER))));
        if let Some(image) = unfit {
            let reason = format!("`image` is missing: submissions would get the gateway's default, {image}");
            self.fault(&version.referenced, path.to_owned(), reason);
        }
    }

    fn finish(self) -> Result<SparkLines, SparkLinesError> {
        let Self { own, defaults, mut lines, mut faults, .. } = self;
        lines.entry(own.line()).or_insert_with(|| SparkLine::bare(own));
        let lines: Vec<_> = lines.into_values().collect();
        let selected = defaults.get(SPARK_VERSION).map(String::as_str);
        let is_default = |line: &&SparkLine| match selected {
            Some(text) => line.version.is_named(text),
            None => line.version == own,
        };
        let default = lines.iter().find(is_default).cloned();
        if default.is_none() && faults.is_empty() {
            let (selected, served) = (selected.unwrap_or_default(), listed(lines.iter().map(|line| line.version)));
            let reason = format!("--spark-defaults sets {SPARK_VERSION} to {selected}; this gateway serves {served}");
            faults.push(Fault::in_file(reason));
        }
        faults.sort_by_key(|fault| (fault.line, fault.column));
        match default {
            Some(default) if faults.is_empty() => Ok(SparkLines { default, lines }),
            _ => Err(SparkLinesError { faults }),
        }
    }
}
