//! `EnvSecretsFeatureStep`

use super::FeatureStep;
use crate::spark::{
    Refusal,
    driver::{DriverConf, SparkPod},
};

pub(super) struct EnvSecrets<'a> {
    conf: &'a DriverConf<'a>,
}

impl<'a> EnvSecrets<'a> {
    pub(super) fn new(conf: &'a DriverConf<'a>) -> Result<Self, Refusal> {
        Ok(Self { conf })
    }
}

impl FeatureStep for EnvSecrets<'_> {
    fn configure_pod(&self, _pod: &mut SparkPod) {
        let _ = self.conf;
    }
}
