//! Opens a URL in the user's browser.

use std::env;
use std::process::{Command, Stdio};
use std::thread;

use crate::output::Output;

/// Opens a URL with the desktop's program for it. Nothing happens without a desktop, where that
/// program could start a browser in this terminal.
pub(crate) fn open(url: &str, output: &Output) {
    let is_set = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
    if !["DISPLAY", "WAYLAND_DISPLAY"].into_iter().any(is_set) {
        return;
    }
    let started = Command::new("xdg-open")
        .arg(url)
        .env_remove("ISOLITH_TOKEN")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    match started {
        // Some browsers stay its child until they are closed.
        Ok(mut child) => drop(thread::spawn(move || child.wait())),
        Err(error) => output.note(&format!("cannot open a browser: xdg-open: {error}")),
    }
}
