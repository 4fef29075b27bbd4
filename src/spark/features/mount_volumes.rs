//! `MountVolumesFeatureStep`

use super::FeatureStep;
use crate::spark::{
    Refusal,
    driver::{DriverConf, SparkPod},
};

pub(super) struct MountVolumes<'a> {
    conf: &'a DriverConf<'a>,
}

impl<'a> MountVolumes<'a> {
    pub(super) fn new(conf: &'a DriverConf<'a>) -> Result<Self, Refusal> {
        Ok(Self { conf })
    }
}

impl FeatureStep for MountVolumes<'_> {
    fn configure_pod(&self, _pod: &mut SparkPod) {
        let _ = self.conf;
    }
}
