//! Turns a pod's spec into a program that can be started: volumes, environment variables, paths, command line.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::{Container, Pod, PodSpec};
use tokio::fs;

use super::Node;
use super::command::{self, Launch, Site};
use super::contract::{self, Role};
use super::driver_host;
use super::env::{self, Env};
use super::fault::Fault;
use super::objects::Objects;
use super::paths::PathMap;
use super::properties;
use super::volumes::{self, Places};

/// Spark's directory and working directory in an image.
const IMAGE_HOME: &str = "/opt/spark";
const IMAGE_WORK: &str = "/opt/spark/work-dir";

/// How a container is run.
pub(super) enum Plan {
    Run(Launch),
    /// Simulate it, because there is no Spark on this machine.
    Play(Role, Vec<String>),
}

/// Prepares the Spark container of a pod whose status has its address. A repeated call writes the same files again.
///
/// # Errors
/// Something doesn't exist yet, or the pod asks for something that this node doesn't support.
pub(super) async fn prepare(node: &Node, pod: &Pod, address: Ipv4Addr, dir: &Path) -> Result<Plan, Fault> {
    let none = PodSpec::default();
    let spec = pod.spec.as_ref().unwrap_or(&none);
    let (container, role) = contract::spark_container(spec)?;
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let objects = Objects::new(node.client.clone(), namespace);

    let mut env = env::resolve(pod, container, &objects).await?;
    let args: Vec<String> = container.args.iter().flatten().skip(1).map(|arg| env.expand(arg)).collect();
    let work = dir.join("work-dir");
    let temp = dir.join("tmp");
    for made in [&work, &temp] {
        fs::create_dir_all(made).await.map_err(|e| Fault::NotYet(format!("cannot create {}: {e}", made.display())))?;
    }
    let mut paths = PathMap::default();
    if let Some(spark) = &node.spark {
        paths.insert(IMAGE_HOME, &spark.home);
    }
    paths.insert(IMAGE_WORK, &work);
    let claims = node.dir.join("claims").join(namespace);
    let places = Places { pod: dir, claims: &claims };
    volumes::materialise(spec, container, &places, &objects, |text| env.expand(text), &mut paths).await?;
    env.map_values(|value| paths.translate(value));

    let Some(spark) = &node.spark else { return Ok(Plan::Play(role, args)) };
    let args: Vec<String> = args.iter().map(|arg| paths.translate(arg)).collect();
    let dir = working_dir(container, &paths, work);
    let site = Site { spark, address, dir: &dir };
    let env = command::complete(env, &site, &temp, &node.kubeconfig);
    let launch = match role {
        Role::Driver => driver(node, &site, pod, &objects, env, &args, &paths).await?,
        Role::Executor => command::executor(&site, env)?,
    };
    Ok(Plan::Run(launch))
}

async fn driver(
    node: &Node,
    site: &Site<'_>,
    pod: &Pod,
    objects: &Objects,
    env: Env,
    args: &[String],
    paths: &PathMap,
) -> Result<Launch, Fault> {
    let text = match command::properties_file(args) {
        Some(file) => rewrite(&file, paths).await?,
        None => String::new(),
    };
    let host = match properties::get(&text, "spark.driver.host") {
        Some(host) => driver_host::resolve(&host, pod, site.address, objects).await?,
        None => None,
    };
    Ok(command::driver(site, env, args, &text, host, &node.api))
}

/// Translates the pod's copy of its properties file and returns it.
async fn rewrite(file: &Path, paths: &PathMap) -> Result<String, Fault> {
    let trouble = |verb: &str, e: &std::io::Error| Fault::NotYet(format!("cannot {verb} {}: {e}", file.display()));
    let bytes = match fs::read(file).await {
        Ok(bytes) => bytes,
        // spark-submit will report it in the driver's log.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(String::new()),
        Err(error) => return Err(trouble("read", &error)),
    };
    let text = properties::translate(&String::from_utf8_lossy(&bytes), paths);
    if text.as_bytes() != bytes {
        fs::write(file, &text).await.map_err(|e| trouble("write", &e))?;
    }
    Ok(text)
}

fn working_dir(container: &Container, paths: &PathMap, default: PathBuf) -> PathBuf {
    let asked = container.working_dir.as_deref().filter(|dir| !dir.is_empty());
    asked.map(|dir| PathBuf::from(paths.translate(dir))).filter(|dir| dir.is_dir()).unwrap_or(default)
}
