//! The smallest use of this crate: a worker crashes in the middle of a job and is replaced, and
//! the job is answered.
//!
//! `cargo run -p isolate --example restart`

use std::error::Error;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use isolate::{
    Answer, CallError, CallOptions, Context, Hooks, InWorker, Pool, PoolSettings, Refusal, Role,
};

/// Counts the letters of a word, but aborts its process the first time it is called.
pub(crate) struct Flaky;

impl Role for Flaky {
    const NAME: &'static str = "flaky";
    type Settings = ();
    /// A file that exists after the first call, and a word.
    type Request = (PathBuf, String);
    type Reply = usize;

    fn warm_up((): (), _token: InWorker) -> Result<Self, Refusal> {
        Ok(Self)
    }

    fn handle(&mut self, (mark, word): Self::Request, _context: &Context<'_>) -> usize {
        if File::create_new(mark).is_ok() {
            std::process::abort();
        }
        word.chars().count()
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    // Before anything else: this process may be a worker.
    isolate::worker_main(&[isolate::role::<Flaky>()]);

    let mark = std::env::temp_dir().join(format!("isolate-restart-{}", std::process::id()));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let answer = runtime.block_on(count_letters(&mark, "crash"));
    let _ = std::fs::remove_file(mark);
    let answer = answer?;
    for death in &answer.deaths {
        println!("worker {} died: {}, {}", death.pid, death.class, death.end);
    }
    println!("worker {} answered: {} letters", answer.worker_pid, answer.reply);
    Ok(())
}

/// Calls a pool with one worker, which dies and is replaced during the call.
pub(crate) async fn count_letters(
    mark: &Path,
    word: &str,
) -> Result<Answer<usize>, Box<dyn Error>> {
    let pool: Pool<Flaky> = Pool::start(&(), PoolSettings::default(), Hooks::default())?;
    let request = (mark.to_owned(), word.to_owned());
    let answer: Result<_, CallError> = pool.call(&request, CallOptions::default()).await;
    pool.drain(Duration::from_secs(5)).await;
    Ok(answer?)
}
