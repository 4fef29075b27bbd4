//! A table about parts of submissions, such as their executors.

use crate::{
    error::Error,
    screen,
    table::{Cell, Column, whole},
};
use sparkgate_submission::SubmissionId;

/// The rows of a table, whose first column is the submission if the command names several.
pub(super) struct OfSubmissions {
    columns: Vec<Column<'static>>,
    rows: Vec<Vec<Cell>>,
    has_ids: bool,
}

impl OfSubmissions {
    /// Creates an empty table for a command that names `count` submissions.
    pub(super) fn new(columns: &[Column<'static>], count: usize) -> Self {
        let has_ids = count > 1;
        let ids = has_ids.then_some(whole("SUBMISSION"));
        Self { columns: ids.into_iter().chain(columns.iter().copied()).collect(), rows: Vec::new(), has_ids }
    }

    pub(super) fn add(&mut self, id: &SubmissionId, row: Vec<Cell>) {
        let id = self.has_ids.then(|| Cell::new(id.as_str()));
        self.rows.push(id.into_iter().chain(row).collect());
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Prints the table.
    ///
    /// # Errors
    /// Those of standard output.
    pub(super) fn print(&self) -> Result<(), Error> {
        screen::table(&self.columns, &self.rows)
    }
}
