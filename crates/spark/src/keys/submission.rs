//! Keys that configure how spark-submit submits.

use super::{Key, client, read};

pub(super) const KEYS: [Key; 13] = [
    read(
        "spark.master",
        "0.9.0",
        "k8s://… is kept, spark://… becomes the cluster's own address; yarn, local and others are refused",
    ),
    read("spark.submit.deployMode", "1.5.0", "always cluster"),
    client("spark.kubernetes.context", "3.0.0", "a context of the kubeconfig; see --context of the gateway"),
    client(
        "spark.kubernetes.file.upload.path",
        "3.0.0",
        "where to upload the client's files; `sparkgate submit` uploads to the gateway",
    ),
    client("spark.kubernetes.report.interval", "2.3.0", "how often the driver's state is logged"),
    client(
        "spark.kubernetes.submission.waitAppCompletion",
        "2.3.0",
        "whether to wait for the end; here, poll the status",
    ),
    client(
        "spark.kubernetes.submission.connectionTimeout",
        "3.0.0",
        "the timeout for a connection to the API, in milliseconds",
    ),
    client(
        "spark.kubernetes.submission.requestTimeout",
        "3.0.0",
        "the timeout for a request to the API, in milliseconds",
    ),
    client("spark.kubernetes.appKillPodDeletionGracePeriod", "3.0.0", "seconds that --kill gives the driver"),
    client("spark.kubernetes.pyspark.pythonVersion", "2.4.0", "without effect since 3.1, removed in 4.1"),
    client(
        "spark.submit.proxyUser.allowCustomClasspathInClusterMode",
        "3.4.0",
        "whether spark-submit itself loads packages for a proxy user",
    ),
    client(
        "spark.home",
        "0.5.0",
        "where spark-submit finds its conf directory; here the operator gives one ([submitter.md](../use/submitter.md))",
    ),
    client(
        "spark.sparkgate.defaults",
        "-",
        "Sparkgate's own: the named defaults to use ([submitter.md](../use/submitter.md)); not passed to the driver",
    ),
];
