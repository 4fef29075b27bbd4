use std::{fs, os::unix::fs::symlink, path::Path};

use super::*;
use crate::options::SubmissionOptions;

fn put(dir: &Path, path: &str, text: &str) {
    let path = dir.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn properties(entries: &[(&str, &str)]) -> Properties {
    entries.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn request_properties_override_named_defaults_which_override_the_common_ones() {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), "defaults/small.conf", "spark.a small\nspark.b small\nspark.c small\nnot.spark 1\n");
    put(dir.path(), "defaults/gpu.conf", "spark.b gpu\n");
    let submitter = Submitter::read(dir.path()).unwrap();
    let lowest = properties(&[("spark.a", "all"), ("spark.b", "all"), ("spark.z", "all")]);
    let own = properties(&[(DEFAULTS, "small, gpu"), ("spark.c", "own")]);
    let all = [("spark.a", "small"), ("spark.b", "gpu"), ("spark.c", "own"), ("spark.z", "all")];
    assert_eq!(submitter.complete(own, &[(SPARK_DEFAULTS, &lowest)]).unwrap().properties, properties(&all));

    let again = properties(&[(DEFAULTS, "gpu,small,gpu,small")]);
    assert_eq!(
        submitter.complete(again, &[(SPARK_DEFAULTS, &lowest)]).unwrap().properties["spark.b"],
        "small",
        "the last one of each counts"
    );

    let chooses = properties(&[(DEFAULTS, "gpu")]);
    assert_eq!(
        submitter.complete(Properties::new(), &[(SPARK_DEFAULTS, &chooses)]).unwrap().properties,
        properties(&[("spark.b", "gpu")])
    );
    let none = properties(&[(DEFAULTS, "")]);
    assert_eq!(
        submitter.complete(none, &[(SPARK_DEFAULTS, &chooses)]).unwrap().properties,
        Properties::new(),
        "a request may choose none"
    );

    let refusal =
        submitter.complete(properties(&[(DEFAULTS, "big")]), &[(SPARK_DEFAULTS, &lowest)]).unwrap_err().to_string();
    assert!(refusal.contains(DEFAULTS) && refusal.contains("`big`") && refusal.contains("gpu, small"), "{refusal}");
    for (own, lowest) in [("spark.sparkgate.default", "spark.a"), ("spark.a", "spark.sparkgate.default")] {
        let completed = submitter
            .complete(properties(&[(own, "gpu")]), &[(SPARK_DEFAULTS, &properties(&[(lowest, "1")]))])
            .unwrap();
        let refusal = SubmissionOptions::take(&mut completed.properties.clone()).unwrap_err();
        assert!(refusal.field.contains("spark.sparkgate.default") && refusal.reason.contains(DEFAULTS), "{refusal}");
    }
}

#[test]
fn a_submission_gets_the_files_that_it_names() {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), "files/gpu.yaml", "kind: Pod");
    put(dir.path(), "files/secret.keytab", "k");
    put(dir.path(), "spark-conf/log4j2.properties", "x");
    let submitter = Submitter::read(dir.path()).unwrap();
    let spark_properties = properties(&[("spark.kubernetes.driver.podTemplateFile", "gpu.yaml")]);
    let request = CreateSubmissionRequest { spark_properties, ..CreateSubmissionRequest::default() };
    let files = submitter.files_for(&request);
    assert_eq!(files.named.keys().collect::<Vec<_>>(), ["gpu.yaml"]);
    assert_eq!(files.spark_conf_dir["log4j2.properties"].0, b"x");
    assert_eq!(files.hadoop_conf_dir, None);
    put(dir.path(), "hadoop-conf/core-site.xml", "<x/>");
    assert!(Submitter::read(dir.path()).unwrap().files_for(&request).hadoop_conf_dir.is_some());
}

#[test]
fn a_template_may_be_the_name_of_a_file() {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), "files/gpu.yaml", "kind: Pod");
    let submitter = Submitter::read(dir.path()).unwrap();
    let mut request = CreateSubmissionRequest {
        driver_pod_template: Some("gpu.yaml".into()),
        executor_pod_template: Some("kind: Pod".into()),
        ..CreateSubmissionRequest::default()
    };
    submitter.name_templates(&mut request);
    assert_eq!(request.spark_properties, properties(&[("spark.kubernetes.driver.podTemplateFile", "gpu.yaml")]));
    assert_eq!((request.driver_pod_template, request.executor_pod_template), (None, Some("kind: Pod".into())));
}

/// `x -> ..data/x`, `..data -> ..2026_01_02`.
#[test]
fn the_mount_of_a_config_map_can_be_read() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("files");
    put(&folder, "..2026_01_02/driver.yaml", "kind: Pod");
    symlink("..2026_01_02", folder.join("..data")).unwrap();
    symlink("..data/driver.yaml", folder.join("driver.yaml")).unwrap();
    assert_eq!(Submitter::read(dir.path()).unwrap().files.keys().collect::<Vec<_>>(), ["driver.yaml"]);
}

#[test]
fn an_invalid_submitter_directory_is_reported_at_start() {
    let outside = tempfile::NamedTempFile::new().unwrap();
    type Spoil<'a> = &'a dyn Fn(&Path);
    let cases: [(Spoil<'_>, &str, &str); 8] = [
        (&|dir| put(dir, "file/x", ""), "/file", "is none of defaults, files"),
        (&|dir| put(dir, "defaults/a.properties", ""), "a.properties", "<name>.conf"),
        (&|dir| put(dir, "defaults/a.conf", "spark.sparkgate.defaults b"), "a.conf", "can't choose others"),
        (&|dir| put(dir, "spark-conf/spark-defaults.conf", ""), "spark-defaults.conf", "--spark-defaults"),
        (&|dir| put(dir, "hadoop-conf/core-site.xml~", ""), "hadoop-conf/core-site.xml~", "letters, digits and -_."),
        (&|dir| put(dir, "files/a/b", ""), "files/a", "is not a regular file"),
        (&|dir| put(dir, "files/big", &"x".repeat((1 << 20) + 1)), "files/big", "1048577 bytes"),
        (
            &|dir| {
                fs::create_dir(dir.join("files")).unwrap();
                symlink(outside.path(), dir.join("files/out")).unwrap();
            },
            "files/out",
            "points outside of the directory",
        ),
    ];
    for (spoil, file, problem) in cases {
        let dir = tempfile::tempdir().unwrap();
        spoil(dir.path());
        let error = Submitter::read(dir.path()).unwrap_err().to_string();
        assert!(error.contains(file) && error.contains(problem), "{error}");
    }
    let missing = Submitter::read(Path::new("/nowhere/at/all")).unwrap_err();
    assert!(missing.to_string().contains("/nowhere/at/all"));
}
