//! Builds wheels of the Python package with maturin. The program is in the wheel.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::clients::{create_environment, run_command};
use crate::{target_folder, web};

/// The folder of the package.
pub(crate) const PACKAGE: &str = "clients/python";

/// Maximum size of a wheel, in bytes.
const MAX_BYTES: u64 = 28_000_000;

/// Builds a wheel for this machine, or for a target with zig as the C compiler and linker, and
/// returns its path.
pub(crate) fn build(target: Option<&str>) -> Result<PathBuf> {
    web::ensure()?;
    let folder = target_folder()?;
    let tools = folder.join("wheel");
    let package = Path::new(PACKAGE);
    let mut lists = vec![package.join("requirements-build.txt")];
    lists.extend(target.map(|_| package.join("requirements-cross.txt")));
    let lists: Vec<&Path> = lists.iter().map(PathBuf::as_path).collect();
    let python = create_environment(Path::new("python3"), &tools, &lists)?;
    let wheels = tools.join(target.unwrap_or("host"));
    // Only the new wheel is in the folder afterwards.
    let _ = fs::remove_dir_all(&wheels);
    let mut command = Command::new(&python);
    command
        .args(["-m", "maturin", "build", "--release", "--locked", "--out"])
        .arg(&wheels)
        .current_dir(PACKAGE)
        .env("CARGO_TARGET_DIR", &folder);
    if let Some(target) = target {
        // Maturin looks for zig beside its own interpreter, by way of the path.
        command.args(["--zig", "--target", target]).env("PATH", path_with(&python)?);
    }
    run_command(&mut command)?;
    let wheel = only_file(&wheels)?;
    if target.is_some() {
        compress_better(&wheel)?;
    }
    let bytes = fs::metadata(&wheel)?.len();
    eprintln!("xtask: {}: {:.1} MB", wheel.display(), bytes as f64 / 1e6);
    ensure!(bytes <= MAX_BYTES, "the wheel has {bytes} bytes, more than {MAX_BYTES}");
    Ok(wheel)
}

/// Makes a wheel for others 2 % smaller than maturin can, with advzip. Skipped with a message if that is
/// not installed.
fn compress_better(wheel: &Path) -> Result<()> {
    let mut advzip = Command::new("advzip");
    match advzip.args(["--recompress", "--shrink-extra", "--quiet"]).arg(wheel).status() {
        Ok(status) => ensure!(status.success(), "{advzip:?}: {status}"),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            eprintln!("xtask: skipped: better compression (install Debian's package advancecomp)");
        }
        Err(error) => return Err(error).context("cannot run advzip"),
    }
    Ok(())
}

/// The path of programs, with the folder of this one first.
fn path_with(program: &Path) -> Result<OsString> {
    let folder = program.parent().map(Path::to_owned);
    let others = env::var_os("PATH").unwrap_or_default();
    Ok(env::join_paths(folder.into_iter().chain(env::split_paths(&others)))?)
}

fn only_file(folder: &Path) -> Result<PathBuf> {
    let mut entries = fs::read_dir(folder)?;
    let first = entries.next().context("maturin built no wheel")??;
    ensure!(entries.next().is_none(), "{} has more than one file", folder.display());
    Ok(first.path())
}
