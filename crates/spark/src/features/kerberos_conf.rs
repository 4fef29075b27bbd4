//! `KerberosConfDriverFeatureStep`: what a driver needs to log in to Kerberos, or delegation tokens of a user who is logged in.
//!
//! Spark also fetches tokens during the submission, if its user has logged in (`kinit`). A gateway is never logged in, so the
//! driver gets no tokens, as in Spark without a login.

use std::{borrow::Cow, collections::BTreeMap};

use k8s_openapi::{
    ByteString,
    api::core::v1::{ConfigMap, Secret, VolumeMount},
};

use super::{FeatureStep, env, mounted, object_meta};
use crate::{
    driver::{DriverConf, Object, SparkPod},
    refusal::Refusal,
};

const KRB5_FILE: &str = "spark.kubernetes.kerberos.krb5.path";
const KRB5_CONFIG_MAP: &str = "spark.kubernetes.kerberos.krb5.configMapName";
const KEYTAB: &str = "spark.kerberos.keytab";
const PRINCIPAL: &str = "spark.kerberos.principal";
const TOKEN_SECRET: &str = "spark.kubernetes.kerberos.tokenSecret.name";
const TOKEN_KEY: &str = "spark.kubernetes.kerberos.tokenSecret.itemKey";
const KRB5_VOLUME: &str = "krb5-file";
const KEYTAB_VOLUME: &str = "kerberos-keytab";
const KEYTAB_PATH: &str = "/mnt/secrets/kerberos-keytab";
const TOKEN_VOLUME: &str = "hadoop-secret";
const TOKEN_PATH: &str = "/mnt/secrets/hadoop-credentials";

pub(super) struct KerberosConf<'a> {
    conf: &'a DriverConf<'a>,
    krb5: Option<Krb5<'a>>,
    /// A keytab that has to be shipped to the driver, with its name.
    keytab: Option<(&'a str, &'a ByteString)>,
    /// The name of a Secret, and the entry in it that holds delegation tokens.
    tokens: Option<(&'a str, &'a str)>,
}

/// The source of `krb5.conf`.
enum Krb5<'a> {
    /// A file of the submitter: name and text.
    File(&'a str, Cow<'a, str>),
    /// The name of an existing `ConfigMap`.
    Existing(&'a str),
}

impl<'a> KerberosConf<'a> {
    pub(super) fn new(conf: &'a DriverConf<'a>) -> Result<Self, Refusal> {
        let krb5 = krb5(conf)?;
        let both = |first: &str, second: &str, reason: &str| match conf.contains(first) && !conf.contains(second) {
            true => Err(Refusal::property(second, reason)),
            false => Ok(()),
        };
        both(PRINCIPAL, KEYTAB, "If a Kerberos principal is specified you must also specify a Kerberos keytab")?;
        both(KEYTAB, PRINCIPAL, "If a Kerberos keytab is specified you must also specify a Kerberos principal")?;
        both(
            TOKEN_KEY,
            TOKEN_SECRET,
            "If a secret data item-key where the data of the Kerberos Delegation Token is specified you must also specify \
             the name of the secret",
        )?;
        both(
            TOKEN_SECRET,
            TOKEN_KEY,
            "If a secret storing a Kerberos Delegation Token is specified you must also specify the item-key where the \
             data is stored",
        )?;
        Ok(Self { krb5, keytab: keytab(conf)?, tokens: conf.get(TOKEN_SECRET).zip(conf.get(TOKEN_KEY)), conf })
    }

    fn name(&self, suffix: &str) -> String {
        format!("{}-{suffix}", self.conf.names.resource_prefix)
    }

    fn krb5_map(&self) -> String {
        self.name("krb5-file")
    }

    fn keytab_secret(&self) -> String {
        self.name("kerberos-keytab")
    }
}

fn krb5<'a>(conf: &'a DriverConf<'_>) -> Result<Option<Krb5<'a>>, Refusal> {
    match (conf.contains(KRB5_FILE), conf.get(KRB5_CONFIG_MAP)) {
        (true, Some(_)) => Err(Refusal::property(
            KRB5_FILE,
            "Do not specify both a Krb5 local file and the ConfigMap as the creation of an additional ConfigMap, when one \
             is already specified, is extraneous",
        )),
        (false, map) => Ok(map.map(Krb5::Existing)),
        (true, None) => {
            let instead = format!("put it into a ConfigMap, and name that in {KRB5_CONFIG_MAP}");
            Ok(conf.submitter_text(KRB5_FILE, &instead)?.map(|(name, text)| Krb5::File(name, text)))
        }
    }
}

/// Returns the keytab to ship. A keytab that is already in the image (`local:`) is used from there.
fn keytab<'a>(conf: &'a DriverConf<'_>) -> Result<Option<(&'a str, &'a ByteString)>, Refusal> {
    match conf.get(KEYTAB) {
        Some(path) if !path.starts_with("local:") => {
            let instead = "mount it from a Secret, and give its path there as local:///…";
            conf.submitter_file(KEYTAB, instead).map_err(|mut refusal| {
                refusal.reason = format!("Keytab file: {path} does not exist. {}", refusal.reason);
                refusal
            })
        }
        _ => Ok(None),
    }
}

impl FeatureStep for KerberosConf<'_> {
    fn configure_pod(&self, pod: &mut SparkPod) {
        if let Some(krb5) = &self.krb5 {
            let (map, items) = match krb5 {
                Krb5::Existing(map) => ((*map).to_owned(), None),
                Krb5::File(name, _) => (self.krb5_map(), Some(vec![mounted::item(name, name)])),
            };
            let volume = mounted::config_map(KRB5_VOLUME, map, items);
            // The mount is a single file of the volume, so a file of another name isn't found, as in Spark.
            let sub_path = Some("krb5.conf".to_owned());
            pod.mount(volume, VolumeMount { sub_path, ..mounted::mount(KRB5_VOLUME, "/etc/krb5.conf") });
        }
        if self.keytab.is_some() {
            pod.mount(mounted::secret(KEYTAB_VOLUME, self.keytab_secret()), mounted::mount(KEYTAB_VOLUME, KEYTAB_PATH));
        } else if let Some((secret, key)) = self.tokens {
            pod.mount(mounted::secret(TOKEN_VOLUME, secret.to_owned()), mounted::mount(TOKEN_VOLUME, TOKEN_PATH));
            pod.add_env(env("HADOOP_TOKEN_FILE_LOCATION", &format!("{TOKEN_PATH}/{key}")));
        }
    }

    fn additional_properties(&self) -> Vec<(String, String)> {
        self.keytab.iter().map(|(name, _)| (KEYTAB.to_owned(), format!("{KEYTAB_PATH}/{name}"))).collect()
    }

    fn additional_resources(&self) -> Vec<Object> {
        let mut resources = Vec::new();
        if let Some(Krb5::File(name, text)) = &self.krb5 {
            resources.push(Object::ConfigMap(ConfigMap {
                metadata: object_meta(self.conf, &self.krb5_map()),
                data: Some(BTreeMap::from([((*name).to_owned(), text.clone().into_owned())])),
                immutable: Some(true),
                ..Default::default()
            }));
        }
        if let Some((name, content)) = self.keytab {
            resources.push(Object::Secret(Secret {
                metadata: object_meta(self.conf, &self.keytab_secret()),
                data: Some(BTreeMap::from([(name.to_owned(), content.clone())])),
                immutable: Some(true),
                ..Default::default()
            }));
        }
        resources
    }
}
