//! Families of keys: the part after the prefix is a name.

use super::{Key, client, read, shapes};

pub(super) const KEYS: [Key; 25] = [
    shapes("spark.kubernetes.driver.label.", "2.3.0", "labels of the driver; Spark's own four are reserved"),
    shapes("spark.kubernetes.driver.annotation.", "2.3.0", "annotations of the driver"),
    shapes("spark.kubernetes.driver.service.label.", "3.4.0", "labels of its Service"),
    shapes("spark.kubernetes.driver.service.annotation.", "3.0.0", "annotations of its Service"),
    shapes("spark.kubernetes.driverEnv.", "2.3.0", "environment variables of the driver"),
    shapes("spark.kubernetes.driver.secrets.", "2.3.0", "a Secret's name; the value is where it is mounted"),
    shapes("spark.kubernetes.driver.secretKeyRef.", "2.4.0", "a variable; the value is <secret>:<key>"),
    shapes("spark.kubernetes.driver.volumes.", "2.4.0", "<type>.<name>.mount.… and .options.… of a volume"),
    shapes("spark.kubernetes.node.selector.", "2.3.0", "labels that a node must have"),
    shapes("spark.kubernetes.driver.node.selector.", "3.3.0", "labels that the driver's node must have"),
    shapes("spark.kubernetes.authenticate.driver.oauthToken", "2.3.0", "a token for the driver to call the API with"),
    shapes("spark.kubernetes.authenticate.driver.caCertFile", "2.3.0", "a certificate to ship: a file's name"),
    shapes("spark.kubernetes.authenticate.driver.clientKeyFile", "2.3.0", "a private key to ship: a file's name"),
    shapes("spark.kubernetes.authenticate.driver.clientCertFile", "2.3.0", "a certificate to ship: a file's name"),
    client(
        "spark.kubernetes.authenticate.driver.oauthTokenFile",
        "2.3.0",
        "documented by Spark, but read by no release",
    ),
    read(
        "spark.kubernetes.authenticate.driver.mounted.",
        "2.3.0",
        "files in the driver's container to call the API with",
    ),
    read("spark.kubernetes.executor.label.", "2.3.0", "labels of executors; the gateway adds its own"),
    read("spark.kubernetes.executor.annotation.", "2.3.0", "annotations of executors"),
    read("spark.kubernetes.executor.node.selector.", "3.3.0", "labels that an executor's node must have"),
    read("spark.kubernetes.executor.secrets.", "2.3.0", "a Secret's name; the value is where it is mounted"),
    read("spark.kubernetes.executor.secretKeyRef.", "2.4.0", "a variable; the value is <secret>:<key>"),
    read("spark.kubernetes.executor.volumes.", "2.4.0", "volumes of executors; mistakes are refused at once"),
    read("spark.executorEnv.", "1.0.0", "environment variables of executors"),
    client(
        "spark.kubernetes.authenticate.submission.",
        "2.3.0",
        "credentials of spark-submit; the gateway has its own",
    ),
    client("spark.kubernetes.authenticate.", "2.4.0", "credentials of a driver in client mode"),
];
