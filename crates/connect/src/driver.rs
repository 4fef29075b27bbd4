//! The objects of a session's driver: what its server needs beside what Spark itself would create.

use std::collections::BTreeMap;

use serde_json::{
    Value, json,
    value::{RawValue, to_raw_value},
};

use super::{Connect, token};
use sparkgate_admission::NETWORK_POLICY;
use sparkgate_cluster::Manifest;
use sparkgate_common::error::Error;
use sparkgate_core::ports::{Attempt, NoLaunch, Resolution};
use sparkgate_spark::parse_properties;

/// The variable with the token that the server requires, since Spark 4.0.
const TOKEN: &str = "SPARK_CONNECT_AUTHENTICATE_TOKEN";
/// The key of the token in its Secret.
const KEY: &str = "token";
/// The name of the port, which Spark itself declares since 4.1: the network policy of `sparkgate admission` names it.
const PORT: &str = "spark-connect";
const PORT_PROPERTY: &str = "spark.connect.grpc.binding.port";
const DEFAULT_PORT: u16 = 15002;
const JARS: &str = "spark.jars";

impl Connect {
    /// Gives the driver its token, in a Secret that its pod owns, the port, and before Spark 4.0 the jar with Spark Connect.
    pub(crate) async fn complete(&self, attempt: &Attempt<'_>, manifest: &mut Manifest) -> Result<Resolution, Error> {
        let (_, digest) = token::new(&self.installation, attempt.id);
        let Some(digest) = self.store.keep_connect_token(attempt.id, &digest).await? else {
            return Ok(Resolution::Ready);
        };
        let refused = |reason, message: &str| Resolution::Refused(NoLaunch { reason, message: message.to_owned() });
        let Some(token) = token::with_digest(&self.installation, attempt.id, &digest) else {
            let message = "the key that the token of this session is derived from is gone: open another session";
            return Ok(refused("SessionKeyGone", message));
        };
        let mut driver = match Driver::read(manifest) {
            Ok(driver) => driver,
            Err(why) => return Ok(Resolution::Refused(NoLaunch::unreadable(why))),
        };
        if driver.is_3_5() {
            if let Some(why) = self.unprotected(attempt.namespace).await? {
                return Ok(refused("SessionUnprotected", &why));
            }
            let Some(jar) = &self.settings.jar_of_3_5 else {
                return Ok(refused(
                    "NoSessionJar",
                    "the operator names no jar of Spark Connect for Spark 3.5 any more",
                ));
            };
            if let Err(why) = driver.add_jar(jar) {
                return Ok(Resolution::Refused(NoLaunch::unreadable(why)));
            }
        }
        Ok(match driver.completed(&token, manifest) {
            Ok(()) => Resolution::Ready,
            Err(why) => Resolution::Refused(NoLaunch::unreadable(why)),
        })
    }

    /// Returns why a server without authentication can't run in a namespace: no network policy of `sparkgate admission` keeps others away.
    pub(crate) async fn unprotected(&self, namespace: &str) -> Result<Option<String>, Error> {
        let driver = BTreeMap::from([("spark-role".to_owned(), "driver".to_owned())]);
        let is_limited = self.cluster.is_ingress_limited(namespace, NETWORK_POLICY, &driver).await?;
        Ok((!is_limited).then(|| {
            format!(
                "Spark 3.5 has no authentication for Spark Connect, and in namespace {namespace} no NetworkPolicy {NETWORK_POLICY} keeps \
                 others away from drivers: the operator has to apply the objects of `sparkgate admission`, or use Spark 4.0 or later"
            )
        }))
    }
}

/// The objects of a driver that a session changes.
struct Driver {
    pod: Value,
    /// The main `ConfigMap`, which is created last: the driver starts once it exists.
    main: Value,
}

fn parse(object: &RawValue) -> Result<Value, String> {
    serde_json::from_str(object.get()).map_err(|error| error.to_string())
}

fn write(object: &Value) -> Result<Box<RawValue>, String> {
    to_raw_value(object).map_err(|error| error.to_string())
}

impl Driver {
    fn read(manifest: &Manifest) -> Result<Self, String> {
        let main = manifest.beside.last().ok_or("there is no main ConfigMap")?;
        Ok(Self { pod: parse(&manifest.pod)?, main: parse(main)? })
    }

    fn is_3_5(&self) -> bool {
        self.pod["metadata"]["labels"]["spark-version"].as_str().is_some_and(|version| version.starts_with("3."))
    }

    /// Returns the driver's container. Spark appends it after all others.
    fn container(&mut self) -> Result<&mut Value, String> {
        let containers = self.pod.pointer_mut("/spec/containers").and_then(Value::as_array_mut);
        let container = containers.and_then(|all| all.last_mut()).filter(|container| container.is_object());
        container.ok_or_else(|| "the pod has no container".to_owned())
    }

    /// Adds a jar to those of the driver and its executors. spark-submit takes no jar as the application of this class, and its option
    /// replaces the property (`SparkSubmitCommandBuilder`, `SparkSubmitArguments`).
    fn add_jar(&mut self, jar: &str) -> Result<(), String> {
        let own = self.properties().remove(JARS).filter(|own| !own.trim().is_empty());
        let jars = own.map_or_else(|| jar.to_owned(), |own| format!("{own},{jar}"));
        let arguments = self.container()?["args"].as_array_mut().ok_or("the driver has no arguments")?;
        // The first ones are those of the image's entrypoint and of Spark itself.
        let class = arguments.iter().position(|argument| argument == "--class").ok_or("the driver has no class")?;
        arguments.splice(class..class, [json!("--jars"), json!(jars)]);
        Ok(())
    }

    fn properties(&self) -> BTreeMap<String, String> {
        self.main["data"]["spark.properties"].as_str().map(parse_properties).unwrap_or_default()
    }

    /// Returns where the server listens.
    fn port(&self) -> u16 {
        self.properties().get(PORT_PROPERTY).and_then(|port| port.trim().parse().ok()).unwrap_or(DEFAULT_PORT)
    }

    /// Writes the objects, with the port, a Secret with the token, and the variable that the driver's container reads it from.
    fn completed(mut self, token: &str, manifest: &mut Manifest) -> Result<(), String> {
        // The name of the main ConfigMap is unique to the attempt.
        let map = self.main["metadata"]["name"].as_str().ok_or("the main ConfigMap has no name")?;
        let name = format!("{}-connect-token", map.strip_suffix("-conf-map").unwrap_or(map));
        let mut metadata = json!({ "name": name });
        if let Some(namespace) = self.main["metadata"].get("namespace") {
            metadata["namespace"] = namespace.clone();
        }
        let port = self.port();
        let container = self.container()?;
        let ports = list(container, "ports")?;
        if !ports.iter().any(|port| port["name"] == PORT) {
            ports.push(json!({"name": PORT, "containerPort": port, "protocol": "TCP"}));
        }
        let env = list(container, "env")?;
        env.retain(|variable| variable["name"] != TOKEN);
        env.push(json!({"name": TOKEN, "valueFrom": {"secretKeyRef": {"name": name, "key": KEY}}}));
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "immutable": true, "stringData": {KEY: token}});
        manifest.pod = write(&self.pod)?;
        let before_main = manifest.beside.len().saturating_sub(1);
        manifest.beside.insert(before_main, write(&secret)?);
        Ok(())
    }
}

/// Returns a list of a container, which may be absent.
fn list<'a>(container: &'a mut Value, field: &str) -> Result<&'a mut Vec<Value>, String> {
    if container[field].is_null() {
        container[field] = json!([]);
    }
    container[field].as_array_mut().ok_or_else(|| format!("the {field} of the driver are no list"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(pod: &Value, properties: &str) -> Manifest {
        let map = json!({"kind": "ConfigMap", "metadata": {"name": "spark-drv-0a1b-conf-map", "namespace": "red"},
            "data": {"spark.properties": properties}});
        Manifest { pod: write(pod).unwrap(), beside: vec![write(&map).unwrap()], before: Vec::new(), judged: None }
    }

    fn completed(manifest: &mut Manifest) -> Value {
        Driver::read(manifest).unwrap().completed("t0ken", manifest).unwrap();
        parse(&manifest.pod).unwrap()
    }

    #[test]
    fn the_token_is_in_a_secret_and_in_no_other_object() {
        let pod = json!({"kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "sidecar"},
            {"name": "driver", "env": [{"name": TOKEN, "value": "mine"}, {"name": "A", "value": "b"}]}]}});
        let mut manifest = manifest(&pod, "");
        let pod = completed(&mut manifest);
        let secret = parse(&manifest.beside[0]).unwrap();
        assert_eq!(secret["metadata"], json!({"name": "spark-drv-0a1b-connect-token", "namespace": "red"}));
        assert_eq!(secret["stringData"]["token"], "t0ken");
        assert!(!manifest.pod.get().contains("t0ken") && !manifest.pod.get().contains("mine"));
        let env = &pod["spec"]["containers"][1]["env"];
        assert_eq!(env[1]["valueFrom"]["secretKeyRef"]["name"], "spark-drv-0a1b-connect-token");
        assert_eq!(env.as_array().unwrap().len(), 2);
        assert!(pod["spec"]["containers"][0].get("env").is_none());
    }

    #[test]
    fn the_port_has_the_name_that_network_policies_admit() {
        let ports = |declared: &Value, properties: &str| {
            let pod = json!({"spec": {"containers": [{"name": "driver", "ports": declared}]}});
            completed(&mut manifest(&pod, properties))["spec"]["containers"][0]["ports"].clone()
        };
        let declared = json!([{"name": PORT, "containerPort": 7}]);
        assert_eq!(ports(&declared, ""), declared);
        let ui = json!([{"name": "spark-ui", "containerPort": 4040}]);
        assert_eq!(ports(&ui, "a=b\n")[1], json!({"name": PORT, "containerPort": 15002, "protocol": "TCP"}));
        let own = format!("{PORT_PROPERTY}=15099\n");
        assert_eq!(ports(&Value::Null, &own)[0]["containerPort"], 15099);
    }

    #[test]
    fn the_jar_of_the_operator_is_added_to_those_of_spark_3_5() {
        let arguments = json!(["driver", "--properties-file", "/p", "--class", "org.example.Server", "spark-internal"]);
        let pod =
            json!({"metadata": {"labels": {"spark-version": "3.5.9"}}, "spec": {"containers": [{"args": arguments}]}});
        for (properties, jars) in
            [("a=b\n", "local:///c.jar"), ("spark.jars=local\\:///own.jar\n", "local:///own.jar,local:///c.jar")]
        {
            let mut driver = Driver::read(&manifest(&pod, properties)).unwrap();
            assert!(driver.is_3_5());
            driver.add_jar("local:///c.jar").unwrap();
            let arguments = driver.container().unwrap()["args"].clone();
            let expected = json!([
                "driver",
                "--properties-file",
                "/p",
                "--jars",
                jars,
                "--class",
                "org.example.Server",
                "spark-internal"
            ]);
            assert_eq!(arguments, expected);
        }
    }
}
