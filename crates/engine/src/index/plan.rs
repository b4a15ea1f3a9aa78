//! What a run has to do: the files on disk against those in the index.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use isolate::Supervised;
use isolith_roles::{ReadJob, ReadReply};
use isolith_source::secrets::is_secret_problem;
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
    /// Whether what the index has is less than it should be, whatever the content is now.
    pub(super) again: bool,
    /// What the index says of a secret in it.
    pub(super) secret: Option<String>,
}

/// What the index has of a file.
struct Known {
    version: FileVersion,
    /// Whether it had to be cut as text, or lost chunks to damage.
    lacking: bool,
    /// What was noted of a secret in it. It is looked at by every run, so that the run says
    /// so, and acts as its options and the rules of this program want it.
    secret: Option<String>,
}

impl Known {
    /// The version by which a renamed file is known again. One that has to be parsed anyway
    /// is known by none.
    fn under_another_name(self) -> FileVersion {
        let hash = if self.lacking { [0; 32] } else { self.version.hash };
        FileVersion { hash, ..self.version }
    }
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
        keep_unreadable(&mut known, &walked);
        report.problems.extend(walked.left_out.into_iter().map(problem));
        let mut plan = Self::default();
        for file in walked.files {
            let before = known.remove(&file.path);
            let again = before.as_ref().is_some_and(|it| it.lacking);
            let secret = before.as_ref().and_then(|it| it.secret.clone());
            let known = before.filter(|_| !options.rebuild).map(|it| it.version);
            let same = |it: FileVersion| it.size == file.size && it.modified == file.modified;
            match known {
                Some(it) if same(it) && !again => report.files.unchanged += 1,
                known => plan.to_read.push(ToRead { path: file.path, known, again, secret }),
            }
        }
        plan.gone.extend(known.into_iter().map(|(path, it)| (path, it.under_another_name())));
        plan.gone.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        report.seconds.walk = clock.elapsed().as_secs_f64();
        Ok(Some(plan))
    }
}

async fn known_files(
    engine: &Engine,
    root: u64,
    place: &Place,
) -> Result<HashMap<String, Known>, Failure> {
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
        for file in page {
            // A hash of zeros stands for a file that lost chunks to damage.
            let lacking = file.problem.is_some() || file.version.hash == [0; 32];
            let secret = file.problem.filter(|problem| is_secret_problem(problem));
            known.insert(file.path, Known { version: file.version, lacking, secret });
        }
        if !full {
            if single {
                known.retain(|path, _| path == place.under());
            }
            return Ok(known);
        }
    }
}

/// What cannot be looked at is not gone: what is known of it stays.
fn keep_unreadable(known: &mut HashMap<String, Known>, walked: &Walked) {
    let unreadable = walked.left_out.iter().filter(|it| matches!(it.why, Why::Unreadable(_)));
    for LeftOut { path, .. } in unreadable {
        let below = |known: &str| {
            let rest = known.strip_prefix(path.as_str());
            path.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        known.retain(|path, _| !below(path));
    }
}

/// Walks on a thread of its own, until it is done or the program stops.
async fn walk_folder(
    engine: &Engine,
    place: &Place,
    options: &IndexOptions,
) -> Result<Option<Walked>, Failure> {
    let stop = StopWhenDropped(Arc::new(AtomicBool::new(false)));
    let (root, under, how) = (place.folder().to_owned(), place.under().to_owned(), options.walk);
    let stopped = Arc::clone(&stop.0);
    let walking = tokio::task::spawn_blocking(move || {
        walk(&root, &under, how, &|| stopped.load(Ordering::Relaxed))
    });
    tokio::select! {
        walked = walking => walked.map_err(|error| {
            Failure::new(Code::Failed, format!("the walk ended early: {error}"))
        }),
        () = engine.inner.readers.drained() => Ok(None),
    }
}

/// Ends a walk that nobody waits for any more.
struct StopWhenDropped(Arc<AtomicBool>);

impl Drop for StopWhenDropped {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
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
        Why::Secret => ("secret", "looks like a secret by its name; not indexed".to_owned()),
        Why::TooLarge(bytes) => {
            ("too_large", format!("{bytes} bytes; --max-file-size raises the limit"))
        }
        Why::Name => ("bad_name", "its name is no Unicode".to_owned()),
        Why::Unreadable(reason) => ("unreadable", reason),
    };
    IndexProblem { path, code, message }
}
