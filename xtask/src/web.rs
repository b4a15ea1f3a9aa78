//! The pages: builds them with npm, and tests them.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use anyhow::{Context, Result};

use crate::clients::run_command;

/// The folder of the sources.
const WEB: &str = "web";

/// What a build depends on.
const SOURCES: [&str; 6] =
    ["src", "index.html", "openapi.json", "package-lock.json", "tsconfig.json", "vite.config.ts"];

/// Browsers by name, in the order in which they are looked for.
const BROWSERS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];

/// Builds the pages in `web/dist`, from which the next build of the program takes them. Checks the
/// types first, which are generated from the description of the API.
pub(crate) fn build() -> Result<()> {
    install()?;
    run_command(npm().args(["run", "--silent", "build"]))
}

/// Builds the pages unless the last build is newer than all sources: a program that contains them
/// would be compiled again.
pub(crate) fn ensure() -> Result<()> {
    let built =
        fs::metadata(Path::new(WEB).join("dist/index.html.gz")).and_then(|it| it.modified());
    let mut newest = SystemTime::UNIX_EPOCH;
    for source in SOURCES {
        newest = newest.max(last_change(&Path::new(WEB).join(source))?);
    }
    match built {
        Ok(built) if built > newest => Ok(()),
        _ => build(),
    }
}

/// When a file, or one in a folder, was changed last.
fn last_change(path: &Path) -> Result<SystemTime> {
    let metadata = fs::metadata(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut newest = metadata.modified()?;
    if metadata.is_dir() {
        for entry in fs::read_dir(path)? {
            let path = entry?.path();
            // The build itself writes it.
            if !path.ends_with("api/schema.d.ts") {
                newest = newest.max(last_change(&path)?);
            }
        }
    }
    Ok(newest)
}

/// Runs the tests of the pages' logic.
pub(crate) fn test() -> Result<()> {
    install()?;
    run_command(npm().args(["run", "--silent", "test"]))
}

/// Uses the pages of a program in a browser. Skipped with a message if there is none.
pub(crate) fn browse(program: &Path) -> Result<()> {
    let Some(browser) = browser() else {
        eprintln!(
            "xtask: skipped: the pages in a browser (install Debian's package chromium, or set CHROMIUM)"
        );
        return Ok(());
    };
    let mut node = Command::new("node");
    node.arg(Path::new(WEB).join("tests/browser/pages.mjs")).arg(program);
    run_command(node.env("CHROMIUM", browser))
}

fn browser() -> Option<PathBuf> {
    if let Some(named) = env::var_os("CHROMIUM") {
        return Some(named.into());
    }
    let path = env::var_os("PATH")?;
    let found =
        |name: &str| env::split_paths(&path).map(|it| it.join(name)).find(|it| it.is_file());
    BROWSERS.into_iter().find_map(found)
}

/// Installs the locked packages, unless they are installed.
fn install() -> Result<()> {
    let lock =
        fs::read(Path::new(WEB).join("package-lock.json")).context("run this in the repository")?;
    let installed = Path::new(WEB).join("node_modules/.isolith-lock");
    if fs::read(&installed).is_ok_and(|it| it == lock) {
        return Ok(());
    }
    run_command(npm().args(["ci", "--no-audit", "--no-fund", "--loglevel=error"]))?;
    Ok(fs::write(installed, lock)?)
}

fn npm() -> Command {
    let mut npm = Command::new("npm");
    npm.current_dir(WEB);
    npm
}
