//! The files that arrive together with a submission. Their hashes are known once they have arrived.

use std::{collections::BTreeMap, fmt};

use bytes::Bytes;
use futures::Stream;
use percent_encoding::{percent_decode_str, utf8_percent_encode};

use super::{
    FileError, Files, count,
    reference::{ESCAPED, SCHEME, is_name, names_of_form, with_references},
    tenant,
    upload::{Existing, Uploaded, hex, outcome, receive},
};
use sparkgate_spark::{CreateSubmissionRequest, Refusal};
use sparkgate_tenancy::{session::Session, tenancy::NAMESPACE};

/// The files that a request names, `sparkgate-file:<name>`, and those of them that have arrived.
#[derive(Debug)]
pub struct FormFiles {
    /// The names, without escapes, and the field in which each was found first.
    wanted: BTreeMap<String, String>,
    /// The reference of each file that has arrived.
    arrived: BTreeMap<String, String>,
    namespace: Option<String>,
}

impl FormFiles {
    /// Finds the files that a request names.
    ///
    /// # Errors
    /// A name that no file can have.
    pub fn from_request(request: &CreateSubmissionRequest) -> Result<Self, Refusal> {
        let mut wanted = BTreeMap::new();
        for (field, text) in texts(request) {
            for name in names_of_form(text) {
                if !is_name(name) {
                    let reason = format!(
                        "`{SCHEME}:{name}` names no file of the form: a name has letters, digits and . _ - ~ + @, and other \
                         characters as %20"
                    );
                    return Err(Refusal::field(field, reason));
                }
                let name = percent_decode_str(name).decode_utf8_lossy().into_owned();
                wanted.entry(name).or_insert_with(|| field.clone());
            }
        }
        let namespace = request.spark_properties.get(NAMESPACE).cloned();
        Ok(Self { wanted, arrived: BTreeMap::new(), namespace })
    }

    /// Checks the name of a file that is about to arrive.
    ///
    /// # Errors
    /// The request doesn't name it, or it has arrived already.
    pub fn check(&self, name: &str) -> Result<(), String> {
        if self.arrived.contains_key(name) {
            return Err(format!("the form has two files with the name {name:?}"));
        }
        if !self.wanted.contains_key(name) {
            let written = utf8_percent_encode(name, ESCAPED);
            return Err(format!("the request doesn't use the file {name:?}: it can name it as {SCHEME}:{written}"));
        }
        Ok(())
    }

    /// Writes the references of the files into the request.
    ///
    /// # Errors
    /// A file hasn't arrived.
    pub fn write_into(&self, request: &mut CreateSubmissionRequest) -> Result<(), Refusal> {
        if let Some((name, field)) = self.wanted.iter().find(|(name, _)| !self.arrived.contains_key(*name)) {
            return Err(Refusal::field(field.clone(), format!("the form has no file with the name {name:?}")));
        }
        let reference = |name: &str| {
            let decoded = percent_decode_str(name).decode_utf8_lossy();
            self.arrived.get(decoded.as_ref()).cloned()
        };
        let write = |text: &mut String| {
            if let Some(written) = with_references(text, reference) {
                *text = written;
            }
        };
        write(&mut request.app_resource);
        request.app_args.iter_mut().for_each(write);
        request.spark_properties.values_mut().for_each(write);
        Ok(())
    }
}

/// Returns the texts of a request that may name files, each with its field.
fn texts(request: &CreateSubmissionRequest) -> Vec<(String, &str)> {
    let args = request.app_args.iter().enumerate().map(|(at, text)| (format!("appArgs[{at}]"), text.as_str()));
    let properties = request.spark_properties.iter().map(|(key, text)| (Refusal::property_field(key), text.as_str()));
    [("appResource".to_owned(), request.app_resource.as_str())].into_iter().chain(args).chain(properties).collect()
}

impl Files {
    /// Keeps a file of a form, whatever its hash is.
    ///
    /// The future must not be dropped before it is ready.
    ///
    /// # Errors
    /// [`FileError`]: nothing of this file is kept.
    pub async fn upload_of_form<E: fmt::Display>(
        &self,
        caller: &Session,
        form: &mut FormFiles,
        name: &str,
        content: impl Stream<Item = Result<Bytes, E>> + Send,
    ) -> Result<(), FileError> {
        let uploaded = self.upload_unannounced(caller, form.namespace.as_deref(), content).await;
        count(outcome(&uploaded));
        let Uploaded { sha256, .. } = uploaded?;
        let reference = format!("{SCHEME}:/{sha256}/{}", utf8_percent_encode(name, ESCAPED));
        form.arrived.insert(name.to_owned(), reference);
        Ok(())
    }

    async fn upload_unannounced<E: fmt::Display>(
        &self,
        caller: &Session,
        namespace: Option<&str>,
        content: impl Stream<Item = Result<Bytes, E>> + Send,
    ) -> Result<Uploaded, FileError> {
        let tenant = tenant(caller, namespace)?;
        let kept = self.kept()?;
        kept.check_owner().await?;
        let largest = kept.settings.largest;
        let _place = self.place(tenant, caller).await?;
        self.check_quota(tenant, 0).await?;
        let mut upload = kept.objects.begin(&tenant.name);
        if let Err(error) = receive(&mut upload, (largest, largest, kept.settings.pace), content).await {
            upload.abort().await;
            return Err(error);
        }
        // A file whose object was deleted by another program is repaired.
        let lost = match self.existing(kept, tenant, &hex(&upload.digest())).await? {
            Existing::Here(uploaded) => {
                upload.abort().await;
                return Ok(uploaded);
            }
            Existing::Lost(object) => Some(object),
            Existing::None => None,
        };
        self.keep(kept, tenant, caller, upload, None, lost.as_deref()).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_a_form_are_found_wherever_a_request_names_them() {
        let mut request = CreateSubmissionRequest {
            app_resource: "sparkgate-file:job.py".to_owned(),
            app_args: vec!["--conf".to_owned(), "spark.files=sparkgate-file:a%20b.txt#c,local:///x".to_owned()],
            ..Default::default()
        };
        let kept = format!("sparkgate-file:/{}/kept.jar", "a".repeat(64));
        let jars = format!("{kept},sparkgate-file:one.jar,sparkgate-file:two.jar");
        request.spark_properties.insert("spark.jars".to_owned(), jars);
        let expected = ["a b.txt", "job.py", "one.jar", "two.jar"].map(str::to_owned);
        assert!(FormFiles::from_request(&request).unwrap().wanted.into_keys().eq(expected.clone()));

        let mut form = FormFiles::from_request(&request).unwrap();
        assert!(
            form.check("job.py").is_ok() && form.check("other.py").unwrap_err().contains("sparkgate-file:other.py")
        );
        let missing = form.write_into(&mut request.clone()).unwrap_err();
        assert_eq!(missing.field, "appArgs[1]");
        for name in expected {
            form.arrived.insert(name.clone(), format!("sparkgate-file:/bb/{}", name.replace(' ', "%20")));
        }
        assert!(form.check("job.py").unwrap_err().contains("two files"));
        form.write_into(&mut request).unwrap();
        assert_eq!(request.app_resource, "sparkgate-file:/bb/job.py");
        assert_eq!(request.app_args[1], "spark.files=sparkgate-file:/bb/a%20b.txt#c,local:///x");
        let jars = &request.spark_properties["spark.jars"];
        assert_eq!(*jars, format!("{kept},sparkgate-file:/bb/one.jar,sparkgate-file:/bb/two.jar"));

        request.app_resource = "sparkgate-file:".to_owned();
        assert_eq!(FormFiles::from_request(&request).unwrap_err().field, "appResource");
    }
}
