use super::*;

/// Logs of drivers that failed, by Spark release and cause, without most of their stack frames and `INFO` lines; and the
/// sentence that is expected, if any.
const LOGS: [(&str, &str, &str); 32] = [
    (
        "3.5-python-divzero",
        include_str!("logs/3.5-python-divzero.log"),
        "org.apache.spark.SparkArithmeticException: [DIVIDE_BY_ZERO] Division by zero. Use `try_divide` to tolerate divisor being 0 and return NULL instead. If necessary set \"spark.sql.ansi.enabled\" to \"false\" to bypass this error. …",
    ),
    (
        "3.5-python-py4jerr",
        include_str!("logs/3.5-python-py4jerr.log"),
        "pyspark.errors.exceptions.captured.NumberFormatException: For input string: \"abc\"",
    ),
    (
        "3.5-python-rddnopath",
        include_str!("logs/3.5-python-rddnopath.log"),
        "java.io.IOException: Input path does not exist: file:/no/such/file",
    ),
    (
        "3.5-python-rddudf",
        include_str!("logs/3.5-python-rddudf.log"),
        "ZeroDivisionError: integer division or modulo by zero",
    ),
    (
        "3.5-python-sqlerr",
        include_str!("logs/3.5-python-sqlerr.log"),
        "pyspark.errors.exceptions.captured.ParseException: [PARSE_SYNTAX_ERROR] Syntax error at or near 'SELEC'.(line 1, pos 0)",
    ),
    (
        "3.5-python-udf",
        include_str!("logs/3.5-python-udf.log"),
        "ZeroDivisionError: integer division or modulo by zero",
    ),
    ("4.3-badconf", include_str!("logs/4.3-badconf.log"), "Invalid maximum heap size: -Xmx12q"),
    (
        "4.3-badconf2",
        include_str!("logs/4.3-badconf2.log"),
        "org.apache.spark.SparkIllegalArgumentException: [INVALID_CONF_VALUE.TYPE_MISMATCH] The value 'abc' in the config \"spark.network.timeout\" is invalid. It should be a/an 'time in SECONDS' value. SQLSTATE: 22022",
    ),
    (
        "4.3-badmaster",
        include_str!("logs/4.3-badmaster.log"),
        "org.apache.spark.SparkException: Master must either be yarn or start with spark, k8s, or local",
    ),
    (
        "4.3-java-analysis",
        include_str!("logs/4.3-java-analysis.log"),
        "org.apache.spark.sql.AnalysisException: [UNRESOLVED_COLUMN.WITH_SUGGESTION] A column, variable, or function parameter with name `nme` cannot be resolved. Did you mean one of the following? [`id`]. SQLSTATE: 42703; …",
    ),
    (
        "4.3-java-caused",
        include_str!("logs/4.3-java-caused.log"),
        "java.io.FileNotFoundException: /no/such/settings.conf (No such file or directory)",
    ),
    ("4.3-java-exit", include_str!("logs/4.3-java-exit.log"), ""),
    ("4.3-java-multi", include_str!("logs/4.3-java-multi.log"), "java.lang.RuntimeException: first line of it …"),
    ("4.3-java-nomessage", include_str!("logs/4.3-java-nomessage.log"), "java.lang.UnsupportedOperationException"),
    ("4.3-java-oom", include_str!("logs/4.3-java-oom.log"), "java.lang.OutOfMemoryError: Java heap space"),
    ("4.3-java-suppressed", include_str!("logs/4.3-java-suppressed.log"), "java.lang.RuntimeException: the cause"),
    ("4.3-java-udf", include_str!("logs/4.3-java-udf.log"), "java.lang.ArithmeticException: / by zero"),
    (
        "4.3-missingjar",
        include_str!("logs/4.3-missingjar.log"),
        "Error: Failed to load class example.Fail. Local jar /no/such.jar does not exist.",
    ),
    ("4.3-missingjarurl", include_str!("logs/4.3-missingjarurl.log"), "java.net.ConnectException: Connection refused"),
    (
        "4.3-missingpy",
        include_str!("logs/4.3-missingpy.log"),
        "/opt/venv/bin/python3: can't open file '/no/such.py': [Errno 2] No such file or directory",
    ),
    (
        "4.3-nopython",
        include_str!("logs/4.3-nopython.log"),
        "java.io.IOException: Cannot run program \"\": error=2, No such file or directory",
    ),
    ("4.3-python-chained", include_str!("logs/4.3-python-chained.log"), "RuntimeError: the report can't be made"),
    ("4.3-python-exit3", include_str!("logs/4.3-python-exit3.log"), ""),
    ("4.3-python-logged", include_str!("logs/4.3-python-logged.log"), "KeyError: 'retry' …"),
    ("4.3-python-multiline", include_str!("logs/4.3-python-multiline.log"), "RuntimeError: first line of it …"),
    (
        "4.3-python-py4jerr",
        include_str!("logs/4.3-python-py4jerr.log"),
        "pyspark.errors.exceptions.captured.NumberFormatException: For input string: \"abc\"",
    ),
    (
        "4.3-python-rddudf",
        include_str!("logs/4.3-python-rddudf.log"),
        "ZeroDivisionError: integer division or modulo by zero",
    ),
    ("4.3-python-syntax", include_str!("logs/4.3-python-syntax.log"), "SyntaxError: invalid syntax"),
    (
        "4.3-python-udf",
        include_str!("logs/4.3-python-udf.log"),
        "ZeroDivisionError: integer division or modulo by zero",
    ),
    ("4.3-python-valueerror", include_str!("logs/4.3-python-valueerror.log"), "ValueError: no such column: x"),
    (
        "4.3-s3",
        include_str!("logs/4.3-s3.log"),
        "java.lang.ClassNotFoundException: Class org.apache.hadoop.fs.s3a.S3AFileSystem not found",
    ),
    ("4.3-wrongclass", include_str!("logs/4.3-wrongclass.log"), "Error: Failed to load class example.Missing."),
];

#[test]
fn the_cause_is_found_in_logs_of_spark() {
    for (name, log, sentence) in LOGS {
        assert_eq!(cause(log).unwrap_or_default(), sentence, "{name}");
    }
}

#[test]
fn an_exception_that_spark_only_logged_is_no_cause() {
    let (_, log, _) = LOGS.into_iter().find(|(name, ..)| *name == "4.3-java-udf").unwrap();
    let (before, _) = log.split_once(UNCAUGHT).unwrap();
    assert!(before.contains("Exception in task") && before.contains("java.lang.ArithmeticException"));
    assert_eq!(cause(before), None, "the tasks were retried");
    let (_, log, _) = LOGS.into_iter().find(|(name, ..)| *name == "4.3-python-rddudf").unwrap();
    let (before, _) = log.split_once("\nTraceback").unwrap();
    assert!(before.contains("ZeroDivisionError"));
    assert_eq!(cause(before), None);
}

#[test]
fn a_long_message_is_cut() {
    let long =
        cause(&format!("{TRACEBACK}\n  File \"a.py\", line 1\nValueError: {}\n", "ä".repeat(2 * LONGEST))).unwrap();
    assert!(long.len() <= LONGEST + "…".len() && long.starts_with("ValueError: ä") && long.ends_with("ä…"), "{long}");
}

#[test]
fn what_is_no_exception_has_no_cause() {
    let logs =
        ["", "\n\n", "Caused by: x", ": y", TRACEBACK, UNCAUGHT.trim_end(), "26/01/02 03:04:05 ERROR X: Exception"];
    for log in logs {
        assert_eq!(cause(log), None, "{log}");
    }
}

#[test]
fn a_refused_connection_is_named_by_the_exception_that_has_the_host() {
    let log = |outer: &str| {
        format!("{UNCAUGHT}{outer}\n\tat x\nCaused by: java.net.ConnectException: Connection refused\n\tat y\n")
    };
    for (outer, expected) in [
        (
            "org.postgresql.util.PSQLException: Connection to db:5432 refused.",
            "org.postgresql.util.PSQLException: Connection to db:5432 refused.",
        ),
        (
            "java.io.IOException: Failed to connect to /10.0.0.1:7077",
            "java.io.IOException: Failed to connect to /10.0.0.1:7077",
        ),
        ("java.io.IOException: at 12: reading failed", "java.net.ConnectException: Connection refused"),
    ] {
        assert_eq!(cause(&log(outer)).as_deref(), Some(expected));
    }
}

#[test]
fn a_row_has_the_class_without_its_packages() {
    for (message, row) in [
        ("the driver exited with code 1 (Error): a.b.AnalysisException: x.y: z\nmore", "AnalysisException: x.y: z"),
        ("java.lang.UnsupportedOperationException", "UnsupportedOperationException"),
        ("the pod was evicted. Reason: x", "the pod was evicted. Reason: x"),
        ("docker.io/a: x", "docker.io/a: x"),
        ("registry.example: not found", "registry.example: not found"),
    ] {
        assert_eq!(headline_of_row(message), row);
    }
}

#[test]
fn a_failed_python_process_is_no_cause_of_its_own() {
    let log = format!(
        "{TRACEBACK}\n  File \"a.py\", line 1\nKeyError: 'x'\n{UNCAUGHT}{OF_PYTHON_PROCESS}User application exited with 1\n\tat x\n"
    );
    assert_eq!(cause(&log).as_deref(), Some("KeyError: 'x'"));
}

#[test]
fn causes_of_suppressed_exceptions_do_not_count() {
    let log = format!(
        "{UNCAUGHT}a.Outer: one\n\tat x\n\tSuppressed: a.Other: two\n\tCaused by: a.Deep: three\nCaused by: a.Inner: four\n"
    );
    assert_eq!(cause(&log).as_deref(), Some("a.Inner: four"));
}

#[test]
fn a_record_between_the_lines_of_an_exception_changes_nothing() {
    let log = format!(
        "{TRACEBACK}\n26/01/02 03:04:05 INFO X: y\n  File \"a.py\", line 1\nKeyError26/01/02 03:04:05 INFO X: y\n: 'x'\n"
    );
    assert_eq!(cause(&log).as_deref(), Some("KeyError: 'x'"));
}

#[test]
fn the_headline_of_a_failure_is_its_cause() {
    for (message, expected) in [
        ("the driver exited with code 1 (Error): ValueError: no x", "ValueError: no x"),
        ("the driver exited with code 3: a.B: c", "a.B: c"),
        ("the driver exited with code 1 (Error)", "the driver exited with code 1 (Error)"),
        ("ErrImagePull: no such image", "ErrImagePull: no such image"),
    ] {
        assert_eq!(headline(message), expected);
    }
}
