use super::*;

const JAR: &str = "local:///opt/app.jar";

fn request(line: &[&str]) -> CreateSubmissionRequest {
    let low = [("spark.executor.memory", "8g"), ("spark.x", "low"), ("spark.kept", "1")];
    CreateSubmissionRequest {
        main_class: SPARK_SUBMIT.to_owned(),
        app_args: line.iter().map(|&word| word.to_owned()).collect(),
        spark_properties: low.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
        ..CreateSubmissionRequest::default()
    }
}

fn expand(line: &[&str]) -> CreateSubmissionRequest {
    expand_command_line(request(line), SparkVersion::V4_3).unwrap()
}

fn refusal(line: &[&str]) -> (String, String) {
    let refusal = expand_command_line(request(line), SparkVersion::V4_3).unwrap_err();
    (refusal.field, refusal.reason)
}

#[test]
fn options_override_conf_and_conf_overrides_properties() {
    let line =
        ["--executor-memory", "2g", "--conf", "spark.executor.memory=9g", "-c", "spark.x=a=b", "--class", "a.B", JAR];
    let request = expand(&line);
    assert_eq!(request.spark_properties["spark.executor.memory"], "2g");
    assert_eq!(request.spark_properties["spark.x"], "a=b");
    assert_eq!(request.spark_properties["spark.kept"], "1");
    assert_eq!((request.main_class.as_str(), request.app_resource.as_str()), ("a.B", JAR));
}

#[test]
fn the_last_one_of_conf_and_options_that_become_conf_wins() {
    let memory = |line: &[&str]| expand(&[line, &[JAR]].concat()).spark_properties["spark.driver.memory"].clone();
    assert_eq!(memory(&["--driver-memory", "2g", "--conf", "spark.driver.memory=3g"]), "3g");
    assert_eq!(memory(&["--conf", "spark.driver.memory=3g", "--driver-memory", "2g"]), "2g");
}

#[test]
fn values_may_be_joined_and_arguments_of_the_application_are_not_parsed() {
    let request = expand(&["--verbose=yes", "--name=My App", "--conf=spark.a=b=c", JAR, "--name", "-x", ""]);
    assert_eq!(request.spark_properties["spark.app.name"], "My App");
    assert_eq!(request.spark_properties["spark.a"], "b=c");
    assert_eq!(request.app_args, ["--name", "-x", ""]);
}

#[test]
fn an_expanded_command_line_is_not_expanded_again() {
    let once = expand(&["--proxy-user", "bob", "local:///pi.py", "10"]);
    assert_eq!((once.main_class.as_str(), once.proxy_user.as_deref()), ("", Some("bob")));
    assert_eq!(expand_command_line(once.clone(), SparkVersion::V4_3).unwrap(), once);
    assert_eq!(refusal(&["--class", SPARK_SUBMIT, JAR]).0, "appArgs[0]");
}

#[test]
fn an_invalid_argument_is_named_by_its_index() {
    for (line, at, reason) in [
        (&["--class", "a.B", "--bogus=x", JAR][..], "appArgs[2]", "Unrecognized option: --bogus"),
        (&["--name=", JAR], "appArgs[0]", "Unrecognized option: --name="),
        (&["-c=spark.a=b", JAR], "appArgs[0]", "Unrecognized option: -c=spark.a=b"),
        (&["--class", "a.B", "--name"], "appArgs[2]", "Missing argument for option '--name'."),
        (&["--conf", "spark.a", JAR], "appArgs[0]", "Invalid argument to --conf: spark.a"),
        (&["--deploy-mode", "far", JAR], "appArgs[0]", "--deploy-mode must be either \"client\" or \"cluster\""),
        (&["--total-executor-cores", "1.5", JAR], "appArgs[0]", "Total executor cores must be a positive number"),
    ] {
        assert_eq!(refusal(line), (at.to_owned(), reason.to_owned()));
    }
    for (line, at, part) in [
        (&["--class", "a.B"][..], "appArgs", "Missing application resource."),
        (&["/opt/pi.py"], "appArgs[0]", "Please specify spark.kubernetes.file.upload.path property."),
        (&["spark-submit", "--name", "Pi", JAR], "appArgs[0]", "begins after `spark-submit`"),
        (&["--name Pi", JAR], "appArgs[0]", "Each option and each value is an entry of its own"),
        (&["--jars", "local:///a.jar,b.jar", JAR], "appArgs[0]", "b.jar"),
        (&["--properties-file", "x.conf", JAR], "appArgs[0]", "spark.sparkgate.defaults"),
        (&["--status", "driver-1"], "appArgs[0]", "GET /v1/submissions/status"),
        (&["--master", "yarn", JAR], "appArgs[0]", "Drivers run on Kubernetes"),
        (&["--class", "org.apache.spark.repl.Main"], "appArgs[0]", "not applicable to Spark shells"),
    ] {
        let (field, reason) = refusal(line);
        assert!(field == at && reason.contains(part), "{field}: {reason}");
    }
}

#[test]
fn an_older_release_refuses_later_options() {
    let line = request(&["--load-spark-defaults", JAR]);
    let error = expand_command_line(line.clone(), SparkVersion::V3_5).unwrap_err();
    assert_eq!(error.reason, "Unrecognized option: --load-spark-defaults");
    assert!(expand_command_line(line, SparkVersion::V4_0).is_ok());
}
