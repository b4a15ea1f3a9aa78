//! What is generated from the flags: completion scripts and man pages.

use std::io;

use clap::CommandFactory;
use clap_complete::Shell;
use clap_mangen::Man;

use super::typed::Typed;

/// A man page and the name of its file.
pub(crate) struct ManPage {
    pub(crate) file_name: String,
    pub(crate) content: Vec<u8>,
}

/// The script that completes command lines in a shell.
pub(crate) fn completions(shell: Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Typed::command(), "isolith", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

/// The man pages of the program and of all its commands.
///
/// # Errors
/// Fails only if a page cannot be rendered.
pub(crate) fn man_pages() -> io::Result<Vec<ManPage>> {
    // Pages of `help` subcommands would be empty.
    let mut command = Typed::command().disable_help_subcommand(true);
    command.build();
    let mut pages = Vec::new();
    add_pages(command, &mut pages)?;
    Ok(pages)
}

fn add_pages(command: clap::Command, pages: &mut Vec<ManPage>) -> io::Result<()> {
    let shown = command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set());
    let subcommands: Vec<clap::Command> = shown.cloned().collect();
    let page = Man::new(command)
        .source(concat!("isolith ", env!("CARGO_PKG_VERSION")))
        // Not today's date: the same version must give the same pages.
        .date(" ")
        .manual("Isolith Manual");
    let mut content = Vec::new();
    page.render(&mut content)?;
    pages.push(ManPage { file_name: page.get_filename(), content });
    subcommands.into_iter().try_for_each(|subcommand| add_pages(subcommand, pages))
}
