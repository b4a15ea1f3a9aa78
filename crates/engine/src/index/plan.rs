//! Plans a run by comparing the files on disk with those in the index.

use std::collections::HashMap;
use std::path::Path;
use std::time::Instant;

use isolith_protocol::ListFiles;
use isolith_source::PARSER_VERSION;
use isolith_source::secrets::is_secret_problem;
use isolith_source::walk::{SkipReason, SkippedPath, WalkOptions, WalkPage};
use isolith_types::{Code, Failure, FileVersion, Hint, counted};

use super::listing::{Listing, walk_options};
use super::place::RootLocation;
use super::{IndexProblem, IndexProgress, IndexReport, IndexStage, Run};
use crate::open::Engine;

/// The work of a run.
#[derive(Debug, Default)]
pub(super) struct IndexPlan {
    /// Files that are new or look changed.
    pub(super) to_read: Vec<ToRead>,
    /// Files in the index that are no longer there.
    pub(super) gone: Vec<(String, FileVersion)>,
}

/// A file to be read.
#[derive(Debug)]
pub(super) struct ToRead {
    pub(super) path: String,
    /// Its indexed version.
    pub(super) known: Option<FileVersion>,
    /// Whether its indexed version is incomplete, so that it must be parsed even if unchanged.
    pub(super) again: bool,
    /// Whether it was indexed by an earlier parser version.
    pub(super) outdated: bool,
    /// The recorded secret in it, if any.
    pub(super) secret: Option<String>,
}

/// A file in the index.
struct Known {
    version: FileVersion,
    /// Whether it was indexed as plain text after a failure, or lost chunks to damage.
    lacking: bool,
    /// Whether it was indexed by an earlier parser version.
    outdated: bool,
    /// The recorded secret in it, if any. Such a file is read by every run, which reports it and
    /// applies its own options and rules.
    secret: Option<String>,
}

impl Known {
    /// The version by which a renamed file is recognized; without a hash if it must be parsed
    /// anyway.
    fn under_another_name(self) -> FileVersion {
        let hash = if self.lacking || self.outdated { [0; 32] } else { self.version.hash };
        FileVersion { hash, ..self.version }
    }
}

/// Number of files listed per job.
const PAGE: u32 = 5_000;

/// Maximum number of listed problems of a walk; more are only counted.
const MAX_LISTED_PROBLEMS: usize = 10_000;

impl IndexPlan {
    /// Compares disk and index.
    ///
    /// # Errors
    /// Any error of reading the folder or the store; `draining` if the program is stopping.
    pub(super) async fn make(
        engine: &Engine,
        run: Run<'_>,
        report: &mut IndexReport,
    ) -> Result<Self, Failure> {
        let Run { place, folder, settings, options, watcher, .. } = run;
        let clock = Instant::now();
        watcher(IndexProgress { stage: IndexStage::Walking, done: 0, total: 0 });
        let mut what = WalkOptions {
            largest_file: settings.max_file_size,
            include_secrets: options.include_secrets,
            languages: settings.languages.clone(),
            ..walk_options(engine, folder, place.under())
        };
        what.except.extend(place.inner_roots());
        let mut listing = Listing::begin(engine, folder, what, &settings.ignored)?;
        // The walking worker starts while the index is read.
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

/// Compares the files of a walk with those in the index, page by page.
struct Comparison {
    plan: IndexPlan,
    /// Indexed files that the walk has not reached yet.
    known: HashMap<String, Known>,
    rebuild: bool,
    /// Paths that could not be read.
    unseen: Vec<String>,
    unlisted: u64,
}

impl Comparison {
    fn new(known: HashMap<String, Known>, rebuild: bool) -> Self {
        Self { plan: IndexPlan::default(), known, rebuild, unseen: Vec::new(), unlisted: 0 }
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

    fn leave_out(&mut self, left_out: SkippedPath, report: &mut IndexReport) {
        if matches!(
            left_out.why,
            SkipReason::Unreadable(_) | SkipReason::TooMany(_) | SkipReason::TooDeep
        ) {
            self.unseen.push(left_out.path.clone());
        }
        match report.problems.len() < MAX_LISTED_PROBLEMS {
            true => report.problems.push(problem(left_out)),
            false => self.unlisted += 1,
        }
    }

    fn end(mut self, report: &mut IndexReport) -> IndexPlan {
        for path in &self.unseen {
            keep_unseen(&mut self.known, path);
        }
        if self.unlisted > 0 {
            let message = format!("skipped {}", counted(self.unlisted, "more file"));
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
    // A single file is found by listing its folder.
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
            // A hash of zeros marks a file that lost chunks to damage.
            let lacking = file.problem.is_some() || file.version.hash == [0; 32];
            // A newer program may use the same store; keep the output of its parser.
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

/// Keeps the index of paths that cannot be read: they may still exist.
fn keep_unseen(known: &mut HashMap<String, Known>, path: &str) {
    known.retain(|known, _| {
        let rest = known.strip_prefix(path);
        !(path.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
    });
}

/// Refuses to empty an index: a folder that is not mounted looks empty, too.
fn nothing_left(place: &RootLocation) -> Failure {
    let folder = place.folder().display().to_string();
    let message = format!("{folder} has no files any more, but its index is not empty");
    Failure::new(Code::BadInput, message).with_hint(Hint::RemoveEmptyIndex { folder })
}

fn problem(left_out: SkippedPath) -> IndexProblem {
    let SkippedPath { path, why } = left_out;
    let (code, message) = match why {
        SkipReason::Secret => ("secret", "looks like a secret by its name; not indexed".to_owned()),
        SkipReason::TooLarge(bytes) => {
            ("too_large", format!("{bytes} bytes; --max-file-size raises the limit"))
        }
        SkipReason::Name => ("bad_name", "its name is not valid Unicode".to_owned()),
        SkipReason::Unreadable(reason) => ("unreadable", reason),
        SkipReason::Store => ("store", "it is a store of Isolith and was not read".to_owned()),
        SkipReason::Repository => {
            ("repository", "it is a repository of its own; index it separately".to_owned())
        }
        SkipReason::TooMany(most) => {
            ("too_many_files", format!("the folder has more than {most} entries and was not read"))
        }
        SkipReason::TooDeep => ("too_deep", "its path is too long and was not read".to_owned()),
        SkipReason::Rules(reason) => ("ignore_rules", format!("its rules are not used: {reason}")),
    };
    IndexProblem { path, code, message }
}
