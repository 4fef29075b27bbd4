//! The driver's ports, on its container and in its Service.

use crate::{driver::DriverConf, refusal::Refusal, version::SparkVersion};

pub(super) struct DriverPorts {
    pub(super) rpc: i32,
    pub(super) block_manager: i32,
    pub(super) ui: i32,
    /// Since 4.1.
    pub(super) connect: Option<i32>,
}

/// The name of the gRPC port.
pub(super) const CONNECT: &str = "spark-connect";
const BLOCK_MANAGER: &str = "spark.driver.blockManager.port";

impl DriverPorts {
    /// Returns the ports of the container. Only here Spark uses `spark.blockManager.port` if the driver's own key isn't
    /// set; the Service and the driver's properties then keep the default.
    pub(super) fn for_container(conf: &DriverConf<'_>) -> Result<Self, Refusal> {
        let mut ports = Self::for_service(conf)?;
        if !conf.contains(BLOCK_MANAGER) {
            ports.block_manager = conf.port("spark.blockManager.port")?.unwrap_or(ports.block_manager);
        }
        Ok(ports)
    }

    /// Returns the ports of the Service, on which the driver listens.
    pub(super) fn for_service(conf: &DriverConf<'_>) -> Result<Self, Refusal> {
        let connect = match conf.version >= SparkVersion::V4_1 {
            true => Some(conf.port("spark.connect.grpc.binding.port")?.unwrap_or(15002)),
            false => None,
        };
        Ok(Self {
            rpc: conf.port("spark.driver.port")?.unwrap_or(7078),
            block_manager: conf.port(BLOCK_MANAGER)?.unwrap_or(7079),
            ui: conf.int("spark.ui.port")?.unwrap_or(4040),
            connect,
        })
    }

    /// Returns the ports with Spark's names, in Spark's order.
    pub(super) fn named(&self) -> impl Iterator<Item = (&'static str, i32)> {
        let fixed = [("driver-rpc-port", self.rpc), ("blockmanager", self.block_manager), ("spark-ui", self.ui)];
        fixed.into_iter().chain(self.connect.map(|port| (CONNECT, port)))
    }
}
