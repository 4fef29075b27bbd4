//! The configuration that every feature step reads (Spark's `KubernetesDriverConf`).

use std::{borrow::Cow, collections::BTreeMap, ops::Deref};

use k8s_openapi::ByteString;

use crate::{
    conf::SparkConf,
    context::SubmitContext,
    names::{DriverNames, app_name_label},
    refusal::Refusal,
    submit::Application,
    version::SparkVersion,
};

/// An application with the context of its submission.
pub(crate) struct DriverConf<'a> {
    pub(crate) app: Application,
    pub(crate) version: SparkVersion,
    pub(crate) names: &'a DriverNames,
    pub(crate) context: &'a SubmitContext<'a>,
}

/// Gives direct access to the properties, which steps read most.
impl Deref for DriverConf<'_> {
    type Target = SparkConf;

    fn deref(&self) -> &SparkConf {
        &self.app.conf
    }
}

impl<'a> DriverConf<'a> {
    pub(crate) fn new(app: Application, context: &'a SubmitContext<'a>) -> Self {
        Self { app, version: context.version, names: context.names, context }
    }

    pub(crate) fn namespace(&self) -> &str {
        self.get("spark.kubernetes.namespace").unwrap_or("default")
    }

    /// Returns Spark's own labels of the driver pod. They override the user's and a template's.
    fn preset_labels(&self) -> [(&'static str, String); 4] {
        [
            ("spark-version", self.version.to_string()),
            ("spark-app-selector", self.names.app_id.clone()),
            ("spark-app-name", app_name_label(&self.app.name)),
            ("spark-role", "driver".to_owned()),
        ]
    }

    /// Returns all labels that the configuration gives the driver pod. They are also the selector of its Service.
    ///
    /// # Errors
    /// A custom label has the key of one of Spark's own, which is not allowed.
    pub(crate) fn labels(&self) -> Result<BTreeMap<String, String>, Refusal> {
        let prefix = "spark.kubernetes.driver.label.";
        let mut labels = self.with_prefix(prefix);
        // Before 4.0 only annotations supported placeholders.
        if self.version >= SparkVersion::V4_0 {
            labels.values_mut().for_each(|value| *value = self.substitute_ids(value));
        }
        for (key, value) in self.preset_labels() {
            if labels.insert(key.to_owned(), value).is_some() {
                let reason =
                    format!("Label with key {key} is not allowed as it is reserved for Spark bookkeeping operations.");
                return Err(Refusal::property(&format!("{prefix}{key}"), reason));
            }
        }
        Ok(labels)
    }

    pub(crate) fn annotations(&self) -> BTreeMap<String, String> {
        let annotations = self.with_prefix("spark.kubernetes.driver.annotation.");
        annotations.into_iter().map(|(key, value)| (key, self.substitute_ids(&value))).collect()
    }

    /// Returns the label by which a driver finds the objects of its application, and deletes them at its end.
    pub(crate) fn app_selector(&self) -> BTreeMap<String, String> {
        BTreeMap::from([("spark-app-selector".to_owned(), self.names.app_id.clone())])
    }

    /// Returns the submitter's file that a property names, with its name.
    ///
    /// For `spark-submit` the value is a path on its own disk. Here it is the bare name of a file that the operator gave the
    /// gateway: a client must not choose what the gateway reads.
    ///
    /// # Errors
    /// The value is not one of those names; `instead` tells the client about an alternative.
    pub(crate) fn submitter_file(&self, key: &str, instead: &str) -> Result<Option<(&str, &'a ByteString)>, Refusal> {
        let Some(name) = self.get(key) else { return Ok(None) };
        match self.context.submitter.named.get(name) {
            Some(content) => Ok(Some((name, content))),
            None => Err(Refusal::property(
                key,
                format!(
                    "`{name}` is not one of the files that the operator gave this gateway. The value must be the bare name of \
                     such a file: the gateway never opens a path from a request. Ask the operator to add the file, or {instead}."
                ),
            )),
        }
    }

    /// Does the same for a text file.
    ///
    /// # Errors
    /// The value is not one of those names, or the file isn't UTF-8.
    pub(crate) fn submitter_text(&self, key: &str, instead: &str) -> Result<Option<(&str, Cow<'a, str>)>, Refusal> {
        let Some((name, content)) = self.submitter_file(key, instead)? else { return Ok(None) };
        match self.text(content) {
            Some(text) => Ok(Some((name, text))),
            None => Err(Refusal::property(key, format!("The file `{name}` is not UTF-8 text."))),
        }
    }

    /// Returns a file of the submitter as text. Spark refuses a file that isn't UTF-8 only since 4.1; before that, Java
    /// inserted replacement characters.
    pub(crate) fn text<'b>(&self, content: &'b ByteString) -> Option<Cow<'b, str>> {
        match self.version >= SparkVersion::V4_1 {
            true => std::str::from_utf8(&content.0).ok().map(Cow::Borrowed),
            false => Some(String::from_utf8_lossy(&content.0)),
        }
    }

    /// Substitutes placeholders as `Utils.substituteAppNExecIds` does, with the driver's empty executor id.
    fn substitute_ids(&self, text: &str) -> String {
        text.replace("{{APP_ID}}", &self.names.app_id).replace("{{EXECUTOR_ID}}", "")
    }
}
