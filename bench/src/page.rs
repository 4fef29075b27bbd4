//! Writes the figures into the page that publishes them, so that no number of it is typed by hand: a table for each report, a summary, and a
//! picture beside it.

mod picture;
mod published;
mod summary;

use std::{fs, path::Path};

use anyhow::Context;

use crate::bench::Bench;

/// The end of each place for figures. Its beginning names them.
const END: &str = "<!-- end of figures -->";

/// Writes `table` where the page has a place for `name`, in place of what is there. Without `--page`, and with `--quick`, nothing is written.
pub(crate) fn write(bench: &Bench, name: &str, table: &str) -> anyhow::Result<()> {
    wanted(bench).map_or(Ok(()), |page| put(page, name, table))
}

/// Writes the summary and the picture from all figures that were measured, in this run or before.
pub(crate) fn finish(bench: &Bench) -> anyhow::Result<()> {
    let Some(page) = wanted(bench) else { return Ok(()) };
    put(page, "summary", &summary::lines(&bench.out)?)?;
    let picture = page.with_extension("svg");
    fs::write(&picture, picture::drivers(&bench.out)?).with_context(|| format!("writing {}", picture.display()))
}

fn wanted(bench: &Bench) -> Option<&Path> {
    bench.page.as_deref().filter(|_| !bench.quick)
}

fn put(page: &Path, name: &str, text: &str) -> anyhow::Result<()> {
    let old = fs::read_to_string(page).with_context(|| format!("reading {}", page.display()))?;
    let new =
        placed(&old, name, text).with_context(|| format!("writing the figures of {name} into {}", page.display()))?;
    fs::write(page, new).with_context(|| format!("writing {}", page.display()))
}

/// Returns the page with `text` in the place of `name`.
fn placed(page: &str, name: &str, text: &str) -> anyhow::Result<String> {
    let begin = format!("<!-- figures: {name} -->\n");
    let (before, rest) =
        page.split_once(&begin).with_context(|| format!("the page has no line {}", begin.trim_end()))?;
    let (_, after) =
        rest.split_once(END).with_context(|| format!("the page has no {END} after {}", begin.trim_end()))?;
    Ok(format!("{before}{begin}\n{}\n\n{END}{after}", text.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_take_their_place_and_leave_the_rest() {
        let page = "# Page\n<!-- figures: read -->\nold\n<!-- end of figures -->\nwords\n<!-- figures: cost -->\n<!-- end of figures -->\n";
        let new = placed(page, "read", "| new |\n").unwrap();
        assert_eq!(new, page.replace("\nold\n", "\n\n| new |\n\n"));
        assert_eq!(placed(&new, "read", "| new |").unwrap(), new);
        assert!(placed(page, "lag", "").unwrap_err().to_string().contains("figures: lag"));
    }
}
