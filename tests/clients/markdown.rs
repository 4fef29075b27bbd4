//! Pages of the documentation.

use std::path::Path;

/// Returns the text of a page.
pub(crate) fn page(path: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

/// Returns the page's fenced blocks in a language.
pub(crate) fn blocks(page: &str, language: &str) -> Vec<String> {
    let mut blocks: Vec<String> = Vec::new();
    let mut fence: Option<bool> = None;
    for line in page.lines() {
        match (line.trim_start().strip_prefix("```"), fence) {
            (Some(name), None) => {
                fence = Some(name.trim() == language);
                if name.trim() == language {
                    blocks.push(String::new());
                }
            }
            (Some(_), Some(_)) => fence = None,
            (None, Some(true)) => {
                if let Some(block) = blocks.last_mut() {
                    block.push_str(line);
                    block.push('\n');
                }
            }
            _ => {}
        }
    }
    blocks
}
