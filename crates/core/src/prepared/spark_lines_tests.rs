use std::{fs, path::Path};

use super::*;

use sparkgate_access::{Access, Tenant};
use sparkgate_requests::submitter::Submitter;
use sparkgate_spark::CreateSubmissionRequest;

const DRIVER_TEMPLATE: &str = "spark.kubernetes.driver.podTemplateFile";
const IMAGE: &str = "spark.kubernetes.container.image";

const TWO: &str = "
lines:
  - version: 4.0.5
    image: registry/spark:4.0
  - version: 3.5.9
    image: registry/spark:3.5
    namedDefaults: [old, ansi]
    defaults: {spark.a: line, spark.b: line, spark.sparkgate.runTimeout: 1h}
    driverPodTemplate: driver.yaml
";

fn put(dir: &Path, path: &str, text: &str) {
    let path = dir.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Returns the settings of a gateway of Spark 4.3.0 with a submitter directory.
fn gateway(defaults: &[(&str, &str)]) -> SparkSettings {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), "defaults/old.conf", "spark.a old\nspark.c old\nspark.sparkgate.sparkVersion 3.5\n");
    put(dir.path(), "defaults/ansi.conf", "spark.c ansi\n");
    put(dir.path(), "files/driver.yaml", "spec:\n  containers:\n  - {name: a, workingDir: /work}\n");
    let defaults = defaults.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let submitter = Submitter::read(dir.path()).unwrap();
    SparkSettings::new("4.3.0".parse().unwrap(), defaults, submitter, "tester".to_owned())
}

fn with(file: &str) -> SparkSettings {
    gateway(&[(IMAGE, "spark:4.3"), ("spark.a", "common"), ("spark.d", "common")]).with_lines(Some(file)).unwrap()
}

fn faults(defaults: &[(&str, &str)], file: &str) -> Vec<String> {
    let error = gateway(defaults).with_lines(Some(file)).unwrap_err();
    error.faults.iter().map(ToString::to_string).collect()
}

fn prepare(settings: &SparkSettings, properties: &[(&str, &str)]) -> Result<PreparedSubmission, String> {
    let properties = properties.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    let request = CreateSubmissionRequest {
        app_resource: "local:///a.jar".to_owned(),
        main_class: "A".to_owned(),
        spark_properties: properties.collect(),
        ..CreateSubmissionRequest::default()
    };
    PreparedSubmission::new(request, settings).map_err(|refusal| refusal.to_string())
}

fn tenant(fields: &str) -> Tenant {
    let text = format!("tenants: {{red: {{namespaces: [red], {fields}}}}}");
    Access::parse(&text).unwrap().tenant("red").unwrap().clone()
}

fn versions(lines: &SparkLines) -> Vec<String> {
    lines.versions().map(|version| version.to_string()).collect()
}

#[test]
fn a_gateway_without_a_file_serves_its_own_release_only() {
    let settings = gateway(&[]).with_lines(None).unwrap();
    assert_eq!(settings, gateway(&[]), "no file is the same as none");
    assert_eq!(versions(&settings.lines), ["4.3.0"]);
    for own in ["4.3", "4.3.0", " 4.3 "] {
        assert_eq!(prepare(&settings, &[(SPARK_VERSION, own)]).unwrap().version, settings.version, "{own}");
    }
    for other in ["4.2", "4.3.1", "latest", ""] {
        let refusal = prepare(&settings, &[(SPARK_VERSION, other)]).unwrap_err();
        assert!(refusal.contains(SPARK_VERSION) && refusal.contains("4.3.0 only"), "{refusal}");
    }
}

#[test]
fn a_line_has_its_release_image_defaults_and_templates() {
    let settings = with(TWO);
    assert_eq!(versions(&settings.lines), ["3.5.9", "4.0.5", "4.3.0"]);
    let prepared = prepare(&settings, &[(SPARK_VERSION, "3.5"), ("spark.b", "own")]).unwrap();
    assert_eq!(prepared.version.to_string(), "3.5.9");
    let expected = [
        ("spark.a", "line", Some("lines/3.5")),
        ("spark.b", "own", None),
        ("spark.c", "ansi", Some("lines/3.5")),
        ("spark.d", "common", Some("spark-defaults")),
        (IMAGE, "registry/spark:3.5", Some("lines/3.5")),
        (DRIVER_TEMPLATE, "driver.yaml", Some("lines/3.5")),
    ];
    for (key, value, origin) in expected {
        assert_eq!(prepared.properties()[key], value, "{key}");
        assert_eq!(prepared.origins.get(key).map(String::as_str), origin, "{key}");
    }
    assert_eq!(prepared.properties().len(), expected.len(), "{:?}", prepared.properties());
    assert_eq!(prepared.options.run_timeout.unwrap().as_secs(), 3600);
    let names = prepared.names(chrono::Utc::now());
    let driver = prepared.build(&settings, &names, chrono::Utc::now(), &[]).unwrap().to_list().unwrap();
    let pod = &driver["items"].as_array().unwrap().iter().find(|object| object["kind"] == "Pod").unwrap();
    assert_eq!(pod["metadata"]["labels"]["spark-version"], "3.5.9");
    assert_eq!(pod["spec"]["containers"][0]["workingDir"], "/work");

    let own = prepare(&settings, &[]).unwrap();
    assert_eq!((own.version, &*own.properties()[IMAGE]), (settings.version, "spark:4.3"));
}

#[test]
fn a_template_of_a_line_is_for_tenants_that_may_not_name_it() {
    let mut settings = with(TWO);
    settings.submitter.retain(|_| true, |_| false);
    let built = |properties: &[(&str, &str)]| {
        let prepared = prepare(&settings, properties).unwrap();
        let names = prepared.names(chrono::Utc::now());
        prepared.build(&settings, &names, chrono::Utc::now(), &[]).map(|_| ())
    };
    assert_eq!(built(&[(SPARK_VERSION, "3.5")]), Ok(()));
    let refusal = built(&[(SPARK_VERSION, "3.5"), (DRIVER_TEMPLATE, "driver.yaml")]).unwrap_err();
    assert!(refusal.field.contains(DRIVER_TEMPLATE), "the request itself names it: {refusal}");
}

#[test]
fn the_strongest_selection_counts() {
    let settings = with(TWO);
    let version = |properties: &[(&str, &str)]| prepare(&settings, properties).unwrap().version.to_string();
    assert_eq!(version(&[("spark.sparkgate.defaults", "old")]), "3.5.9", "named defaults select a version, too");
    assert_eq!(version(&[("spark.sparkgate.defaults", "old"), (SPARK_VERSION, "4.0.5")]), "4.0.5");

    let settings = gateway(&[(SPARK_VERSION, "4.0")]).with_lines(Some(TWO)).unwrap();
    assert_eq!(settings.lines.default_version().to_string(), "4.0.5");
    assert_eq!(prepare(&settings, &[]).unwrap().version.to_string(), "4.0.5");
    assert_eq!(prepare(&settings, &[(SPARK_VERSION, "4.3")]).unwrap().version.to_string(), "4.3.0");
}

#[test]
fn a_default_that_is_not_served_is_refused_with_its_origin() {
    let settings = gateway(&[]).with_lines(None).unwrap();
    let refusal = prepare(&settings, &[("spark.sparkgate.defaults", "old")]).unwrap_err();
    assert!(refusal.contains("`3.5`") && refusal.contains("a default of defaults/old"), "{refusal}");
    let error = gateway(&[(SPARK_VERSION, "4.1")]).with_lines(None).unwrap_err().to_string();
    assert!(error.contains("--spark-defaults sets") && error.contains("4.3.0 only"), "{error}");
}

#[test]
fn a_tenant_uses_what_it_may() {
    let lines = with(TWO).lines;
    let select = |text: &'static str, tenant: &Tenant| {
        let selection = Selection { text, by: Selector::Field };
        lines.select(Some(selection), Some(tenant)).map(|line| line.version.to_string())
    };
    let old = tenant("sparkVersions: ['3.5', 4.0.5]");
    assert_eq!(select("4.0", &old).unwrap(), "4.0.5");
    let refusal = select("4.3.0", &old).unwrap_err();
    assert_eq!(refusal.field, "sparkVersion");
    assert_eq!(refusal.reason, "tenant red may not use Spark 4.3.0; it may use 3.5.9 and 4.0.5");
    let refusal = lines.select(None, Some(&old)).unwrap_err();
    assert!(refusal.reason.ends_with("(the version is a default of the gateway)"), "{refusal}");
    assert_eq!(lines.permitted(&old).count(), 2);

    let default = |fields: &str| lines.default_of(&tenant(fields)).map(|version| version.to_string());
    assert_eq!(default("limits: {}").as_deref(), Some("4.3.0"));
    assert_eq!(default("defaultSparkVersion: '4.0'").as_deref(), Some("4.0.5"));
    assert_eq!(default("sparkVersions: ['3.5']").as_deref(), Some("3.5.9"));
    assert_eq!(default("sparkVersions: ['3.5', '4.0']"), None);
    assert_eq!(default("defaultSparkVersion: '4.2'"), None, "it isn't served");
}

#[test]
fn a_command_line_is_parsed_as_its_release_does() {
    let settings = with(TWO);
    let line = |words: &[&str]| {
        let request = CreateSubmissionRequest {
            main_class: "org.apache.spark.deploy.SparkSubmit".to_owned(),
            app_args: words.iter().map(|word| (*word).to_owned()).collect(),
            ..CreateSubmissionRequest::default()
        };
        let prepared = PreparedSubmission::new(request, &settings).map_err(|refusal| refusal.to_string());
        prepared.map(|prepared| prepared.version.to_string())
    };
    let conf = "spark.sparkgate.sparkVersion=3.5";
    assert_eq!(line(&["--conf", conf, "local:///a.py"]).unwrap(), "3.5.9");
    assert_eq!(line(&["local:///a.py", "--conf", conf]).unwrap(), "4.3.0", "an argument of the application");
    assert_eq!(line(&["--load-spark-defaults", "local:///a.py"]).unwrap(), "4.3.0");
    let refusal = line(&["--conf", conf, "--load-spark-defaults", "local:///a.py"]).unwrap_err();
    assert!(refusal.contains("appArgs[2]") && refusal.contains("--load-spark-defaults"), "{refusal}");
    // Only the older release runs this class.
    let class = ["--class", "org.apache.spark.sql.application.ConnectRepl"];
    assert_eq!(line(&[&class[..], &["--conf", conf, "local:///a.jar"]].concat()).unwrap(), "3.5.9");
    assert!(line(&[&class[..], &["local:///a.jar"]].concat()).unwrap_err().contains("Spark shells"));
}

#[test]
fn an_image_of_a_line_replaces_all_images_of_the_gateway() {
    let driver = "spark.kubernetes.driver.container.image";
    let settings = gateway(&[(IMAGE, "spark:4.3"), (driver, "driver:4.3")]).with_lines(Some(TWO)).unwrap();
    let prepared = prepare(&settings, &[(SPARK_VERSION, "4.0")]).unwrap();
    assert_eq!(
        (&*prepared.properties()[IMAGE], &*prepared.properties()[driver]),
        ("registry/spark:4.0", "registry/spark:4.0")
    );
}

#[test]
fn a_line_needs_an_image_if_that_of_the_gateway_would_not_fit() {
    let lines = "lines:\n  - version: 3.5.9\n  - version: 4.1.4\n";
    assert_eq!(
        faults(&[(IMAGE, "spark:4.3")], lines),
        [
            "line 2, column 14: lines[0]: `image` is missing: submissions would get the gateway's default, spark:4.3",
            "line 3, column 14: lines[1]: `image` is missing: submissions would get the gateway's default, spark:4.3",
        ]
    );
    // Since 4.1, Spark fills in its release.
    let filled = "spark:{{SPARK_VERSION}}";
    assert_eq!(faults(&[(IMAGE, filled)], lines).len(), 1);
    assert!(gateway(&[]).with_lines(Some(lines)).is_ok(), "requests name their images");
}

#[test]
fn all_faults_are_reported_at_once_with_their_places() {
    let file = "
lines:
  - version: '5.0'
    driverPodTemplate: none.yaml
  - version: 4.3.1
  - version: 3.5.9
    image: 'a b'
    namedDefaults: [none]
    defaults:
      spark.kubernetes.container.image: x
      spark.sparkgate.sparkVersion: '3.5'
      spark.sparkgate.killGrace: soon
      hadoop.x: y
  - version: 3.5.8
  - version: 4.0.5
    namedDefaults: [old]
";
    assert_eq!(
        faults(&[], file),
        [
            "line 3, column 14: lines[0].version: `5.0` is not a Spark version that Sparkgate knows: give 3.5.x, 4.0.x, 4.1.x, \
             4.2.x or 4.3.x",
            "line 4, column 24: lines[0].driverPodTemplate: the submitter directory has no file `none.yaml` in files/",
            "line 5, column 14: lines[1].version: the gateway's own release of this line is 4.3.0 (--spark-version): name the \
             same one",
            "line 7, column 12: lines[2].image: the name of an image has no spaces",
            "line 8, column 21: lines[2].namedDefaults[0]: the submitter directory has no `none.conf` in defaults/",
            "line 10, column 7: lines[2].defaults[\"spark.kubernetes.container.image\"]: `image` sets it already: remove one of \
             them",
            "line 11, column 7: lines[2].defaults[\"spark.sparkgate.sparkVersion\"]: the defaults of a line can't select a \
             version or named defaults",
            "line 12, column 7: lines[2].defaults[\"spark.sparkgate.killGrace\"]: \"soon\" is not a time: a whole number with s, m, \
             h or d behind it, such as 10m",
            "line 13, column 7: lines[2].defaults[\"hadoop.x\"]: the name of a property begins with `spark.` and has no spaces",
            "line 14, column 14: lines[3].version: line 3.5 has another release already: a line has one",
            "line 16, column 21: lines[4].namedDefaults[0]: `old.conf` sets spark.sparkgate.sparkVersion to 3.5: it is for \
             another line",
        ]
    );
}

#[test]
fn a_fault_of_the_form_has_its_place() {
    for (file, place, part) in [
        ("lines:\n  - {version: 3.5.9, img: x}\n", "line 2", "img"),
        ("lines: []\n", "line 1", "one line at least"),
        ("lines:\n  - {image: x}\n", "line 2", "version"),
        ("lines: {3.5: x}\n", "line 1", ""),
        ("lines: [\n", "line 1", ""),
        ("line: []\n", "line 1", "line"),
    ] {
        let found = faults(&[], file);
        assert!(found.len() == 1 && found[0].contains(place) && found[0].contains(part), "{file}: {found:?}");
    }
}
