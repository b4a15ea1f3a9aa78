//! The contents of tables: computed by the C compiler, then compressed.

use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::{env, fs};

use lzma_rust2::{XzOptions, XzWriter};

use crate::Failure;
use crate::parser::Parser;

/// A table as the compiler laid it out.
pub(crate) struct Table {
    pub(crate) elements: usize,
    bytes: Vec<u8>,
}

/// Compiles a program with the tables, for the machine that builds, and reads what it prints.
pub(crate) fn read(
    name: &str,
    parser: &Parser<'_>,
    include: &Path,
    out: &Path,
) -> Result<Vec<Table>, Failure> {
    let program = out.join(format!("{name}-tables"));
    let code = program.with_extension("c");
    fs::write(&code, parser.program())?;
    let host = env::var("HOST")?;
    let compiler = cc::Build::new()
        .host(&host)
        .target(&host)
        .opt_level(0)
        .debug(false)
        .warnings(false)
        .cargo_metadata(false)
        .try_get_compiler()?;
    let compiled =
        compiler.to_command().arg("-I").arg(include).arg("-o").arg(&program).arg(&code).output()?;
    if !compiled.status.success() {
        return Err(String::from_utf8_lossy(&compiled.stderr).into());
    }
    let printed = Command::new(&program).output()?;
    fs::remove_file(&program)?;
    fs::remove_file(&code)?;
    if !printed.status.success() {
        return Err("the program that prints the tables failed".into());
    }
    let mut rest = &printed.stdout[..];
    let mut tables = Vec::new();
    while !rest.is_empty() {
        tables.push(take(&mut rest).ok_or("the tables are not as expected")?);
    }
    Ok(tables)
}

fn take(rest: &mut &[u8]) -> Option<Table> {
    let end = rest.iter().position(|byte| *byte == b'\n')?;
    let (size, elements) = std::str::from_utf8(&rest[..end]).ok()?.split_once(' ')?;
    let elements = elements.parse::<usize>().ok()?;
    let length = size.parse::<usize>().ok()?.checked_mul(elements)?;
    let bytes = rest.get(end + 1..)?.get(..length)?.to_owned();
    *rest = &rest[end + 1 + length..];
    Some(Table { elements, bytes })
}

/// Writes all tables into one compressed file.
pub(crate) fn compress(tables: &[Table], path: &Path) -> Result<(), Failure> {
    let mut writer = XzWriter::new(Vec::new(), XzOptions::with_preset(6))?;
    for table in tables {
        writer.write_all(&table.bytes)?;
    }
    fs::write(path, writer.finish()?)?;
    Ok(())
}
