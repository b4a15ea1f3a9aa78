//! Checks the alert rules, the dashboard and a scrape with Prometheus's promtool, if that is
//! installed.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::cargo;

/// Skips the checks with a message if promtool is missing.
pub(crate) fn run() -> Result<()> {
    let probe = Command::new("promtool")
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if probe.is_err() {
        eprintln!("xtask: SKIPPED promtool: not installed (Debian has it in `prometheus`)");
        return Ok(());
    }
    promtool(&["check", "rules", "docs/monitoring/alerts.yml"])?;
    promtool(&["test", "rules", "docs/monitoring/alerts.test.yml"])?;
    cargo(
        &[
            "test",
            "--package",
            "isolith",
            "--locked",
            "--test",
            "monitoring",
            "--",
            "--ignored",
            "promtool",
        ],
        &[],
    )
}

fn promtool(arguments: &[&str]) -> Result<()> {
    let line = format!("promtool {}", arguments.join(" "));
    eprintln!("xtask: {line}");
    let status = Command::new("promtool")
        .args(arguments)
        .status()
        .with_context(|| format!("cannot start `{line}`"))?;
    ensure!(status.success(), "`{line}` failed: {status}");
    Ok(())
}
