//! Which statements are run: those that only read.
//!
//! Spark has no mode for this. A query is therefore made part of another one, `SELECT * FROM (…)`: whatever begins so is parsed as a query, and
//! Spark's grammar has no statement that writes in one (`SqlBaseParser.g4`: `statement`, `query`). SHOW and DESCRIBE are commands that
//! write nothing.

/// The words that begin a query.
const QUERIES: [&str; 5] = ["SELECT", "WITH", "VALUES", "FROM", "TABLE"];
/// The words that begin a command that only reads.
const COMMANDS: [&str; 3] = ["SHOW", "DESCRIBE", "DESC"];
/// Functions that call any method of Java, and the clause with which a function can be called by a computed name.
const REFUSED: [&str; 4] = ["REFLECT", "TRY_REFLECT", "JAVA_METHOD", "IDENTIFIER"];

/// Returns a statement as it is run.
///
/// # Errors
/// Says why it isn't.
pub(super) fn readable(sql: &str) -> Result<String, String> {
    let sql = sql.trim().trim_end_matches(';').trim_end();
    let first = sql.trim_start_matches(|c: char| c == '(' || c.is_whitespace());
    let first = first.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or_default();
    let is_one_of = |words: &[&str], word: &str| words.iter().any(|one| one.eq_ignore_ascii_case(word));
    let mut words = sql.split(|c: char| !c.is_alphanumeric() && c != '_');
    if let Some(word) = words.find(|word| is_one_of(&REFUSED, word)) {
        return Err(format!("`{word}` can do more than read"));
    }
    if is_one_of(&QUERIES, first) {
        // A comment may end the line.
        return Ok(format!("SELECT * FROM (\n{sql}\n)"));
    }
    if is_one_of(&COMMANDS, first) && sql.starts_with(first) {
        return Ok(sql.to_owned());
    }
    Err("it has to begin with SELECT, WITH, VALUES, FROM, TABLE, SHOW or DESCRIBE, without a comment before".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_becomes_part_of_a_query() {
        for query in ["select 1", " (SELECT 1) UNION (SELECT 2);\n", "WITH a AS (SELECT 1) SELECT * FROM a", "TABLE t"]
        {
            let run = readable(query).unwrap();
            assert!(run.starts_with("SELECT * FROM (\n") && run.ends_with("\n)") && !run.contains(';'), "{run}");
        }
        // Whatever ends the parenthesis, the statement begins as a query.
        assert!(readable("SELECT 1) x; DROP TABLE t --").unwrap().starts_with("SELECT * FROM (\nSELECT 1) x;"));
    }

    #[test]
    fn commands_that_show_are_run_as_they_are() {
        for command in ["SHOW TABLES", "describe t", "DESC EXTENDED t"] {
            assert_eq!(readable(command).as_deref(), Ok(command));
        }
    }

    #[test]
    fn all_else_is_refused() {
        for other in [
            "",
            "DROP TABLE t",
            "INSERT INTO t SELECT 1",
            "CREATE TABLE t AS SELECT 1",
            "SET a=b",
            "CACHE TABLE t",
            "ADD JAR 'x'",
            "EXECUTE IMMEDIATE 'DROP TABLE t'",
            "/* SELECT */ DROP TABLE t",
            "BEGIN SELECT 1; END",
            "(SHOW TABLES)",
            "SELECTED",
            "SELECT java_method('java.lang.System', 'exit', 1)",
            "SELECT `reflect`('java.lang.System', 'exit', 1)",
            "SELECT identifier('ref' || 'lect')('java.lang.System', 'exit', 1)",
        ] {
            assert!(readable(other).is_err(), "{other}");
        }
    }
}
