//! Finds the cause of a failure in the log of a driver: the sentence of the exception that ended it.

use std::borrow::Cow;

pub(super) const TRACEBACK: &str = "Traceback (most recent call last):";
pub(super) const UNCAUGHT: &str = "Exception in thread \"main\" ";
const PY4J: &str = "py4j.protocol.Py4JJavaError: ";
/// A JVM prints it after the line that says why.
const NO_JVM: &str = "Error: Could not create the Java Virtual Machine.";
/// spark-submit throws it if the Python process, whose traceback is in the log, failed.
pub(super) const OF_PYTHON_PROCESS: &str = "org.apache.spark.SparkUserAppException: ";
/// Maximum length of a sentence in bytes.
pub(super) const LONGEST: usize = 1000;

/// Returns the sentence of the exception that ended a driver, such as `ValueError: no such column: x`, from the end of its log;
/// `None` if no exception ended it.
///
/// Of a Python traceback this is the last line, and of a JVM's exception the deepest cause; if one contains the other, as
/// `Py4J`'s exceptions do, the innermost counts. Exceptions that Spark only logged are not considered: it retries tasks, for
/// example. A JVM or an interpreter that can't start the application reports a line without an exception.
pub fn cause(log: &str) -> Option<String> {
    let mut reader = Reader::default();
    let lines = whole_lines(log);
    let mut before = "";
    for (at, line) in lines.iter().enumerate() {
        reader.take(before, line, lines.get(at + 1).map(Cow::as_ref).unwrap_or_default());
        before = line;
    }
    reader.thrown.or(reader.reported)
}

/// Returns the lines of a log. A process that writes a line in several parts may be interrupted by a record of the JVM's logger.
fn whole_lines(log: &str) -> Vec<Cow<'_, str>> {
    let mut lines: Vec<Cow<'_, str>> = Vec::new();
    let mut begun: Option<&str> = None;
    for line in log.lines() {
        if let Some(head) = begun {
            if level(line).is_none() {
                begun = None;
                lines.push(format!("{head}{line}").into());
            }
        } else {
            begun = interrupted(line);
            lines.extend(begun.is_none().then_some(line.into()));
        }
    }
    lines.extend(begun.map(Cow::from));
    lines
}

/// Returns the part of a line before a record of a logger, if the line contains one.
fn interrupted(line: &str) -> Option<&str> {
    const TIME: usize = "26/01/02 03:04:05".len();
    let record = [" INFO ", " WARN ", " ERROR "].iter().filter_map(|level| line.find(level)).min()?;
    let (head, time) = line.get(..record)?.split_at_checked(record.checked_sub(TIME)?)?;
    let is_time = time.bytes().enumerate().all(|(at, byte)| match at {
        2 | 5 => byte == b'/',
        8 => byte == b' ',
        11 | 14 => byte == b':',
        _ => byte.is_ascii_digit(),
    });
    (is_time && !head.is_empty()).then_some(head)
}

/// Returns the message of a failure without the exit code that it begins with, if it also has a cause: `ValueError: x` of
/// `the driver exited with code 1 (Error): ValueError: x`.
pub fn headline(message: &str) -> &str {
    let rest = message.strip_prefix("the driver exited with code ").and_then(|rest| rest.split_once(": "));
    rest.map(|(_, cause)| cause).filter(|cause| !cause.is_empty()).unwrap_or(message)
}

/// Returns the first line of a headline for a row of a table, where the packages of an exception's class take the room of its
/// message: `ParseException: x` of `org.apache.spark.sql.catalyst.parser.ParseException: x`.
pub fn headline_of_row(message: &str) -> &str {
    let line = headline(message).lines().next().unwrap_or_default();
    let class = line.split_once(':').map_or(line, |(class, _)| class);
    let name = class.rfind('.').filter(|_| is_class_name(class)).map_or(0, |at| at + 1);
    if line[name..].starts_with(char::is_uppercase) { &line[name..] } else { line }
}

/// Returns whether a text can be the name of a class, with or without packages.
pub(super) fn is_class_name(text: &str) -> bool {
    text.chars().all(|c| c.is_alphanumeric() || matches!(c, '.' | '$' | '_'))
}

#[derive(Default)]
struct Reader {
    /// The sentence of the last exception that was thrown.
    thrown: Option<String>,
    /// The last error without an exception.
    reported: Option<String>,
    /// A jar that spark-submit didn't find.
    missing_jar: Option<String>,
    /// The lines belong to a thrown exception.
    open: bool,
    /// The lines are the stack frames of a traceback.
    frames: bool,
}

impl Reader {
    fn take(&mut self, before: &str, line: &str, next: &str) {
        let level = level(line);
        if line.ends_with(TRACEBACK) {
            let nested = self.open && level.is_none();
            self.open = nested || line.len() == TRACEBACK.len() || is_uncaught(line);
            self.frames = true;
        } else if let Some(level) = level {
            // Other threads may log while an exception is printed. Only warnings and errors have exceptions of their own.
            self.open &= matches!(level, "INFO" | "DEBUG" | "TRACE");
            self.frames &= self.open;
            if let Some((_, jar)) = line.split_once(" DependencyUtils: Local jar ") {
                self.missing_jar = jar.strip_suffix(" does not exist, skipping.").map(str::to_owned);
            }
        } else if self.frames {
            if !line.is_empty() && !line.starts_with([' ', '\t']) {
                self.frames = false;
                self.found(line, next);
            }
        } else if let Some(sentence) = line.strip_prefix(UNCAUGHT) {
            self.open = is_uncaught(line);
            self.found(sentence, next);
        } else if let Some(sentence) = line.strip_prefix("Caused by: ") {
            if !self.repeats(sentence) && !self.says_more_than(sentence) {
                self.found(sentence, next);
            }
        } else if let Some(sentence) = line.strip_prefix(": ") {
            if self.thrown.as_ref().is_some_and(|thrown| thrown.starts_with(PY4J)) {
                self.found(sentence, next);
            }
        } else if line.starts_with("  File \"") && line.contains("\", line ") && !self.open {
            // A syntax error of the application's main file has no header.
            (self.open, self.frames) = (true, true);
        } else if line == NO_JVM {
            self.reported = Some(before.to_owned());
        } else if line.starts_with("Error: ") && before != NO_JVM || line.contains(": can't open file '") {
            let jar = self.missing_jar.take().map(|jar| format!(" Local jar {jar} does not exist."));
            self.reported = Some(one_sentence(&format!("{line}{}", jar.unwrap_or_default()), next));
        }
    }

    fn found(&mut self, sentence: &str, next: &str) {
        if self.open {
            self.thrown = Some(one_sentence(sentence, next));
        }
    }

    /// Returns whether the exception that this one caused names the host that the cause leaves out.
    fn says_more_than(&self, cause: &str) -> bool {
        let message = cause.split_once(": ").map_or("", |(_, message)| message);
        WITHOUT_HOST.iter().any(|words| message.starts_with(words)) && self.thrown.as_deref().is_some_and(names_host)
    }

    /// Returns whether a cause is the last part of the exception that it caused: `java.io.IOException: Cannot run program "x":
    /// error=2` is caused by `java.io.IOException: error=2`.
    fn repeats(&self, cause: &str) -> bool {
        let outer = self.thrown.as_deref().and_then(|thrown| thrown.split_once(": "));
        matches!((outer, cause.split_once(": ")), (Some((class, outer)), Some((same, inner)))
            if class == same && outer.ends_with(inner))
    }
}

/// Causes that don't say which host they are about.
const WITHOUT_HOST: [&str; 5] =
    ["Connection refused", "Connection timed out", "connect timed out", "Connection reset", "No route to host"];

/// Returns whether a text names a port of a host: `db:5432`, `[::1]:80`.
fn names_host(text: &str) -> bool {
    text.split([' ', ',', ';', '(', ')', '"', '\'', '/']).any(|word| {
        let (host, port) = word.trim_end_matches(['.', ':']).rsplit_once(':').unwrap_or_default();
        !host.is_empty() && port.parse::<u16>().is_ok()
    })
}

/// Returns whether the line begins an exception that ended the application.
fn is_uncaught(line: &str) -> bool {
    line.strip_prefix(UNCAUGHT).is_some_and(|sentence| !sentence.starts_with(OF_PYTHON_PROCESS))
}

/// Returns the level of a line that was written by a logger: `26/01/02 03:04:05 INFO SparkContext: …`, or JSON.
pub(super) fn level(line: &str) -> Option<&str> {
    const LEVELS: [&str; 6] = ["TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"];
    if line.starts_with("{\"ts\":") {
        return Some(LEVELS[2]);
    }
    line.starts_with(|first: char| first.is_ascii_digit()).then_some(())?;
    line.split(' ').take(4).find(|word| LEVELS.contains(word))
}

/// Shortens a message to its first line and to a maximum length.
fn one_sentence(line: &str, next: &str) -> String {
    // Some messages begin with a line break.
    if line.trim_end().ends_with(':') && !next.trim().is_empty() && !next.ends_with(TRACEBACK) && level(next).is_none()
    {
        return one_sentence(&format!("{} {}", line.trim(), next.trim()), "");
    }
    let line = line.trim();
    let ends_here = next.trim().is_empty()
        || next.starts_with(['\t', ':'])
        || next.starts_with("Caused by: ")
        || next.starts_with(UNCAUGHT)
        || next.ends_with(TRACEBACK)
        || level(next).is_some();
    match line.floor_char_boundary(LONGEST) {
        end if end < line.len() => format!("{}…", line[..end].trim_end()),
        _ if ends_here => line.to_owned(),
        _ => format!("{line} …"),
    }
}

#[cfg(test)]
mod tests;
