//! `driver …`: spark-submit in client mode.

use std::net::Ipv4Addr;
use std::path::PathBuf;

use super::{ApiAccess, Launch, Site};
use crate::{node::env::Env, node::properties};

/// Returns the path after `--properties-file`, if the arguments have one.
pub(in crate::node) fn properties_file(args: &[String]) -> Option<PathBuf> {
    let at = args.iter().position(|arg| arg == "--properties-file")?;
    args.get(at + 1).map(PathBuf::from)
}

/// Returns the command line of a driver. `args` are the container's arguments without the leading `driver`; `properties` is the
/// text of its properties file.
pub(in crate::node) fn driver(
    site: &Site<'_>,
    env: Env,
    args: &[String],
    properties: &str,
    host: Option<Ipv4Addr>,
    api: &ApiAccess,
) -> Launch {
    let Site { spark, address, dir } = *site;
    let mut confs = vec![
        ("spark.driver.bindAddress", address.to_string()),
        ("spark.executorEnv.SPARK_DRIVER_POD_IP", address.to_string()),
        // Otherwise, a server of Spark Connect would listen at the addresses of all pods.
        ("spark.connect.grpc.binding.address", address.to_string()),
    ];
    confs.extend(host.map(|host| ("spark.driver.host", host.to_string())));
    // The submission's own settings for the API server take precedence: `local[2]` means a driver without executors.
    let path = |file: &PathBuf| file.to_string_lossy().into_owned();
    let access = [
        ("spark.kubernetes.driver.master", Some(api.url.clone())),
        ("spark.kubernetes.authenticate.driver.mounted.oauthTokenFile", api.token_file.as_ref().map(path)),
        ("spark.kubernetes.authenticate.driver.mounted.caCertFile", api.ca_file.as_ref().map(path)),
    ];
    confs.extend(
        access
            .into_iter()
            .filter_map(|(key, value)| Some((key, value?)))
            .filter(|(key, _)| properties::get(properties, key).is_none()),
    );

    let mut all: Vec<String> =
        confs.into_iter().flat_map(|(key, value)| ["--conf".to_owned(), format!("{key}={value}")]).collect();
    all.extend(["--deploy-mode".to_owned(), "client".to_owned()]);
    all.extend_from_slice(args);
    Launch { program: spark.home.join("bin/spark-submit"), args: all, env, dir: dir.to_owned() }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::node::spark_home::Spark;

    fn launch(properties: &str, host: Option<Ipv4Addr>) -> Vec<String> {
        let spark = Spark { home: "/spark".into(), python: "python3".into() };
        let api = ApiAccess { url: "http://127.0.0.1:1".into(), token_file: Some("/t".into()), ca_file: None };
        let args = ["--class", "Main", "app.jar"].map(str::to_owned);
        let site = Site { spark: &spark, address: Ipv4Addr::new(127, 1, 2, 3), dir: Path::new("/w") };
        let launch = driver(&site, Env::default(), &args, properties, host, &api);
        assert_eq!(launch.program, Path::new("/spark/bin/spark-submit"));
        launch.args
    }

    #[test]
    fn a_driver_runs_spark_submit_in_client_mode() {
        let expected = "--conf spark.driver.bindAddress=127.1.2.3 --conf spark.executorEnv.SPARK_DRIVER_POD_IP=127.1.2.3 \
                        --conf spark.connect.grpc.binding.address=127.1.2.3 \
                        --conf spark.driver.host=127.1.2.3 --conf spark.kubernetes.driver.master=http://127.0.0.1:1 \
                        --conf spark.kubernetes.authenticate.driver.mounted.oauthTokenFile=/t \
                        --deploy-mode client --class Main app.jar";
        assert_eq!(launch("", Some(Ipv4Addr::new(127, 1, 2, 3))).join(" "), expected);
    }

    #[test]
    fn master_and_token_of_the_submission_take_precedence() {
        let text =
            "spark.kubernetes.driver.master=local[2]\nspark.kubernetes.authenticate.driver.mounted.oauthTokenFile=/x\n";
        let args = launch(text, None).join(" ");
        assert!(!args.contains("driver.master"), "{args}");
        assert!(!args.contains("oauthTokenFile"), "{args}");
        assert!(!args.contains("spark.driver.host"), "{args}");
    }

    #[test]
    fn the_properties_file_is_found_in_the_arguments() {
        let args = ["--properties-file", "/p", "--class", "x"].map(str::to_owned);
        assert_eq!(properties_file(&args).as_deref(), Some(Path::new("/p")));
        assert_eq!(properties_file(&args[..1]), None);
    }
}
