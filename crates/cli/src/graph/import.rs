//! `isolith graph import`: CSV files.

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

use indicatif::{ProgressBar, ProgressStyle};
use isolith_engine::{EngineOptions, GraphImport, GraphImported, StorePlace, TableHolds};
use isolith_types::{Failure, counted};

use crate::output::Output;
use crate::session::{Session, interrupted};
use crate::terminal::visible;
use crate::wording::left_out;

pub(super) fn run(
    store: &StorePlace,
    import: &GraphImport,
    output: &Output,
) -> Result<ExitCode, Failure> {
    let options = EngineOptions { create: true, ..EngineOptions::default() };
    let mut session = Session::open(store, options)?;
    let _status = session.serve_status();
    let screen = Screen::new(&import.file, output);
    let outcome = session.run_with_signal(async |engine| {
        engine.import_graph(import, |done, total| screen.show(done, total)).await
    });
    screen.finish();
    let imported = outcome.unwrap_or_else(|(signal, imported)| {
        let mut imported = imported.unwrap_or_default();
        if !imported.success {
            imported.error = Some(interrupted(signal).with_hint(continued(import)));
        }
        imported
    });
    output.result(&imported, &describe(&import.file, &imported))?;
    let Some(error) = &imported.error else {
        session.settle()?;
        return Ok(ExitCode::SUCCESS);
    };
    output.complain(error);
    if imported.rows > 0 {
        let rows = counted(imported.rows, "row");
        output.note(&format!("kept what was imported before the error: {rows}"));
    }
    session.close();
    Ok(ExitCode::from(error.code.exit_status()))
}

/// What running the same command again does after an interruption.
fn continued(import: &GraphImport) -> &'static str {
    let is_known = matches!(&import.holds, TableHolds::Nodes { key: Some(_), .. });
    match is_known || import.key.is_some() {
        true => "finished work is kept; run the same command to continue",
        false => {
            "what was finished is kept, and written again by the same command; \
             with --key from the start it would continue"
        }
    }
}

fn describe(file: &Path, imported: &GraphImported) -> String {
    if imported.error.is_some() {
        return String::new();
    }
    let mut text = format!(
        "{}: {} in {:.1} s\n",
        file.display(),
        counted(imported.rows, "row"),
        imported.seconds
    );
    let made = [
        (imported.nodes_created, "new node", ""),
        (imported.relationships_created, "new relationship", ""),
        (imported.properties_set, "property", " set"),
    ];
    let made: Vec<String> = (made.into_iter().filter(|(count, ..)| *count > 0))
        .map(|(count, noun, done)| counted(count, noun) + done)
        .collect();
    let _ = match made.is_empty() {
        true => writeln!(text, "  nothing changed"),
        false => writeln!(text, "  {}", made.join(", ")),
    };
    if imported.repeated {
        text.push_str("  an earlier call with the same key did some or all of it\n");
    }
    text + &left_out(imported.rejected_rows, "row", &imported.rejected)
}

/// Shows progress: a bar on a terminal, otherwise a line for every step.
struct Screen {
    bar: Option<ProgressBar>,
    output: Output,
    name: String,
}

impl Screen {
    fn new(file: &Path, output: &Output) -> Self {
        let name = file.file_name().unwrap_or(file.as_os_str()).to_string_lossy().into_owned();
        let bar = output.draws_progress().then(|| {
            let template = "{msg}: {bar:30} {bytes}/{total_bytes}, {eta} left";
            // The template is a constant; the plain style is only for the compiler.
            let style = ProgressStyle::with_template(template);
            let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
            ProgressBar::new(0).with_style(style).with_message(visible(&name))
        });
        Self { bar, output: *output, name }
    }

    fn show(&self, done: u64, total: u64) {
        if let Some(bar) = &self.bar {
            bar.set_length(total);
            bar.set_position(done);
        } else if self.output.prints_progress() && done < total {
            self.output.progress(&format!("{}: {} %", self.name, done * 100 / total.max(1)));
        }
    }

    fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
