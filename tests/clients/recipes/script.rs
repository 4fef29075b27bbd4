//! The commands of a page, and the replies that it prints.

use std::process::Command;

use crate::markdown;

#[derive(Debug, Default)]
pub(super) struct Recipe {
    pub(super) command: String,
    /// The text that the page prints below the command; may be empty.
    pub(super) answer: String,
}

/// Returns the commands of the `console` blocks that need a running gateway: those of curl and of our own client.
pub(super) fn recipes(page: &str) -> Vec<Recipe> {
    let mut all: Vec<Recipe> = Vec::new();
    for block in markdown::blocks(page, "console") {
        let mut open = false;
        for line in block.lines() {
            if let Some(command) = line.strip_prefix("$ ").filter(|_| !open) {
                all.push(Recipe { command: command.to_owned(), answer: String::new() });
            } else if let Some(last) = all.last_mut() {
                let part = if open { &mut last.command } else { &mut last.answer };
                if open || !part.is_empty() {
                    part.push('\n');
                }
                part.push_str(line);
            }
            open = all.last().is_some_and(|last| last.answer.is_empty() && !is_complete(&last.command));
        }
    }
    all.retain(|recipe| is_for_a_gateway(&recipe.command));
    all
}

/// Returns whether the shell wouldn't wait for another line.
fn is_complete(command: &str) -> bool {
    let checked = Command::new("bash").args(["-n", "-c", command]).output().unwrap();
    !command.ends_with('\\') && checked.status.success()
}

fn is_for_a_gateway(command: &str) -> bool {
    ["curl ", "sparkgate ", "export ", "id=$(sparkgate "].iter().any(|start| command.starts_with(start))
}

/// Returns the ids of submissions in a text, in their order.
pub(super) fn ids(text: &str) -> Vec<String> {
    let mut ids = Vec::new();
    for part in text.split("driver-").skip(1) {
        let id: String = part.chars().take_while(|c| c.is_ascii_digit() || *c == '-').collect();
        let id = format!("driver-{}", id.trim_end_matches('-'));
        // A timestamp and a number, unlike the name of a pod.
        if id.len() == "driver-20260102030405-0000".len() && !ids.contains(&id) {
            ids.push(id);
        }
    }
    ids
}
