//! `isolith completions` and `isolith man`.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use clap_complete::Shell;
use isolith_types::{Code, Failure, counted};
use serde_json::json;

use crate::flags::{ManPage, completions, man_pages};
use crate::output::Output;
use crate::transfer::unwritable;

pub(crate) fn print_completions(shell: Shell, output: &Output) -> Result<ExitCode, Failure> {
    let script = completions(shell);
    output.result(&json!({ "shell": shell.to_string(), "script": script }), &script)?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn write_pages(folder: &Path, output: &Output) -> Result<ExitCode, Failure> {
    let pages = man_pages().map_err(|error| Failure::new(Code::Failed, error.to_string()))?;
    fs::create_dir_all(folder).map_err(|error| unwritable(folder, &error))?;
    for ManPage { file_name, content } in &pages {
        let file = folder.join(file_name);
        fs::write(&file, content).map_err(|error| unwritable(&file, &error))?;
    }
    let names: Vec<&str> = pages.iter().map(|page| page.file_name.as_str()).collect();
    let text = format!("wrote {} to {}\n", counted(names.len(), "man page"), folder.display());
    output.result(&json!({ "folder": folder, "pages": names }), &text)?;
    Ok(ExitCode::SUCCESS)
}
