//! What the application itself wrote, among the records of Spark's logger in a driver's log.

use super::cause::{LONGEST, OF_PYTHON_PROCESS, TRACEBACK, UNCAUGHT, is_class_name, level};

/// Lines that Spark, the JVM or the image's entrypoint write without a level.
const OF_SPARK: [&str; 5] = [
    "WARNING: Using incubator modules: ",
    "Using Spark's default log4j profile: ",
    "Setting default log level to ",
    "To adjust logging level use ",
    "Picked up JAVA_TOOL_OPTIONS: ",
];

/// Selects the lines of a log that the application wrote: all but the records of Spark's logger, with the exceptions in them, and the
/// commands that the image's entrypoint echoes (`set -x`).
#[derive(Debug, Clone)]
pub struct OwnOutput {
    /// The lines are those of the entrypoint, which is the first program of a container.
    is_start: bool,
    /// The last line with a beginning of its own belongs to a record.
    in_record: bool,
    /// The line before was a record, so the next may begin its exception.
    after_record: bool,
}

impl Default for OwnOutput {
    fn default() -> Self {
        Self { is_start: true, in_record: false, after_record: false }
    }
}

impl OwnOutput {
    /// Returns whether the application wrote the next line of the log.
    pub fn has(&mut self, line: &str) -> bool {
        if self.is_start && (line.starts_with("+ ") || line.starts_with("++ ")) {
            return false;
        }
        self.is_start = false;
        let is_record = level(line).is_some();
        let continues = line.starts_with(['\t', ' ']) || line.starts_with("Caused by: ");
        if is_record {
            self.in_record = true;
        } else if !continues {
            self.in_record = self.after_record && is_exception(line) || is_of_python_process(line);
        }
        self.after_record = is_record;
        !(self.in_record || OF_SPARK.iter().any(|beginning| line.starts_with(beginning)))
    }
}

/// Returns whether a line begins an exception of a JVM: `java.io.IOException: …`.
fn is_exception(line: &str) -> bool {
    let class = line.split_once(": ").map_or(line, |(class, _)| class);
    class.contains('.') && (class.ends_with("Exception") || class.ends_with("Error")) && is_class_name(class)
}

/// Returns whether spark-submit reports the end of the Python process.
fn is_of_python_process(line: &str) -> bool {
    line.strip_prefix(UNCAUGHT).is_some_and(|sentence| sentence.starts_with(OF_PYTHON_PROCESS))
}

/// Returns the last line that the application wrote, shortened to one sentence's length.
pub fn last_own_line(log: &str) -> Option<String> {
    let mut own = OwnOutput::default();
    let line = log.lines().filter(|line| own.has(line) && !line.trim().is_empty()).last()?.trim();
    Some(line[..line.floor_char_boundary(LONGEST)].to_owned())
}

/// Returns the application's own output at the end of a log, from the first uncaught exception on if there is one; all of the text if
/// the application wrote nothing.
pub fn own_end(log: &str) -> String {
    let mut own = OwnOutput::default();
    let lines: Vec<&str> = log.split_inclusive('\n').filter(|line| own.has(line.trim_end_matches('\n'))).collect();
    let begins_exception = |line: &&str| line.trim_end() == TRACEBACK || line.starts_with(UNCAUGHT);
    let from = lines.iter().position(begins_exception).unwrap_or_default();
    match lines.iter().all(|line| line.trim().is_empty()) {
        true => log.to_owned(),
        false => lines[from..].concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "+ exec /usr/bin/tini -s -- spark-submit\n\
        WARNING: Using incubator modules: jdk.incubator.vector\n\
        26/01/02 03:04:05 INFO SparkContext: Running Spark version 4.0.1\n\
        rows: 7\n\
        + not the entrypoint\n\
        26/01/02 03:04:05 WARN TaskSetManager: Lost task 0.0\n\
        java.lang.IllegalStateException: of a task\n\
        \tat a.b.C(C.java:1)\n\
        Caused by: java.io.IOException: deeper\n\
        \tat a.b.D(D.java:2)\n\
        java.lang.Strange text of the application\n\
        Traceback (most recent call last):\n  File \"/app.py\", line 7\n\
        ValueError: no such column: x\n\
        26/01/02 03:04:06 INFO ShutdownHookManager: Shutdown hook called\n\
        Exception in thread \"main\" org.apache.spark.SparkUserAppException: User application exited with 1\n\
        \tat org.apache.spark.deploy.PythonRunner$.main(PythonRunner.scala:1)\n";

    #[test]
    fn records_with_their_exceptions_and_the_entrypoint_are_not_the_applications() {
        let mut own = OwnOutput::default();
        let lines: Vec<&str> = LOG.lines().filter(|line| own.has(line)).collect();
        let expected = [
            "rows: 7",
            "+ not the entrypoint",
            "java.lang.Strange text of the application",
            "Traceback (most recent call last):",
            "  File \"/app.py\", line 7",
            "ValueError: no such column: x",
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn the_end_begins_at_the_exception() {
        assert!(own_end(LOG).starts_with("Traceback") && own_end(LOG).ends_with("column: x\n"));
        let uncaught =
            "a\nException in thread \"main\" java.lang.Error: x\n\tat a.B(B.java:1)\n26/01/02 03:04:06 INFO A: b\n";
        assert_eq!(own_end(uncaught), "Exception in thread \"main\" java.lang.Error: x\n\tat a.B(B.java:1)\n");
        let records = "26/01/02 03:04:06 ERROR A: b\n";
        assert_eq!(own_end(records), records, "there is nothing else");
    }

    #[test]
    fn the_last_line_is_the_applications() {
        assert_eq!(last_own_line(LOG).as_deref(), Some("ValueError: no such column: x"));
        assert_eq!(last_own_line("26/01/02 03:04:06 ERROR A: b\n\n"), None);
    }
}
