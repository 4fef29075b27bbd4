//! The files of a submitter besides the request: named defaults, templates, configuration. Clients of a gateway can't bring
//! them, so the operator provides a directory. `docs/use/submitter.md` describes it.

pub mod read;

use std::{borrow::Cow, collections::BTreeMap, fmt};

use k8s_openapi::ByteString;

use sparkgate_spark::{CreateSubmissionRequest, Refusal, SubmitterFiles};

/// The property with which a request selects named defaults. It is not Spark's, and the driver never sees it.
const DEFAULTS: &str = "spark.sparkgate.defaults";

/// The origin of the defaults that apply to every request.
pub const SPARK_DEFAULTS: &str = "spark-defaults";

/// Prefix of the gateway's own properties.
pub const OWN: &str = "spark.sparkgate.";

type Properties = BTreeMap<String, String>;
type Files = BTreeMap<String, ByteString>;

/// The properties of a request with all defaults, and the origin of each default: `spark-defaults`, or `defaults/<name>` for
/// a named one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Completed {
    pub properties: Properties,
    pub origins: BTreeMap<String, String>,
}

/// A submitter's directory, read into memory.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Submitter {
    /// Named `spark-defaults.conf` files, by their names without `.conf`.
    defaults: BTreeMap<String, Properties>,
    /// Files that a property can refer to by name.
    files: Files,
    spark_conf: Files,
    hadoop_conf: Option<Files>,
}

impl Submitter {
    /// Removes the named defaults and the files that a tenant may not use.
    pub fn retain(&mut self, defaults: impl Fn(&str) -> bool, files: impl Fn(&str) -> bool) {
        self.defaults.retain(|name, _| defaults(name));
        self.files.retain(|name, _| files(name));
    }

    /// Returns all named defaults.
    pub fn all_named_defaults(&self) -> impl Iterator<Item = (&str, &Properties)> {
        self.defaults.iter().map(|(name, properties)| (name.as_str(), properties))
    }

    /// Returns the named defaults with this name.
    pub fn named_defaults(&self, name: &str) -> Option<&Properties> {
        self.defaults.get(name)
    }

    /// Returns the content of a file that properties can name.
    pub fn file(&self, name: &str) -> Option<&ByteString> {
        self.files.get(name)
    }

    /// Returns the defaults of a request: `lowest`, which apply to every request, each with its origin, the weakest first, and the
    /// named defaults that the request selects. The lowest may select named defaults for requests that select none. Of the names
    /// in a list, a later one wins.
    ///
    /// # Errors
    /// A [`Refusal`] of an unknown name.
    pub fn layers<'a>(
        &'a self,
        own: &Properties,
        lowest: impl IntoIterator<Item = (&'a str, &'a Properties)>,
    ) -> Result<Layers<'a>, Refusal> {
        let mut layers: Vec<(Cow<'a, str>, &Properties)> = Vec::new();
        layers.extend(lowest.into_iter().map(|(origin, defaults)| (Cow::Borrowed(origin), defaults)));
        let chosen = own.get(DEFAULTS).or_else(|| layers.iter().rev().find_map(|(_, defaults)| defaults.get(DEFAULTS)));
        // The last occurrence of a repeated name counts.
        let mut places: BTreeMap<&str, usize> = BTreeMap::new();
        let names = chosen.map(String::as_str).unwrap_or_default().split(',').map(str::trim);
        for (place, name) in names.enumerate().filter(|(_, name)| !name.is_empty()) {
            let (name, _) = self.defaults.get_key_value(name).ok_or_else(|| self.no_such_defaults(name))?;
            places.insert(name, place);
        }
        let mut names: Vec<(usize, &str)> = places.into_iter().map(|(name, place)| (place, name)).collect();
        names.sort_unstable();
        let named = names
            .iter()
            .filter_map(|(_, name)| Some((Cow::Owned(format!("defaults/{name}")), self.defaults.get(*name)?)));
        layers.extend(named);
        Ok(Layers(layers))
    }

    /// Returns the properties of a request, completed by its defaults.
    ///
    /// # Errors
    /// As for [`Submitter::layers`].
    pub fn complete(&self, own: Properties, lowest: &[(&str, &Properties)]) -> Result<Completed, Refusal> {
        Ok(self.layers(&own, lowest.iter().copied())?.complete(own))
    }

    fn no_such_defaults(&self, name: &str) -> Refusal {
        let names: Vec<&str> = self.defaults.keys().map(String::as_str).collect();
        let there_are = match names.as_slice() {
            [] => "it has none".to_owned(),
            names => format!("it has {}", names.join(", ")),
        };
        Refusal::property(DEFAULTS, format!("`{name}` is not among the defaults of this gateway: {there_are}"))
    }

    /// Turns a template field that holds the name of a file into the corresponding property.
    pub fn name_templates(&self, request: &mut CreateSubmissionRequest) {
        for (template, key) in [
            (&mut request.driver_pod_template, "spark.kubernetes.driver.podTemplateFile"),
            (&mut request.executor_pod_template, "spark.kubernetes.executor.podTemplateFile"),
        ] {
            if let Some(name) =
                template.take_if(|value| value.as_str().is_some_and(|name| self.files.contains_key(name)))
            {
                let name = name.as_str().unwrap_or_default().to_owned();
                request.spark_properties.insert(key.to_owned(), name);
            }
        }
    }

    /// Returns the files that this submission uses: both configurations, and the files that its properties name.
    pub fn files_for(&self, request: &CreateSubmissionRequest) -> SubmitterFiles {
        let named = |value| self.files.get_key_value(value).map(|(name, file)| (name.clone(), file.clone()));
        SubmitterFiles {
            spark_conf_dir: self.spark_conf.clone(),
            hadoop_conf_dir: self.hadoop_conf.clone(),
            named: request.spark_properties.values().filter_map(named).collect(),
        }
    }
}

/// The defaults of a request with their origins, the weakest first.
#[derive(Debug)]
pub struct Layers<'a>(Vec<(Cow<'a, str>, &'a Properties)>);

impl<'a> Layers<'a> {
    /// Returns the strongest default of a property, and its origin.
    pub fn get(&self, key: &str) -> Option<(&str, &'a str)> {
        self.0.iter().rev().find_map(|(origin, defaults)| Some((&**origin, defaults.get(key)?.as_str())))
    }

    /// Adds defaults that are stronger than those of every request, and weaker than all others.
    pub fn add_above_common(&mut self, origin: &'a str, defaults: &'a Properties) {
        let at = self.0.iter().take_while(|(origin, _)| origin == SPARK_DEFAULTS).count();
        self.0.insert(at, (Cow::Borrowed(origin), defaults));
    }

    /// Completes the properties of a request.
    pub fn complete(self, mut own: Properties) -> Completed {
        own.remove(DEFAULTS);
        let mut completed = Completed::default();
        for (origin, defaults) in self.0 {
            for (key, value) in defaults.iter().filter(|(key, _)| *key != DEFAULTS) {
                completed.properties.insert(key.clone(), value.clone());
                completed.origins.insert(key.clone(), (*origin).to_owned());
            }
        }
        completed.origins.retain(|key, _| !own.contains_key(key));
        completed.properties.extend(own);
        completed
    }
}

/// Shows names only: there are keytabs among the files.
impl fmt::Debug for Submitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Submitter")
            .field("defaults", &self.defaults.keys())
            .field("files", &self.files.keys())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
