//! `DriverServiceFeatureStep`: a headless Service, with which executors find the driver by a DNS name.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::{Service, ServicePort, ServiceSpec},
    apimachinery::pkg::util::intstr::IntOrString,
};

use super::{
    FeatureStep,
    driver_ports::{CONNECT, DriverPorts},
    object_meta,
};
use crate::{
    driver::{DriverConf, Object, SparkPod},
    refusal::Refusal,
    version::SparkVersion,
};

const BIND_ADDRESS: &str = "spark.driver.bindAddress";

pub(super) struct DriverService<'a> {
    conf: &'a DriverConf<'a>,
    ports: DriverPorts,
    selector: BTreeMap<String, String>,
    ip_family_policy: String,
    ip_families: Vec<String>,
    /// `None` before 4.3, which was the first release to set it.
    publish_not_ready_addresses: Option<bool>,
}

impl<'a> DriverService<'a> {
    pub(super) fn new(conf: &'a DriverConf<'a>) -> Result<Self, Refusal> {
        if conf.contains(BIND_ADDRESS) {
            let reason = format!(
                "{BIND_ADDRESS} is not supported in Kubernetes mode, as the driver's bind address is managed and set to \
                 the driver pod's IP address."
            );
            return Err(Refusal::property(BIND_ADDRESS, reason));
        }
        let policies = ["SingleStack", "PreferDualStack", "RequireDualStack"];
        let policy = conf.one_of("spark.kubernetes.driver.service.ipFamilyPolicy", &policies)?;
        let families = ["IPv4", "IPv6", "IPv4,IPv6", "IPv6,IPv4"];
        let families = conf.one_of("spark.kubernetes.driver.service.ipFamilies", &families)?;
        let publish = match conf.version >= SparkVersion::V4_3 {
            true => Some(conf.boolean("spark.kubernetes.driver.service.publishNotReadyAddresses")?.unwrap_or(false)),
            false => None,
        };
        Ok(Self {
            ports: DriverPorts::for_service(conf)?,
            selector: conf.labels()?,
            ip_family_policy: policy.unwrap_or("SingleStack").to_owned(),
            ip_families: families.unwrap_or("IPv4").split(',').map(str::to_owned).collect(),
            publish_not_ready_addresses: publish,
            conf,
        })
    }

    fn port(&self, name: &str, port: i32) -> ServicePort {
        let grpc = name == CONNECT && self.conf.version >= SparkVersion::V4_2;
        ServicePort {
            name: Some(name.to_owned()),
            port,
            target_port: Some(IntOrString::Int(port)),
            app_protocol: grpc.then(|| "grpc".to_owned()),
            ..Default::default()
        }
    }
}

impl FeatureStep for DriverService<'_> {
    fn configure_pod(&self, _pod: &mut SparkPod) {}

    fn additional_properties(&self) -> Vec<(String, String)> {
        let host = format!("{}.{}.svc", self.conf.names.driver_service, self.conf.namespace());
        vec![
            ("spark.driver.host".to_owned(), host),
            ("spark.driver.port".to_owned(), self.ports.rpc.to_string()),
            ("spark.driver.blockManager.port".to_owned(), self.ports.block_manager.to_string()),
        ]
    }

    fn additional_resources(&self) -> Vec<Object> {
        let mut metadata = object_meta(self.conf, &self.conf.names.driver_service);
        // As in Spark, the user's labels override even the selector here.
        let mut labels = self.conf.app_selector();
        labels.extend(self.conf.with_prefix("spark.kubernetes.driver.service.label."));
        metadata.labels = Some(labels);
        let annotations = self.conf.with_prefix("spark.kubernetes.driver.service.annotation.");
        metadata.annotations = Some(annotations).filter(|annotations| !annotations.is_empty());
        let spec = ServiceSpec {
            cluster_ip: Some("None".to_owned()),
            ip_family_policy: Some(self.ip_family_policy.clone()),
            ip_families: Some(self.ip_families.clone()),
            publish_not_ready_addresses: self.publish_not_ready_addresses,
            selector: Some(self.selector.clone()),
            ports: Some(self.ports.named().map(|(name, port)| self.port(name, port)).collect()),
            ..Default::default()
        };
        vec![Object::Service(Service { metadata, spec: Some(spec), status: None })]
    }
}
