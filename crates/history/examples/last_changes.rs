//! Prints the last changes of a repository's files, or how long finding them takes: `cargo run
//! --release -p isolith-history --example last_changes -- FOLDER [SECONDS] [--list]`. For a
//! bare repository, pass its own folder.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use isolate_types::InWorker;
use isolith_history::{Repository, last_changes, repository_of};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (flags, plain): (Vec<_>, Vec<_>) =
        std::env::args().skip(1).partition(|argument| argument.starts_with("--"));
    let folder = PathBuf::from(plain.first().map_or(".", String::as_str));
    let budget = match plain.get(1) {
        Some(seconds) => Duration::try_from_secs_f64(seconds.parse()?)?,
        None => Duration::MAX,
    };
    let (repository, below) = open(&folder)?;
    let started = Instant::now();
    let history = last_changes(&repository, &below, budget, &|| false, InWorker::in_process())?;
    let seconds = started.elapsed().as_secs_f64();
    if flags.iter().any(|flag| flag == "--list") {
        for change in &history.changes {
            println!("{}\t{}\t{}", change.path, change.author, change.changed_at / 1_000);
        }
    }
    eprintln!(
        "{} files, {} gaps, {} commits in {seconds:.3} s ({:.0}/s), {}",
        history.changes.len(),
        history.gaps,
        history.commits,
        history.commits as f64 / seconds,
        if history.complete { "complete" } else { "incomplete" },
    );
    Ok(())
}

fn open(folder: &Path) -> Result<(Repository, String), Box<dyn std::error::Error>> {
    if folder.join("HEAD").is_file() {
        let folder = folder.canonicalize()?;
        let (work_tree, git_dir) = (folder.clone(), folder.clone());
        return Ok((Repository { work_tree, git_dir, common_dir: folder }, String::new()));
    }
    let repository = repository_of(folder).ok_or("the folder is not in a repository")?;
    let below = repository.below(folder).ok_or("the folder's name is not UTF-8")?;
    Ok((repository, below))
}
