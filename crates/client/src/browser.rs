//! The user's browser.

use std::process::{Command, Stdio};

use crate::clean;

/// Opens a page. Without a browser, the user opens the printed address.
pub(super) fn open(address: &str) {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let mut command = Command::new(program);
    command.arg(clean::line(address).as_ref()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let _ = command.spawn();
}
