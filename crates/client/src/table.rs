//! Text tables. Columns are as wide as their content. On a terminal that is too narrow, long names are truncated.

use clap::builder::styling::Style;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::clean;

const GAP: usize = 2;
/// The least width of a truncated column.
const LEAST: usize = 12;

/// One field of a row.
#[derive(Debug, Clone)]
pub(super) struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    pub(super) fn new(text: &str) -> Self {
        Self::styled(text, Style::new())
    }

    pub(super) fn styled(text: &str, style: Style) -> Self {
        Self { text: clean::line(text).into_owned(), style }
    }
}

/// A column's title, and whether the column may be truncated.
#[derive(Debug, Clone, Copy)]
pub(super) struct Column<'a> {
    pub(super) title: &'a str,
    pub(super) may_be_cut: bool,
}

pub(super) const fn whole(title: &str) -> Column<'_> {
    Column { title, may_be_cut: false }
}

pub(super) const fn cut(title: &str) -> Column<'_> {
    Column { title, may_be_cut: true }
}

/// The widths of the columns of a table that is printed in parts. Each part is aligned with those before it as far as its content fits.
#[derive(Debug, Default)]
pub(super) struct Widths(Vec<usize>);

/// Formats rows below the titles. `width` is the terminal's, `None` if there is no terminal.
pub(super) fn layout(columns: &[Column<'_>], rows: &[Vec<Cell>], width: Option<usize>) -> String {
    part(columns, rows, width, &mut Widths::default())
}

/// Formats a part of a table. Only the first part has titles.
pub(super) fn part(columns: &[Column<'_>], rows: &[Vec<Cell>], width: Option<usize>, before: &mut Widths) -> String {
    let titles: Vec<Cell> = columns.iter().map(|column| Cell::new(column.title)).collect();
    let titles = before.0.is_empty().then_some(titles.as_slice());
    let lines: Vec<&[Cell]> = titles.into_iter().chain(rows.iter().map(Vec::as_slice)).collect();
    let widths = widths(columns, &lines, width, before);
    let mut text = String::new();
    for cells in lines {
        let mut blanks = 0;
        for (cell, width) in cells.iter().zip(&widths) {
            // The blanks before a field are written together with the field, so that no line has trailing blanks.
            let shown = shortened(&cell.text, *width);
            if !shown.is_empty() {
                text.extend(std::iter::repeat_n(' ', std::mem::take(&mut blanks)));
                text += &format!("{}{shown}{:#}", cell.style, cell.style);
            }
            blanks += width - shown.width() + GAP;
        }
        text.push('\n');
    }
    text
}

fn widths(columns: &[Column<'_>], lines: &[&[Cell]], width: Option<usize>, before: &mut Widths) -> Vec<usize> {
    let earlier = |at: usize| before.0.get(at).copied();
    let widest = |at: usize| {
        let these = lines.iter().filter_map(|cells| cells.get(at)).map(|cell| cell.text.width());
        these.chain(earlier(at)).max()
    };
    let mut widths: Vec<usize> = (0..columns.len()).map(|at| widest(at).unwrap_or(0)).collect();
    before.0.clone_from(&widths);
    let Some(most) = width else { return widths };
    let all = widths.iter().sum::<usize>() + GAP * columns.len().saturating_sub(1);
    let mut over = all.saturating_sub(most);
    // The widest column is truncated first, down to the width of the next one.
    while over > 0 {
        let cuttable = columns.iter().zip(&mut widths).filter(|(column, width)| column.may_be_cut && **width > LEAST);
        let Some((_, widest)) = cuttable.max_by_key(|(_, width)| **width) else { break };
        *widest -= 1;
        over -= 1;
    }
    widths
}

/// Truncates a text to `width` columns of the terminal, and marks the truncation with `…`.
fn shortened(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut left = width.saturating_sub(1);
    let fits = |c: &char| {
        let wide = c.width().unwrap_or(0);
        let fits = wide <= left;
        left = left.saturating_sub(wide);
        fits
    };
    let mut kept: String = text.chars().take_while(fits).collect();
    kept.push('…');
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column<'static>; 3] = [whole("ID"), cut("NAME"), whole("STATE")];

    fn table(names: &[&str], width: Option<usize>) -> String {
        let row = |name: &&str| vec![Cell::new("driver-1"), Cell::new(name), Cell::new("RUNNING")];
        layout(&COLUMNS, &names.iter().map(row).collect::<Vec<_>>(), width)
    }

    #[test]
    fn columns_are_as_wide_as_their_content() {
        assert_eq!(
            table(&["Pi", "a longer name"], None),
            "ID        NAME           STATE\ndriver-1  Pi             RUNNING\ndriver-1  a longer name  RUNNING\n"
        );
        assert_eq!(table(&[], None), "ID  NAME  STATE\n");
    }

    #[test]
    fn a_later_part_is_aligned_with_the_first_and_has_no_titles() {
        let row = |name: &str| vec![vec![Cell::new("driver-1"), Cell::new(name), Cell::new("RUNNING")]];
        let mut widths = Widths::default();
        assert!(part(&COLUMNS, &row("a longer name"), None, &mut widths).starts_with("ID "));
        assert_eq!(part(&COLUMNS, &row("Pi"), None, &mut widths), "driver-1  Pi             RUNNING\n");
    }

    #[test]
    fn narrow_terminal_truncates_only_names() {
        assert_eq!(
            table(&["a very long name indeed", "短い名前ですが長いのです"], Some(36))
                .lines()
                .skip(1)
                .collect::<Vec<_>>(),
            ["driver-1  a very long name…  RUNNING", "driver-1  短い名前ですが長…  RUNNING"]
        );
        assert!(table(&["a very long name indeed"], Some(5)).contains("driver-1  a very long…  RUNNING"));
        assert!(table(&["a very long name indeed"], None).contains("indeed"));
    }

    #[test]
    fn colours_have_no_width_and_line_breaks_become_blanks() {
        let red = Style::new().fg_color(Some(clap::builder::styling::AnsiColor::Red.into()));
        let rows = [vec![Cell::styled("a\nb", red), Cell::new("c")]];
        let columns = [whole("A"), whole("B")];
        assert_eq!(layout(&columns, &rows, None), "A    B\n\u{1b}[31ma b\u{1b}[0m  c\n");
    }
}
