//! The driver's ports: open on its container, and named by its Service.

use crate::spark::{Refusal, SparkVersion, driver::DriverConf};

pub(super) struct DriverPorts {
    pub(super) rpc: i32,
    pub(super) block_manager: i32,
    pub(super) ui: i32,
    /// Since 4.1.
    pub(super) connect: Option<i32>,
}

/// The name of the port that speaks gRPC.
pub(super) const CONNECT: &str = "spark-connect";

impl DriverPorts {
    pub(super) fn new(conf: &DriverConf<'_>) -> Result<Self, Refusal> {
        let block_manager = match conf.port("spark.driver.blockManager.port")? {
            Some(port) => Some(port),
            None => conf.port("spark.blockManager.port")?,
        };
        let connect = match conf.version >= SparkVersion::V4_1 {
            true => Some(conf.port("spark.connect.grpc.binding.port")?.unwrap_or(15002)),
            false => None,
        };
        Ok(Self {
            rpc: conf.port("spark.driver.port")?.unwrap_or(7078),
            block_manager: block_manager.unwrap_or(7079),
            ui: conf.int("spark.ui.port")?.unwrap_or(4040),
            connect,
        })
    }

    /// The ports by Spark's names, in Spark's order.
    pub(super) fn named(&self) -> impl Iterator<Item = (&'static str, i32)> {
        let fixed = [("driver-rpc-port", self.rpc), ("blockmanager", self.block_manager), ("spark-ui", self.ui)];
        fixed.into_iter().chain(self.connect.map(|port| (CONNECT, port)))
    }
}
