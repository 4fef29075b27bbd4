//! Output: the requested data goes to standard output, everything else to standard error.

use std::{
    io::{IsTerminal, Write, stderr, stdout},
    sync::atomic::{AtomicBool, Ordering},
};

use clap::builder::styling::{AnsiColor, Style};

use super::{
    clean::{self, Pieces},
    contexts::text_of,
    document as documents,
    error::Error,
    table::{self, Cell, Column, Widths},
};

/// Output of text that other users have written and that arrives in pieces. A terminal gets it cleaned, a file or a pipe unchanged.
#[derive(Debug)]
pub(super) struct Foreign {
    /// `None` if standard output is not a terminal.
    pieces: Option<Pieces>,
}

impl Foreign {
    pub(super) fn new() -> Self {
        Self { pieces: stdout().is_terminal().then(Pieces::default) }
    }

    /// Writes a piece and flushes it.
    ///
    /// # Errors
    /// Those of standard output, including that its reader has closed it.
    pub(super) fn write(&mut self, piece: &[u8]) -> Result<(), Error> {
        match &mut self.pieces {
            Some(pieces) => write(pieces.take(piece).as_bytes()),
            None => write(piece),
        }
    }

    /// Writes what is left at the end.
    ///
    /// # Errors
    /// Those of [`Foreign::write`].
    pub(super) fn finish(&mut self) -> Result<(), Error> {
        self.pieces.as_mut().map_or(Ok(()), |pieces| write(pieces.finish().as_bytes()))
    }
}

fn write(data: &[u8]) -> Result<(), Error> {
    let mut out = stdout().lock();
    out.write_all(data)?;
    Ok(out.flush()?)
}

/// Writes text and flushes it. Its colours are removed unless standard output displays colours: a terminal does by default,
/// and `NO_COLOR`, `CLICOLOR` and `CLICOLOR_FORCE` are honoured.
///
/// # Errors
/// Those of standard output, including that its reader has closed it.
pub(super) fn text(text: &str) -> Result<(), Error> {
    let mut out = anstream::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

/// Writes a line as by [`text()`].
pub(super) fn line(line: &str) -> Result<(), Error> {
    text(&format!("{line}\n"))
}

/// Writes a document of the gateway: unchanged, unless it has characters that control a terminal and standard output is one.
pub(super) fn document(body: &[u8]) -> Result<(), Error> {
    let line = [body.trim_ascii_end(), b"\n"].concat();
    match stdout().is_terminal() {
        true => write(clean::lines(&String::from_utf8_lossy(&line)).as_bytes()),
        false => write(&line),
    }
}

/// Writes a JSON document as YAML. A line `---` separates it from the one before.
///
/// # Errors
/// Those of standard output; the document isn't JSON.
pub(super) fn yaml(body: &[u8]) -> Result<(), Error> {
    static IS_FURTHER: AtomicBool = AtomicBool::new(false);
    let value: serde_json::Value = documents::read("printing YAML", body)?;
    let separator = if IS_FURTHER.swap(true, Ordering::Relaxed) { "---\n" } else { "" };
    document(format!("{separator}{}", text_of(&value)?).as_bytes())
}

/// Writes a table, which fits into the terminal if standard output is one.
pub(super) fn table(columns: &[Column<'_>], rows: &[Vec<Cell>]) -> Result<(), Error> {
    text(&table::layout(columns, rows, width()))
}

/// Writes a part of a table, as by [`table()`].
pub(super) fn part(columns: &[Column<'_>], rows: &[Vec<Cell>], before: &mut Widths) -> Result<(), Error> {
    text(&table::part(columns, rows, width(), before))
}

/// Writes rows as by [`table()`], without the titles.
pub(super) fn rows(columns: &[Column<'_>], rows: &[Vec<Cell>]) -> Result<(), Error> {
    let layout = table::layout(columns, rows, width());
    text(layout.split_once('\n').map_or("", |(_, rows)| rows))
}

/// Returns a state in its colour.
pub(super) fn state(state: &str) -> String {
    let state = clean::line(state);
    let style = style_of(&state);
    format!("{style}{state}{style:#}")
}

/// Returns whether a person reads both the data and what is said about it.
pub(super) fn is_watched() -> bool {
    stdout().is_terminal() && stderr().is_terminal()
}

/// Writes a line for the user to standard error, cleaned for a terminal. Errors are ignored, so that a closed standard error stops no command.
pub(super) fn note(text: &str) {
    let _ = writeln!(stderr(), "{}", clean::lines(text));
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
pub(super) fn width() -> Option<usize> {
    let out = stdout();
    let size = out.is_terminal().then(|| rustix::termios::tcgetwinsize(out).ok())??;
    (size.ws_col > 0).then_some(size.ws_col.into())
}
