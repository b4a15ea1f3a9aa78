//! Puts the built pages (`cargo xtask web`) into the program: the files that the build has compressed.
//! Without them the program is complete but for the pages.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Kinds of files, by the end of their names before `.gz`.
const KINDS: [(&str, &str); 5] = [
    (".html", "text/html; charset=utf-8"),
    (".js", "text/javascript; charset=utf-8"),
    (".css", "text/css; charset=utf-8"),
    (".svg", "image/svg+xml"),
    (".md", "text/markdown; charset=utf-8"),
];

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    let web = Path::new(&variable("CARGO_MANIFEST_DIR")?).join("../../web");
    let mut files = Vec::new();
    // A package of this crate alone has no such folder. The path is without links and dots, as are
    // those of its files.
    let dist = fs::canonicalize(web.join("dist")).ok();
    if let Some(dist) = &dist {
        println!("cargo::rerun-if-changed={}", dist.display());
        list(dist, &mut files)?;
    }
    files.sort();
    let out = PathBuf::from(variable("OUT_DIR")?);
    let mut code = String::from("pub(super) const ASSETS: &[Asset] = &[\n");
    for (at, file) in files.into_iter().enumerate() {
        let name = file.strip_prefix(dist.as_deref().unwrap_or(&web)).map_err(io::Error::other)?;
        let name = name.to_str().ok_or_else(|| io::Error::other("a name that is not UTF-8"))?;
        let Some(name) = name.strip_suffix(".gz") else { continue };
        let Some((_, kind)) = KINDS.iter().find(|(end, _)| name.ends_with(end)) else {
            return Err(io::Error::other(format!("web/dist has a file of unknown kind: {name}")));
        };
        let path = if name == "index.html" { "/".to_owned() } else { format!("/ui/{name}") };
        // A copy, as the pages may be built again while the program is compiled.
        let copy = format!("page-{at}");
        fs::copy(&file, out.join(&copy))?;
        let _ = writeln!(
            code,
            "    Asset {{ path: {path:?}, kind: {kind:?}, gzipped: include_bytes!({copy:?}) }},"
        );
    }
    code.push_str("];\n");
    fs::write(out.join("assets.rs"), code)
}

fn list(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        match entry.file_type()?.is_dir() {
            true => list(&entry.path(), files)?,
            false => files.push(fs::canonicalize(entry.path())?),
        }
    }
    Ok(())
}

fn variable(name: &str) -> io::Result<String> {
    env::var(name).map_err(io::Error::other)
}
