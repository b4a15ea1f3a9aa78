//! What a run has to do: the files on disk against those in the index.

use std::collections::HashMap;
use std::path::Path;
use std::time::Instant;

use isolith_protocol::ListFiles;
use isolith_source::PARSER_VERSION;
use isolith_source::secrets::is_secret_problem;
use isolith_source::walk::{LeftOut, WalkPage, Walking, Why};
use isolith_types::{Code, Failure, FileVersion, Hint};

use super::listing::Listing;
use super::place::Place;
use super::{IndexProblem, IndexProgress, IndexReport, IndexStage, Run};
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
    /// Whether an earlier version of the parser made what the index has.
    pub(super) outdated: bool,
    /// What the index says of a secret in it.
    pub(super) secret: Option<String>,
}

/// What the index has of a file.
struct Known {
    version: FileVersion,
    /// Whether it had to be cut as text, or lost chunks to damage.
    lacking: bool,
    /// Whether an earlier version of the parser made it.
    outdated: bool,
    /// What was noted of a secret in it. It is looked at by every run, so that the run says
    /// so, and acts as its options and the rules of this program want it.
    secret: Option<String>,
}

impl Known {
    /// The version by which a renamed file is known again. One that has to be parsed anyway
    /// is known by none.
    fn under_another_name(self) -> FileVersion {
        let hash = if self.lacking || self.outdated { [0; 32] } else { self.version.hash };
        FileVersion { hash, ..self.version }
    }
}

/// Files that are listed with one job.
const PAGE: u32 = 5_000;

/// Problems of a walk that are listed; more are counted.
const LISTED_PROBLEMS: usize = 10_000;

impl Plan {
    /// Compares disk and index.
    ///
    /// # Errors
    /// What keeps the folder or the store from being read; `draining` if the program stops.
    pub(super) async fn make(
        engine: &Engine,
        run: Run<'_>,
        report: &mut IndexReport,
    ) -> Result<Self, Failure> {
        let Run { place, folder, settings, options, watcher, .. } = run;
        let clock = Instant::now();
        watcher(IndexProgress { stage: IndexStage::Walking, done: 0, total: 0 });
        let what = Walking {
            under: place.under().to_owned(),
            largest_file: settings.max_file_size,
            include_secrets: options.include_secrets,
            folders: false,
            except: engine.private_folders(folder),
            languages: settings.languages.clone(),
        };
        let mut listing = Listing::begin(engine, folder, what, &settings.ignored)?;
        // The worker that walks starts while the index is read.
        let (known, page) = tokio::join!(known_files(engine, run), listing.next());
        let mut comparison = Comparison::new(known?, options.rebuild);
        let had_files = !comparison.known.is_empty();
        let mut page = page?;
        while let Some(found) = page {
            comparison.take(found, report);
            page = listing.next().await?;
        }
        if report.files.seen == 0 && had_files && place.under().is_empty() {
            return Err(nothing_left(place));
        }
        report.seconds.walk = clock.elapsed().as_secs_f64();
        Ok(comparison.end(report))
    }
}

/// The files of a walk against those in the index, page by page.
struct Comparison {
    plan: Plan,
    /// What the index has and the walk has not come to yet.
    known: HashMap<String, Known>,
    rebuild: bool,
    /// Paths that could not be looked at.
    unseen: Vec<String>,
    unlisted: u64,
}

impl Comparison {
    fn new(known: HashMap<String, Known>, rebuild: bool) -> Self {
        Self { plan: Plan::default(), known, rebuild, unseen: Vec::new(), unlisted: 0 }
    }

    fn take(&mut self, page: WalkPage, report: &mut IndexReport) {
        report.files.seen += page.files.len() as u64;
        for left_out in page.left_out {
            self.leave_out(left_out, report);
        }
        for file in page.files {
            let before = self.known.remove(&file.path);
            let again = before.as_ref().is_some_and(|it| it.lacking);
            let outdated = before.as_ref().is_some_and(|it| it.outdated);
            let secret = before.as_ref().and_then(|it| it.secret.clone());
            let known = before.filter(|_| !self.rebuild).map(|it| it.version);
            let same = |it: FileVersion| it.size == file.size && it.modified == file.modified;
            match known {
                Some(it) if same(it) && !again && !outdated => report.files.unchanged += 1,
                known => {
                    let path = file.path;
                    self.plan.to_read.push(ToRead { path, known, again, outdated, secret });
                }
            }
        }
    }

    fn leave_out(&mut self, left_out: LeftOut, report: &mut IndexReport) {
        if matches!(left_out.why, Why::Unreadable(_) | Why::TooMany(_) | Why::TooDeep) {
            self.unseen.push(left_out.path.clone());
        }
        match report.problems.len() < LISTED_PROBLEMS {
            true => report.problems.push(problem(left_out)),
            false => self.unlisted += 1,
        }
    }

    fn end(mut self, report: &mut IndexReport) -> Plan {
        for path in &self.unseen {
            keep_unseen(&mut self.known, path);
        }
        if self.unlisted > 0 {
            let message = format!("{} more files were left out", self.unlisted);
            let path = String::new();
            report.problems.push(IndexProblem { path, code: "more_problems", message });
        }
        let gone = self.known.into_iter().map(|(path, it)| (path, it.under_another_name()));
        self.plan.gone.extend(gone);
        self.plan.gone.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        self.plan
    }
}

async fn known_files(
    engine: &Engine,
    Run { root, place, folder: root_folder, .. }: Run<'_>,
) -> Result<HashMap<String, Known>, Failure> {
    let under = place.under();
    // A single file is looked for among its neighbours.
    let single = root_folder.metadata(Path::new(under)).is_ok_and(|it| it.is_file());
    let folder =
        if single { under.rsplit_once('/').map_or("", |(folder, _)| folder) } else { under };
    let mut known = HashMap::new();
    let mut after = None;
    loop {
        let under = Some(folder).filter(|folder| !folder.is_empty()).map(str::to_owned);
        let page = engine.ask(ListFiles { root, under, after, limit: PAGE }).await?;
        let full = page.len() as u32 == PAGE;
        after = page.last().map(|file| file.path.clone());
        for file in page {
            // A hash of zeros stands for a file that lost chunks to damage.
            let lacking = file.problem.is_some() || file.version.hash == [0; 32];
            // A newer program may use the same store: what its parser made is left alone.
            let outdated = file.parser < PARSER_VERSION;
            let secret = file.problem.filter(|problem| is_secret_problem(problem) && !outdated);
            known.insert(file.path, Known { version: file.version, lacking, outdated, secret });
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
fn keep_unseen(known: &mut HashMap<String, Known>, path: &str) {
    known.retain(|known, _| {
        let rest = known.strip_prefix(path);
        !(path.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
    });
}

/// A folder that is not mounted looks empty; what is known of it must not go for that.
fn nothing_left(place: &Place) -> Failure {
    let folder = place.folder().display().to_string();
    let message = format!("{folder} has no files any more, and its index has some");
    Failure::new(Code::BadInput, message).with_hint(Hint::RemoveEmptyIndex { folder })
}

fn problem(left_out: LeftOut) -> IndexProblem {
    let LeftOut { path, why } = left_out;
    let (code, message) = match why {
        Why::Secret => ("secret", "looks like a secret by its name; not indexed".to_owned()),
        Why::TooLarge(bytes) => {
            ("too_large", format!("{bytes} bytes; --max-file-size raises the limit"))
        }
        Why::Name => ("bad_name", "its name is not valid Unicode".to_owned()),
        Why::Unreadable(reason) => ("unreadable", reason),
        Why::Store => ("store", "it is a store of Isolith and was not read".to_owned()),
        Why::TooMany(most) => {
            ("too_many_files", format!("the folder has more than {most} entries and was not read"))
        }
        Why::TooDeep => ("too_deep", "its path is too long and was not read".to_owned()),
        Why::Rules(reason) => ("ignore_rules", format!("its rules are not used: {reason}")),
    };
    IndexProblem { path, code, message }
}
