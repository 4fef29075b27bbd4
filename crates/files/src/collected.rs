//! Logs that the operator's collector wrote: one object for each container, under a path that a template gives.

use bytes::Bytes;
use futures::{StreamExt, stream::BoxStream};

use super::{Error, FileStore, open::OpenError};

/// What stands for a part of the path.
const FIELDS: [&str; 6] = ["{namespace}", "{pod}", "{uid}", "{container}", "{submission}", "{attempt}"];
/// The bytes that are searched for line breaks at once.
const STEP: u64 = 1 << 20;

/// Whose log is looked for.
#[derive(Debug, Clone)]
pub struct CollectedFrom<'a> {
    pub namespace: &'a str,
    pub pod: &'a str,
    pub uid: &'a str,
    pub container: &'a str,
    pub submission: &'a str,
    pub attempt: i32,
}

/// A store that a collector writes to.
#[derive(Debug, Clone)]
pub struct CollectedLogs {
    store: FileStore,
    template: String,
}

/// A log that was collected.
#[derive(Debug, Clone)]
pub struct CollectedLog {
    store: FileStore,
    key: String,
    size: u64,
}

impl CollectedLogs {
    /// Opens the store of a template, such as `s3://logs/{namespace}/{pod}/{container}.log`.
    ///
    /// # Errors
    /// [`OpenError`]: it is no URL, or names no single pod.
    pub fn open(template: &str) -> Result<Self, OpenError> {
        let wrong = || OpenError::Template(template.to_owned());
        let start = template.find('{').and_then(|at| template[..at].rfind('/')).ok_or_else(wrong)?;
        let (base, path) = (&template[..start], &template[start + 1..]);
        let is_for_one = path.contains("{uid}") || (path.contains("{pod}") && path.contains("{namespace}"));
        let plain = FIELDS.iter().fold(path.to_owned(), |path, field| path.replace(field, ""));
        // A bucket is a part of its URL: a field there would let a pod choose the store.
        let is_host = base.ends_with(":/") || base.ends_with("://");
        if !is_for_one || plain.contains(['{', '}']) || is_host {
            return Err(wrong());
        }
        let base = if base.is_empty() { "/" } else { base };
        Ok(Self { store: FileStore::open(base)?, template: path.to_owned() })
    }

    /// Returns the template, without what may be secret in it.
    pub fn name(&self) -> String {
        format!("{}/{}", self.store.name().trim_end_matches('/'), self.template)
    }

    /// Looks for a log.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn find(&self, of: &CollectedFrom<'_>) -> Result<Option<CollectedLog>, Error> {
        let attempt = of.attempt.to_string();
        let values = [of.namespace, of.pod, of.uid, of.container, of.submission, &attempt];
        let key =
            FIELDS.iter().zip(values).fold(self.template.clone(), |key, (field, value)| key.replace(field, value));
        let size = self.store.size(&key).await?;
        Ok(size.map(|size| CollectedLog { store: self.store.clone(), key, size }))
    }
}

impl CollectedLog {
    /// Returns the log from a byte on.
    ///
    /// # Errors
    /// As for [`FileStore::read`].
    pub async fn read(&self, from: u64) -> Result<BoxStream<'static, Result<Bytes, Error>>, Error> {
        self.store.read(&self.key, from..self.size).await
    }

    /// Returns the byte at which the last `count` lines begin. An unterminated last line counts.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn tail(&self, count: u64) -> Result<u64, Error> {
        let (mut left, mut end, mut is_last) = (count, self.size, true);
        while end > 0 && left > 0 {
            let start = end.saturating_sub(STEP);
            let mut parts = self.store.read(&self.key, start..end).await?;
            let mut text = Vec::new();
            while let Some(part) = parts.next().await {
                text.extend_from_slice(&part?);
            }
            for (at, byte) in text.iter().enumerate().rev() {
                // The break of the last line begins no other.
                let is_end = std::mem::take(&mut is_last);
                if *byte != b'\n' || is_end {
                    continue;
                }
                left -= 1;
                if left == 0 {
                    return Ok(start + at as u64 + 1);
                }
            }
            end = start;
        }
        Ok(if count == 0 { self.size } else { 0 })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use futures::TryStreamExt;

    use super::*;

    fn from<'a>(pod: &'a str, container: &'a str) -> CollectedFrom<'a> {
        CollectedFrom { namespace: "team", pod, uid: "u-1", container, submission: "driver-1", attempt: 2 }
    }

    #[tokio::test]
    async fn a_template_leads_to_the_object_of_a_container() {
        let dir = tempfile::tempdir().unwrap();
        let template = format!("{}/{{namespace}}/{{pod}}_{{uid}}/{{container}}.{{attempt}}.log", dir.path().display());
        let logs = CollectedLogs::open(&template).unwrap();
        let folder = dir.path().join("team/pi_u-1");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("main.2.log"), "one\n\nthree\nfour").unwrap();
        assert!(logs.find(&from("pi", "other")).await.unwrap().is_none());
        assert!(logs.find(&from("../pi", "main")).await.unwrap().is_none(), "no value leaves its place");
        let log = logs.find(&from("pi", "main")).await.unwrap().unwrap();
        for (count, expected) in
            [(0, ""), (1, "four"), (2, "three\nfour"), (3, "\nthree\nfour"), (9, "one\n\nthree\nfour")]
        {
            let from = log.tail(count).await.unwrap();
            let parts: Vec<Bytes> = log.read(from).await.unwrap().try_collect().await.unwrap();
            assert_eq!(parts.concat(), expected.as_bytes(), "{count}");
        }
        fs::write(folder.join("main.2.log"), "one\ntwo\n").unwrap();
        let log = logs.find(&from("pi", "main")).await.unwrap().unwrap();
        assert_eq!(log.tail(1).await.unwrap(), 4);
    }

    #[test]
    fn a_template_names_one_pod_and_a_fixed_store() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().display();
        for good in [format!("{dir}/{{uid}}"), format!("{dir}/a/{{namespace}}/x-{{pod}}.log")] {
            assert!(CollectedLogs::open(&good).is_ok(), "{good}");
        }
        for bad in [
            format!("{dir}/plain"),
            format!("{dir}/{{pod}}"),
            format!("{dir}/{{uid}}/{{other}}"),
            "s3://{namespace}/{uid}".to_owned(),
            String::new(),
        ] {
            assert!(matches!(CollectedLogs::open(&bad), Err(OpenError::Template(_))), "{bad}");
        }
    }
}
