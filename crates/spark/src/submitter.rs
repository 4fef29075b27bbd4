//! Files that spark-submit would read from the submitter's disk. A gateway can't read the disks of its clients: the operator
//! provides the files, and they are stored with the submission, so that every attempt to launch it sees the same ones.

use std::{collections::BTreeMap, fmt};

use k8s_openapi::ByteString;
use serde::{Deserialize, Serialize};

/// Files of the submitter by their names, without any folder.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SubmitterFiles {
    /// `SPARK_CONF_DIR`: files that the driver finds next to its `spark.properties`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub spark_conf_dir: BTreeMap<String, ByteString>,
    /// `HADOOP_CONF_DIR`, if the submitter has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hadoop_conf_dir: Option<BTreeMap<String, ByteString>>,
    /// Files that a property can name: pod templates, `krb5.conf`, keytabs, certificates.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub named: BTreeMap<String, ByteString>,
}

impl SubmitterFiles {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Writes names only: a keytab must not get into a log.
impl fmt::Debug for SubmitterFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SubmitterFiles")
            .field("spark_conf_dir", &self.spark_conf_dir.keys())
            .field("hadoop_conf_dir", &self.hadoop_conf_dir.as_ref().map(BTreeMap::keys))
            .field("named", &self.named.keys())
            .finish()
    }
}
