//! `NetworkPolicyFeatureStep` (4.2+): only pods of the same application can reach its executors.

use k8s_openapi::{
    api::networking::v1::{NetworkPolicy, NetworkPolicyIngressRule, NetworkPolicyPeer, NetworkPolicySpec},
    apimachinery::pkg::apis::meta::v1::LabelSelector,
};

use super::{FeatureStep, object_meta};
use crate::driver::{DriverConf, Object, SparkPod};

pub(super) struct NetworkPolicyStep<'a> {
    conf: &'a DriverConf<'a>,
}

impl<'a> NetworkPolicyStep<'a> {
    pub(super) fn new(conf: &'a DriverConf<'a>) -> Self {
        Self { conf }
    }
}

impl FeatureStep for NetworkPolicyStep<'_> {
    fn configure_pod(&self, _pod: &mut SparkPod) {}

    fn additional_resources(&self) -> Vec<Object> {
        let application = self.conf.app_selector();
        let mut executors = application.clone();
        executors.insert("spark-role".to_owned(), "executor".to_owned());
        let select = |labels| Some(LabelSelector { match_labels: Some(labels), match_expressions: None });
        let peer = NetworkPolicyPeer { pod_selector: select(application.clone()), ..Default::default() };
        let ingress = NetworkPolicyIngressRule { from: Some(vec![peer]), ports: None };
        let spec =
            NetworkPolicySpec { pod_selector: select(executors), ingress: Some(vec![ingress]), ..Default::default() };
        let mut metadata = object_meta(self.conf, &format!("{}-policy", self.conf.names.resource_prefix));
        metadata.labels = Some(application);
        vec![Object::NetworkPolicy(NetworkPolicy { metadata, spec: Some(spec) })]
    }
}
