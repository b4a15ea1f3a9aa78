//! What a run has to do: the files on disk against those in the index.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use isolate::Supervised;
use isolith_roles::{ReadJob, ReadReply};
use isolith_source::walk::{LeftOut, Walked, Why, walk};
use isolith_types::{Code, Failure, FileVersion};

use super::place::Place;
use super::{IndexOptions, IndexProblem, IndexProgress, IndexReport, IndexStage, IndexWatcher};
use crate::collections::misfit;
use crate::open::Engine;

/// What a run has to do.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// Files that are new or look changed.
    pub(super) to_read: Vec<ToRead>,
    /// Files in the index that are no longer there.
    pub(super) gone: Vec<(String, FileVersion)>,
}

/// A file to be read.
#[derive(Debug)]
pub(super) struct ToRead {
    pub(super) path: String,
    /// What the index has of it.
    pub(super) known: Option<FileVersion>,
}

/// Files that are listed with one job.
const PAGE: u32 = 5_000;

impl Plan {
    /// Compares disk and index; nothing if the program is stopping.
    pub(super) async fn make(
        engine: &Engine,
        root: u64,
        place: &Place,
        options: &IndexOptions,
        watcher: &IndexWatcher,
        report: &mut IndexReport,
    ) -> Result<Option<Self>, Failure> {
        let clock = Instant::now();
        watcher(IndexProgress { stage: IndexStage::Walking, done: 0, total: 0 });
        let mut known = known_files(engine, root, place).await?;
        let Some(walked) = walk_folder(engine, place, options).await? else { return Ok(None) };
        if walked.files.is_empty() && !known.is_empty() && place.under().is_empty() {
            return Err(nothing_left(place));
        }
        report.files.seen = walked.files.len() as u64;
        report.problems.extend(walked.left_out.into_iter().map(problem));
        let mut plan = Self::default();
        for file in walked.files {
            let before = known.remove(&file.path);
            match before.filter(|_| !options.rebuild) {
                Some(it) if it.size == file.size && it.modified == file.modified => {
                    report.files.unchanged += 1;
                }
                known => plan.to_read.push(ToRead { path: file.path, known }),
            }
        }
        plan.gone.extend(known);
        plan.gone.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        report.seconds.walk = clock.elapsed().as_secs_f64();
        Ok(Some(plan))
    }
}

async fn known_files(
    engine: &Engine,
    root: u64,
    place: &Place,
) -> Result<HashMap<String, FileVersion>, Failure> {
    let under = place.under();
    // A single file is looked for among its neighbours.
    let single = place.folder().join(under).is_file();
    let folder =
        if single { under.rsplit_once('/').map_or("", |(folder, _)| folder) } else { under };
    let mut known = HashMap::new();
    let mut after = None;
    loop {
        let under = Some(folder).filter(|folder| !folder.is_empty()).map(str::to_owned);
        let reply = engine.ask(ReadJob::Files { root, under, after, limit: PAGE }).await?;
        let ReadReply::Files(page) = reply else { return Err(misfit(&reply)) };
        let full = page.len() as u32 == PAGE;
        after = page.last().map(|file| file.path.clone());
        known.extend(page.into_iter().map(|file| (file.path, file.version)));
        if !full {
            if single {
                known.retain(|path, _| path == place.under());
            }
            return Ok(known);
        }
    }
}

/// Walks on a thread of its own, until it is done or the program stops.
async fn walk_folder(
    engine: &Engine,
    place: &Place,
    options: &IndexOptions,
) -> Result<Option<Walked>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    let (root, under, how) = (place.folder().to_owned(), place.under().to_owned(), options.walk);
    let stopped = Arc::clone(&stop);
    let walking = tokio::task::spawn_blocking(move || {
        walk(&root, &under, how, &|| stopped.load(Ordering::Relaxed))
    });
    tokio::select! {
        walked = walking => walked.map_err(|error| {
            Failure::new(Code::Failed, format!("the walk ended early: {error}"))
        }),
        () = engine.inner.readers.drained() => {
            stop.store(true, Ordering::Relaxed);
            Ok(None)
        }
    }
}

/// A folder that is not mounted looks empty; what is known of it must not go for that.
fn nothing_left(place: &Place) -> Failure {
    let folder = place.folder().display();
    let message = format!("{folder} has no files any more, and its index has some");
    Failure::new(Code::BadInput, message).with_hint(format!(
        "check that it is mounted and not ignored; `isolith index --remove {folder}` drops its index"
    ))
}

fn problem(left_out: LeftOut) -> IndexProblem {
    let LeftOut { path, why } = left_out;
    let (code, message) = match why {
        Why::Secret => ("secret", "it looks like a secret and was not read".to_owned()),
        Why::TooLarge(bytes) => {
            ("too_large", format!("{bytes} bytes; --max-file-size raises the limit"))
        }
        Why::Name => ("bad_name", "its name is no Unicode".to_owned()),
        Why::Unreadable(reason) => ("unreadable", reason),
    };
    IndexProblem { path, code, message }
}
