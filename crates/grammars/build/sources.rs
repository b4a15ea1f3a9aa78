//! Finds the sources of the grammars where cargo has put them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, io};

use serde_json::Value;

use crate::{Failure, Grammar};

/// The folders of all packages that the workspace depends on, by name.
pub(crate) struct Sources(HashMap<String, PathBuf>);

impl Sources {
    /// Asks cargo. It downloads packages that are missing, as they are not compiled as crates.
    pub(crate) fn find() -> Result<Self, Failure> {
        let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let output =
            Command::new(cargo).args(["metadata", "--format-version", "1", "--locked"]).output()?;
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stderr);
            return Err(format!("cargo metadata: {}", text.trim()).into());
        }
        let metadata: Value = serde_json::from_slice(&output.stdout)?;
        if let Some(workspace) = metadata["workspace_root"].as_str() {
            println!("cargo::rerun-if-changed={workspace}/Cargo.lock");
        }
        let packages = metadata["packages"].as_array().ok_or("cargo metadata lists no packages")?;
        Ok(Self(packages.iter().filter_map(folder).collect()))
    }

    /// Where the grammar's `parser.c` is.
    pub(crate) fn folder(&self, grammar: &Grammar) -> Result<PathBuf, Failure> {
        let package = self.0.get(grammar.package).ok_or_else(|| {
            io::Error::new(io::ErrorKind::NotFound, format!("no package {}", grammar.package))
        })?;
        Ok(package.join(grammar.folder))
    }
}

fn folder(package: &Value) -> Option<(String, PathBuf)> {
    let manifest = Path::new(package["manifest_path"].as_str()?);
    Some((package["name"].as_str()?.to_owned(), manifest.parent()?.to_owned()))
}
