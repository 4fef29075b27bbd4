//! Addresses of applications and their dependencies, and packages.

use serde_json::json;

use super::Driver;

#[test]
fn each_address_must_be_permitted() {
    let document = json!({ "resources": ["local:///opt/spark/**", "s3a://team/**"] });
    Driver::new(&[]).passes(document.clone());
    for key in ["spark.jars", "spark.files", "spark.archives", "spark.submit.pyFiles", "spark.eventLog.dir"] {
        let of = |value: &str| {
            let mut driver = Driver::new(&[]);
            driver.properties.insert(key.to_owned(), value.to_owned());
            driver
        };
        of("s3a://team/a.jar, local:///opt/spark/b.jar").passes(document.clone());
        for bad in [
            "s3a://other/a.jar",
            "s3a://team/a.jar,https://evil/a.jar",
            "s3a://team/../other/a.jar",
            "local:///opt/spark/../../etc/passwd",
            "s3a://team@other/a.jar",
            "/etc/passwd",
        ] {
            of(bad).breaks(document.clone(), "resources");
        }
        let mut default = of("hdfs://shared/a.jar");
        default.origins.insert(key.to_owned(), "base".to_owned());
        default.passes(document.clone());
    }
    let mut driver = Driver::new(&[]);
    for (resource, passes) in
        [("spark-internal", true), ("s3a://team/a.py", true), ("s3a://other/a.py", false), ("app.py", false)]
    {
        resource.clone_into(&mut driver.app_resource);
        assert_eq!(driver.violations(document.clone()).is_empty(), passes, "{resource}");
    }
}

#[test]
fn packages_need_permission() {
    let packages = || {
        let mut driver = Driver::new(&[]);
        driver.properties.insert("spark.jars.packages".to_owned(), "a:b:1".to_owned());
        driver
    };
    packages().breaks(json!({}), "packages");
    packages().passes(json!({ "packages": true }));
    for key in ["spark.jars.repositories", "spark.jars.ivySettings"] {
        let mut driver = packages();
        driver.properties.insert(key.to_owned(), "https://evil.example/m2".to_owned());
        driver.breaks(json!({ "packages": true }), "packages");
        driver.passes(json!({ "packages": "repositories" }));
        driver.breaks(
            json!({ "packages": "repositories", "resources": ["https://repo.example.org/**", "local:///**"] }),
            "resources",
        );
    }
}
