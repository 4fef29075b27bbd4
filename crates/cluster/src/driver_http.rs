//! HTTP to a driver: the Spark UI and its REST API, straight to the address of the pod.

use std::{
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use bytes::Bytes;
use futures::{StreamExt, stream::BoxStream};
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Error as ClientError;
use k8s_openapi::api::core::v1::{Pod, PodSpec};
use kube::Api;

use super::{call::find, cluster::Cluster, error::Error};

/// Timeout for reading the pod.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Ports of a driver: their names, by which Spark declares them, and their numbers where it declares none.
const SPARK_UI: (&str, u16) = ("spark-ui", 4040);
const SPARK_CONNECT: (&str, u16) = ("spark-connect", 15002);

/// The body of a driver's response, as it arrives.
pub type DriverBytes = BoxStream<'static, Result<Bytes, DriverHttpError>>;

/// A driver didn't answer, or not with HTTP.
#[derive(Debug, thiserror::Error)]
pub enum DriverHttpError {
    #[error("no connection to the driver at {address}")]
    NoConnection { address: SocketAddr, source: ClientError },
    #[error("the driver at {address} sent no usable response")]
    NoResponse { address: SocketAddr, source: ClientError },
    #[error("the response of the driver broke off")]
    BrokenOff(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("the response of the driver is too large, or takes too long")]
    TooLong,
}

impl Cluster {
    /// Returns where the UI of exactly this driver pod listens, according to the API server itself: the address of a pod that is gone
    /// may belong to another one. `None` while the pod doesn't run, and for a pod in its node's network, whose ports aren't its own.
    pub async fn driver_ui(&self, namespace: &str, pod: &str, uid: &str) -> Result<Option<SocketAddr>, Error> {
        self.driver_port(SPARK_UI, namespace, pod, uid).await
    }

    /// Returns the same of its server of Spark Connect.
    pub async fn driver_connect(&self, namespace: &str, pod: &str, uid: &str) -> Result<Option<SocketAddr>, Error> {
        self.driver_port(SPARK_CONNECT, namespace, pod, uid).await
    }

    async fn driver_port(
        &self,
        port: (&str, u16),
        namespace: &str,
        pod: &str,
        uid: &str,
    ) -> Result<Option<SocketAddr>, Error> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
        let action = format!("looking for the address of the driver pod {namespace}/{pod}");
        let found = find(action, TIMEOUT, pod, pods.get(pod)).await?;
        Ok(found.filter(|pod| pod.metadata.uid.as_deref() == Some(uid)).and_then(|pod| address_of(&pod, port)))
    }

    /// Sends a request to a driver. Its URI has a path only.
    ///
    /// # Errors
    /// The driver can't be reached, or sends no response. Its status isn't looked at.
    pub async fn ask_driver(
        &self,
        address: SocketAddr,
        mut request: Request<Bytes>,
    ) -> Result<Response<DriverBytes>, DriverHttpError> {
        let mut uri = std::mem::take(request.uri_mut()).into_parts();
        uri.scheme = Some(http::uri::Scheme::HTTP);
        uri.authority = address.to_string().parse().ok();
        // The path comes from a URI, and an address is an authority.
        *request.uri_mut() = http::Uri::from_parts(uri).unwrap_or_default();
        let response =
            self.drivers.request(request.map(Full::new)).await.map_err(|source| match source.is_connect() {
                true => DriverHttpError::NoConnection { address, source },
                false => DriverHttpError::NoResponse { address, source },
            })?;
        Ok(response.map(|body| {
            body.into_data_stream().map(|part| part.map_err(|error| DriverHttpError::BrokenOff(error.into()))).boxed()
        }))
    }
}

fn address_of(pod: &Pod, port: (&str, u16)) -> Option<SocketAddr> {
    let (spec, status) = (pod.spec.as_ref()?, pod.status.as_ref()?);
    let runs = status.phase.as_deref() == Some("Running");
    let ip: IpAddr = status.pod_ip.as_deref().filter(|_| runs && spec.host_network != Some(true))?.parse().ok()?;
    Some(SocketAddr::new(ip, port_of(spec, port)))
}

/// Returns the port that the pod declares under this name; Spark's default if it declares none.
fn port_of(spec: &PodSpec, (name, default): (&str, u16)) -> u16 {
    let ports = spec.containers.iter().flat_map(|container| container.ports.iter().flatten());
    let declared = ports.into_iter().find(|port| port.name.as_deref() == Some(name));
    let port = declared.and_then(|port| u16::try_from(port.container_port).ok());
    port.filter(|port| *port != 0).unwrap_or(default)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn address(spec: Value, status: Value) -> Option<String> {
        let pod: Pod = serde_json::from_value(json!({"metadata": {}, "spec": spec, "status": status})).unwrap();
        address_of(&pod, SPARK_UI).map(|address| address.to_string())
    }

    #[test]
    fn only_a_running_pod_with_a_network_of_its_own_has_an_address() {
        let spec = |port: &Value| json!({"containers": [{"name": "a"}, {"name": "driver", "ports": [port]}]});
        let ui = spec(&json!({"name": "spark-ui", "containerPort": 4141}));
        let other = spec(&json!({"name": "blockmanager", "containerPort": 7079}));
        let running = json!({"phase": "Running", "podIP": "10.1.2.3"});
        assert_eq!(address(ui.clone(), running.clone()).as_deref(), Some("10.1.2.3:4141"));
        assert_eq!(address(other, running.clone()).as_deref(), Some("10.1.2.3:4040"));
        assert_eq!(
            address(ui.clone(), json!({"phase": "Running", "podIP": "fd00::1"})).as_deref(),
            Some("[fd00::1]:4141")
        );
        for status in [
            json!({"phase": "Pending", "podIP": "10.1.2.3"}),
            json!({"phase": "Succeeded", "podIP": "10.1.2.3"}),
            json!({"phase": "Running"}),
            json!({"phase": "Running", "podIP": "driver.example"}),
        ] {
            assert_eq!(address(ui.clone(), status.clone()), None, "{status}");
        }
        let on_the_node = json!({"hostNetwork": true, "containers": []});
        assert_eq!(address(on_the_node, running), None);
    }
}
