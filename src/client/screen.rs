//! Output: the requested data goes to standard output, everything else to standard error.

use std::io::{self, IsTerminal, Write, stderr, stdout};

use clap::builder::styling::{AnsiColor, Style};

use super::{
    clean,
    error::Error,
    table::{self, Cell, Column},
};

/// Standard output and its capabilities.
#[derive(Debug, Clone, Copy)]
pub(super) struct Screen {
    colours: bool,
    /// The number of columns, if standard output is a terminal.
    width: Option<usize>,
}

impl Screen {
    /// Detects the capabilities of standard output. Terminals get colours, unless `NO_COLOR` is set (no-color.org) or the
    /// terminal is dumb.
    pub(super) fn new() -> Self {
        let terminal = stdout().is_terminal();
        Self { colours: terminal && colours_wanted(), width: terminal.then(width).flatten() }
    }

    /// Writes text unchanged and flushes it.
    ///
    /// # Errors
    /// Those of standard output, including that its reader has closed it.
    pub(super) fn write(self, text: &[u8]) -> Result<(), Error> {
        let mut out = stdout().lock();
        out.write_all(text)?;
        Ok(out.flush()?)
    }

    pub(super) fn line(self, text: &str) -> Result<(), Error> {
        self.write(format!("{text}\n").as_bytes())
    }

    /// Writes a document of the gateway unchanged.
    pub(super) fn document(self, body: &[u8]) -> Result<(), Error> {
        let body = body.trim_ascii_end();
        self.write(&[body, b"\n"].concat())
    }

    pub(super) fn table(self, columns: &[Column], rows: &[Vec<Cell>]) -> Result<(), Error> {
        self.write(table::layout(columns, rows, self.width, self.colours).as_bytes())
    }

    /// Returns a state in its colour.
    pub(super) fn state(self, state: &str) -> String {
        let state = clean::line(state);
        let style = if self.colours { style_of(&state) } else { Style::new() };
        format!("{style}{state}{style:#}")
    }
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

fn colours_wanted() -> bool {
    let is = |name: &str, value: &str| std::env::var_os(name).is_some_and(|set| set == value);
    std::env::var_os("NO_COLOR").is_none_or(|set| set.is_empty()) && !is("TERM", "dumb")
}

fn width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    (size.ws_col > 0).then_some(size.ws_col.into())
}
