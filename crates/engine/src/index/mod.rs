//! Indexing: adds a folder's new and changed files to the code index.

mod batches;
mod history;
mod listing;
mod lock;
mod peak_memory;
mod pipeline;
mod place;
mod plan;
mod report;
mod reuse;
mod roots;
mod settings;
mod worktrees;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use isolate::Progress;
use isolith_embed::{DIMENSION, model_name};
use isolith_folder::Folder;
use isolith_protocol::{
    AddRoot, CODE_COLLECTION, ClearFiles, FinishIndex, LinkFiles, RemoveRoot, RootState,
    SegmentsOf, SetCodeModel, code_spec,
};
use isolith_roles::ParserSettings;
use isolith_store::names::is_segment;
use isolith_types::{Code, CollectionSpec, Failure};

use crate::fold::BUILDER_BUSY;
use crate::open::{Engine, hide_from_git};
pub(crate) use history::has_moved_since;
pub(crate) use listing::{Listing, walk_options};
pub(crate) use lock::{RootLock, lock_file};
use peak_memory::PeakMemory;
use pipeline::Pipeline;
pub(crate) use place::RootLocation;
use plan::IndexPlan;
pub use report::{FileCounts, IndexProblem, IndexReport, Seconds};
pub use roots::Root;
pub(crate) use roots::{RootFolder, root_around};
pub(crate) use settings::RootSettings;
pub use settings::indexed_languages;

/// What to index, and how.
#[derive(Debug, Clone)]
pub struct IndexOptions {
    /// A folder, or a file in a folder that is already indexed.
    pub path: PathBuf,
    /// Read, parse and fold everything again, changed or not.
    pub rebuild: bool,
    /// Rebuild the whole code index with this program's model.
    pub reembed: bool,
    /// Wait for another run on the same root instead of failing.
    pub wait: bool,
    /// Index files that look like secrets, too.
    pub include_secrets: bool,
    /// Number of parsers that run concurrently.
    pub parsers: usize,
    /// The root to update; nothing is done if it is no longer a root.
    pub of_root: Option<PathBuf>,
    /// When to build segments.
    pub fold: FoldWhen,
    /// The deadline for parsing a batch of files. It is a guard against parsers that hang, and so
    /// long that a busy machine does not reach it: what a busy machine indexes would differ.
    pub parse_deadline: Duration,
    /// The CPU time after which a parser that is busy with one file is ended.
    pub file_cpu: Duration,
}

impl IndexOptions {
    /// Default options to index `path`.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            rebuild: false,
            reembed: false,
            wait: true,
            include_secrets: false,
            parsers: std::thread::available_parallelism().map_or(2, |cores| cores.get().min(8)),
            of_root: None,
            fold: FoldWhen::AtTheEnd,
            parse_deadline: Duration::from_secs(300),
            file_cpu: ParserSettings::default().file_cpu,
        }
    }
}

/// When a run builds segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FoldWhen {
    /// At the end of the run, however little has changed.
    AtTheEnd,
    /// When so much has changed that searching the tail would cost more; in the background if
    /// the engine is long-lived.
    Due,
}

/// The progress of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexProgress {
    /// The current stage.
    pub stage: IndexStage,
    /// Number of files or rows completed.
    pub done: u64,
    /// The total; 0 if unknown.
    pub total: u64,
}

/// The stages of a run, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum IndexStage {
    /// Waiting for another run on the same root.
    Waiting,
    /// Listing files.
    Walking,
    /// Parsing and storing files.
    Parsing,
    /// Resolving references between files.
    Linking,
    /// Building segments.
    Folding,
}

/// Receives progress.
pub type IndexWatcher = Arc<dyn Fn(IndexProgress) + Send + Sync>;

/// A run over a root.
#[derive(Clone, Copy)]
struct Run<'a> {
    /// The root's number.
    root: u64,
    place: &'a RootLocation,
    /// The root's open folder.
    folder: &'a Folder,
    settings: &'a RootSettings,
    options: &'a IndexOptions,
    watcher: &'a IndexWatcher,
}

/// Maximum number of files removed in one transaction.
const FORGET_FILES: u32 = 200;

impl Engine {
    /// Updates the code index of a folder. An interrupted run keeps what it has stored, and the
    /// next run continues.
    ///
    /// # Errors
    /// `not_found` or `bad_input` for the path, `model_mismatch`, `lock_held`; any error of a
    /// write.
    pub async fn index(
        &self,
        options: &IndexOptions,
        watcher: IndexWatcher,
    ) -> Result<IndexReport, Failure> {
        let started = Instant::now();
        let report = self.index_root(options, watcher, started).await;
        self.inner.activity.index(report.as_ref(), started.elapsed());
        report
    }

    async fn index_root(
        &self,
        options: &IndexOptions,
        watcher: IndexWatcher,
        started: Instant,
    ) -> Result<IndexReport, Failure> {
        self.load_quarantine().await;
        let memory = PeakMemory::watch(self);
        let place = self.place_to_index(options).await?;
        let folder = place.open(self)?;
        let settings = &self.root_settings(place.folder())?;
        let lock = RootLock::take(self, place.folder(), options.wait, &watcher).await?;
        let mut report = IndexReport::default();
        // Another run may have added the root while this one waited.
        let (root, emptied) = self.add_root(&place, options).await?;
        hide_from_git(&self.inner.folder);
        report.chunks = root.chunks;
        let run = Run {
            root: root.id,
            place: &place,
            folder: &folder,
            settings,
            options,
            watcher: &watcher,
        };
        let stopped = self.bring_up_to_date(run, &mut report).await?;
        if stopped {
            report.interrupt();
        }
        // A concurrent change of the model may hold another root's lock.
        drop(lock);
        for other in emptied.into_iter().filter(|_| !stopped) {
            self.index_emptied(other, options, &watcher, &mut report).await?;
        }
        let changed = report.files.indexed + report.files.renamed > 0;
        let before = place.known().and_then(|root| root.indexed_at);
        report.history_due = !stopped && (changed || has_moved_since(place.folder(), before));
        report.seconds.total = started.elapsed().as_secs_f64();
        report.peak_pss_bytes = memory.end();
        Ok(report)
    }

    /// Removes the code index of a root, whose folder need not exist any more.
    ///
    /// # Errors
    /// `not_found` if it has none, `bad_input` if it is only part of a root; any error of a write.
    pub async fn remove_root(&self, path: &std::path::Path) -> Result<Root, Failure> {
        let root = self.root_at(path).await?;
        let watcher: IndexWatcher = Arc::new(|_| {});
        let _lock = RootLock::take(self, &root.folder, true, &watcher).await?;
        self.drop_root(root.id).await?;
        Ok(root)
    }

    /// Removes a root with all its files. The caller must hold its lock.
    async fn drop_root(&self, root: u64) -> Result<(), Failure> {
        self.forget_files(Some(root)).await?;
        self.write(RemoveRoot { root }, None).await?;
        self.fold_later(CODE_COLLECTION);
        Ok(())
    }

    /// The root, and the other roots whose vectors were dropped with the old model.
    async fn add_root(
        &self,
        place: &RootLocation,
        options: &IndexOptions,
    ) -> Result<(RootState, Vec<Root>), Failure> {
        let spec = code_spec(DIMENSION as u32, model_name());
        let (path, worktree) = (place.stored(), place.worktree(self));
        let add = AddRoot { path, spec: spec.clone(), worktree };
        let added = match self.write(add.clone(), None).await {
            Err(failure) if failure.code == Code::ModelMismatch && options.reembed => {
                self.forget_files(None).await?;
                self.change_model(spec).await?;
                self.write(add, None).await
            }
            added => added,
        };
        let root = added?.done.reply.root;
        // An earlier run that changed the model may have been interrupted.
        let mut emptied = if options.reembed { self.roots().await? } else { Vec::new() };
        let is_emptied = |it: &Root| it.id != root.id && it.files == 0 && it.indexed_at.is_some();
        emptied.retain(is_emptied);
        Ok((root, emptied))
    }

    async fn change_model(&self, spec: CollectionSpec) -> Result<(), Failure> {
        let set = self.write(SetCodeModel { spec }, None).await?.done.reply;
        for file in set.obsolete_files.iter().filter(|file| is_segment(file)) {
            // The next fold removes what cannot be removed now.
            let segments = Folder::open(self.inner.folder.segments());
            let _ = segments.and_then(|segments| segments.remove(file));
        }
        self.inner.purge_due.fetch_or(set.more, Ordering::Relaxed);
        Ok(())
    }

    /// Indexes another root of the store whose vectors came from the old model.
    async fn index_emptied(
        &self,
        root: Root,
        options: &IndexOptions,
        watcher: &IndexWatcher,
        report: &mut IndexReport,
    ) -> Result<(), Failure> {
        if !root.folder.is_dir() {
            let path = root.folder.to_string_lossy().into_owned();
            let message = "the folder does not exist, and its index was removed".to_owned();
            report.problems.push(IndexProblem { path, code: "missing_root", message });
            return Ok(());
        }
        let options = IndexOptions { path: root.folder, reembed: false, ..options.clone() };
        let other = Box::pin(self.index(&options, Arc::clone(watcher))).await?;
        report.add(other);
        Ok(())
    }

    async fn forget_files(&self, root: Option<u64>) -> Result<(), Failure> {
        let forget = || ClearFiles { root, limit_files: FORGET_FILES };
        while self.write(forget(), None).await?.done.reply.more {}
        Ok(())
    }

    /// Returns whether it was interrupted.
    async fn bring_up_to_date(
        &self,
        run: Run<'_>,
        report: &mut IndexReport,
    ) -> Result<bool, Failure> {
        let plan = match IndexPlan::make(self, run, report).await {
            Err(failure) if is_stop(&failure) => return Ok(true),
            plan => plan?,
        };
        let clock = Instant::now();
        let done = Pipeline::new(self, run)?.run(plan, report).await;
        report.seconds.parse = clock.elapsed().as_secs_f64();
        match done {
            Err(failure) if is_stop(&failure) => return Ok(true),
            done => done?,
        }
        let clock = Instant::now();
        let folded = self.finish(run, report).await;
        report.seconds.fold = clock.elapsed().as_secs_f64();
        match folded {
            Err(failure) if is_stop(&failure) => Ok(true),
            folded => folded.map(|()| false),
        }
    }

    /// Resolves references, now that all files are stored.
    async fn link(&self, root: u64, place: &RootLocation) -> Result<(), Failure> {
        while self.write(LinkFiles { root }, None).await?.done.reply.more {}
        if place.under().is_empty() {
            self.write(FinishIndex { root }, None).await?;
        }
        Ok(())
    }

    async fn finish(&self, run: Run<'_>, report: &mut IndexReport) -> Result<(), Failure> {
        self.drop_removed_worktrees(report).await?;
        (run.watcher)(IndexProgress { stage: IndexStage::Linking, done: 0, total: 0 });
        // Segments of chunks do not depend on edges, which another process writes.
        let (linked, folded) =
            tokio::join!(self.link(run.root, run.place), self.fold_at_the_end(run));
        linked.and(folded)
    }

    async fn fold_at_the_end(&self, run: Run<'_>) -> Result<(), Failure> {
        let Run { options, watcher, .. } = run;
        watcher(IndexProgress { stage: IndexStage::Folding, done: 0, total: 0 });
        let watcher = Arc::clone(watcher);
        let on_progress = move |progress: Progress| {
            watcher(IndexProgress {
                stage: IndexStage::Folding,
                done: progress.done,
                total: progress.total.unwrap_or(0),
            });
        };
        if options.fold == FoldWhen::AtTheEnd {
            let on_progress: Arc<dyn Fn(Progress) + Send + Sync> = Arc::new(on_progress);
            // Another process may be building from the state before this run.
            while self
                .fold(CODE_COLLECTION, options.rebuild, Some(Arc::clone(&on_progress)))
                .await?
                .busy
            {
                tokio::time::sleep(BUILDER_BUSY).await;
            }
            self.due().remove(&SegmentsOf::Collection(CODE_COLLECTION.to_owned()));
        }
        Ok(())
    }
}

/// Whether a failure means that the program is stopping.
fn is_stop(failure: &Failure) -> bool {
    matches!(failure.code, Code::Draining | Code::Interrupted | Code::Terminated)
}
