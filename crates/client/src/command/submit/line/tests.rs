use clap::{Parser, error::ErrorKind};

use super::*;
use sparkgate_spark::{CreateSubmissionRequest, SparkVersion, expand_command_line};

#[derive(Debug, Parser)]
struct Cli {
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    line: CommandLine,
}

fn parse(words: &[&str]) -> Result<Cli, Error> {
    Cli::try_parse_from([&["submit"], words].concat())
}

fn line(words: &[&str]) -> Vec<String> {
    parse(words).unwrap().line.0
}

const JAR: &str = "local:///opt/app.jar";

#[test]
fn options_keep_their_order_and_lose_none_of_their_values() {
    assert_eq!(
        line(&[
            "--conf",
            "spark.a=1",
            "--wait",
            "--driver-memory=2g",
            "-c",
            "spark.driver.memory=3g",
            "--name",
            "",
            JAR
        ]),
        ["--conf", "spark.a=1", "--driver-memory", "2g", "--conf", "spark.driver.memory=3g", "--name", "", JAR]
    );
    assert_eq!(line(&["--driver-java-options", "-Dx=y --z", "--name", "-5", JAR])[1..4], ["-Dx=y --z", "--name", "-5"]);
    assert_eq!(line(&["-v", "--supervise", "--verbose", JAR]), ["--supervise", "--verbose", JAR]);
}

#[test]
fn options_and_application_are_told_apart() {
    let line = parse(&["--supervise", "--name", "--class", "--conf", "a=b", JAR, "--jars", "x"]).unwrap().line;
    let (options, application) = line.parts();
    assert_eq!((options.len(), application), (5, &[JAR, "--jars", "x"].map(str::to_owned)[..]));
    assert!(line.has("name") && line.has("conf") && line.has("supervise"));
    assert!(!line.has("class") && !line.has("jars"), "a value, and an argument");
    assert!(parse(&["--name", "x"]).unwrap().line.parts().1.is_empty());
}

#[test]
fn words_after_the_application_are_its_arguments() {
    let cli = parse(&["--class", "a.B", JAR, "--wait", "--name", "x", "-", "", "--", "-c"]).unwrap();
    assert!(!cli.wait);
    assert_eq!(cli.line.0, ["--class", "a.B", JAR, "--wait", "--name", "x", "-", "", "--", "-c"]);
}

#[test]
fn unknown_and_refused_options_are_errors() {
    let error = parse(&["--clas", "a.B", JAR]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnknownArgument);
    assert!(error.to_string().contains("--class"), "{error}");
    for (name, part) in [("--kill", "sparkgate kill ID"), ("--status", "sparkgate status ID")] {
        let error = parse(&[name, "driver-1-1"]).unwrap_err();
        assert!(error.to_string().contains(part), "{error}");
    }
}

/// Expands a command line of all options as the gateway does, which fails for an unknown option.
#[test]
fn the_gateway_knows_every_option() {
    let mut words: Vec<String> = SWITCHES.iter().map(|(name, _)| format!("--{name}")).collect();
    for (name, ..) in VALUED {
        let value = match name {
            "conf" => "spark.a=b",
            "master" => "k8s://https://host",
            "deploy-mode" => "cluster",
            "jars" | "py-files" | "files" | "archives" => "https://host/a.zip",
            _ => "1",
        };
        words.extend([format!("--{name}"), value.to_owned()]);
    }
    words.extend([JAR.to_owned(), "--conf".to_owned()]);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let request = CreateSubmissionRequest {
        main_class: "org.apache.spark.deploy.SparkSubmit".to_owned(),
        app_args: line(&words),
        ..CreateSubmissionRequest::default()
    };
    let expanded = expand_command_line(request, SparkVersion::V4_3).unwrap();
    assert_eq!((expanded.app_resource.as_str(), expanded.app_args), (JAR, vec!["--conf".to_owned()]));
    assert_eq!(expanded.spark_properties["spark.executor.instances"], "1");
}
