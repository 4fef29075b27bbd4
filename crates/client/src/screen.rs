//! Output: the requested data goes to standard output, everything else to standard error.

use std::io::{IsTerminal, Write, stderr, stdout};

use clap::builder::styling::{AnsiColor, Style};

use super::{
    clean,
    error::Error,
    table::{self, Cell, Column},
};

/// Writes data unchanged and flushes it.
///
/// # Errors
/// Those of standard output, including that its reader has closed it.
pub(super) fn write(data: &[u8]) -> Result<(), Error> {
    let mut out = stdout().lock();
    out.write_all(data)?;
    Ok(out.flush()?)
}

/// Writes text and flushes it. Its colours are removed unless standard output displays colours: a terminal does by default,
/// and `NO_COLOR`, `CLICOLOR` and `CLICOLOR_FORCE` are honoured.
///
/// # Errors
/// Those of [`write()`].
pub(super) fn text(text: &str) -> Result<(), Error> {
    let mut out = anstream::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

/// Writes a line as by [`text()`].
pub(super) fn line(line: &str) -> Result<(), Error> {
    text(&format!("{line}\n"))
}

/// Writes a document of the gateway unchanged.
pub(super) fn document(body: &[u8]) -> Result<(), Error> {
    let body = body.trim_ascii_end();
    write(&[body, b"\n"].concat())
}

/// Writes a table, which fits into the terminal if standard output is one.
pub(super) fn table(columns: &[Column], rows: &[Vec<Cell>]) -> Result<(), Error> {
    text(&table::layout(columns, rows, width()))
}

/// Returns a state in its colour.
pub(super) fn state(state: &str) -> String {
    let state = clean::line(state);
    let style = style_of(&state);
    format!("{style}{state}{style:#}")
}

/// Writes a line for the user to standard error. Errors are ignored, so that a closed standard error stops no command.
pub(super) fn note(text: &str) {
    let _ = writeln!(stderr(), "{text}");
}

/// Returns the colour of a state.
pub(super) fn style_of(state: &str) -> Style {
    let colour = match state {
        "RUNNING" => AnsiColor::Cyan,
        "FINISHED" => AnsiColor::Green,
        "FAILED" | "ERROR" | "LOST" => AnsiColor::Red,
        "KILLING" | "KILLED" => AnsiColor::Yellow,
        _ => return Style::new(),
    };
    Style::new().fg_color(Some(colour.into()))
}

/// Returns the number of columns, if standard output is a terminal.
fn width() -> Option<usize> {
    let out = stdout();
    let size = out.is_terminal().then(|| rustix::termios::tcgetwinsize(out).ok())??;
    (size.ws_col > 0).then_some(size.ws_col.into())
}
