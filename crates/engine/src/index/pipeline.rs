//! Indexes changed files: the front reads them, workers parse them, the writer stores them.
//! The number of tasks and the batch size bound the memory in use.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use isolate::{BatchPart, Bulk, CallError, CallOptions, Pool, PoolSettings, Supervised};
use isolith_embed::{DIMENSION, model_name};
use isolith_folder::Folder;
use isolith_protocol::{EmbedMovedFile, FileMoved, MoveFile, PutFiles, RemoveFiles, TouchFiles};
use isolith_roles::{FileSummary, FileToParse, ParseJob, Parsed, Parser, ParserSettings};
use isolith_source::Language;
use isolith_source::walk::{Contents, ReadError, read};
use isolith_types::{Code, Failure, FileVersion};
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinSet;

use super::batches::{Batches, Turn};
use super::plan::{IndexPlan, ToRead};
use super::{IndexProblem, IndexProgress, IndexReport, IndexStage, IndexWatcher, Run};
use crate::failure::of_call;
use crate::open::{Engine, pool_settings};
use crate::status::WatchedPool;

/// Target size of a batch: large enough to amortise the call to a worker and to seldom
/// rewrite a database page, small enough to keep its transaction short.
const BATCH_BYTES: usize = 768 << 10;
const BATCH_FILES: usize = 128;

/// Size of the first batch. Batches double until they reach the target, so that a small
/// project keeps all parsers busy.
const FIRST_BATCH_BYTES: usize = 96 << 10;

/// Memory limit of a parser, in bytes.
const PARSER_MEMORY: u64 = 512 << 20;

/// Maximum number of paths removed or touched in one transaction.
const MANY_PATHS: usize = 500;

/// How often a batch is retried while the parsers' breaker is open, and the longest pause.
const MAX_REFUSALS: u32 = 12;
const MAX_PAUSE: Duration = Duration::from_secs(10);

/// Maximum number of concurrent renames.
const MOVES: usize = 16;

/// How long a batch waits for a parser, in deadlines.
const PATIENCE: u32 = 4;

/// One run over the files of a plan.
pub(super) struct Pipeline {
    pub(super) engine: Engine,
    pub(super) root: u64,
    /// Other roots that may have the same files.
    pub(super) siblings: Vec<u64>,
    folder: Folder,
    largest_file: u64,
    rebuild: bool,
    include_secrets: bool,
    tasks: usize,
    parsers: Pool<Parser>,
    _shown: WatchedPool,
    watcher: IndexWatcher,
    done: AtomicU64,
    total: AtomicU64,
}

/// A file that was read.
#[derive(Debug, Clone)]
pub(super) struct File {
    pub(super) note: FileToParse,
    pub(super) modified: i64,
    bytes: Bytes,
    /// Whether its content is already indexed as plain text.
    pub(super) again: bool,
    /// Whether it is not in the index yet.
    pub(super) is_new: bool,
}

/// Files that need no parsing, or could not be read.
#[derive(Debug, Default)]
struct Unparsed {
    /// Same content, different modification time.
    touched: Vec<(String, FileVersion)>,
    /// Same content, different path.
    moved: Vec<Move>,
    problems: Vec<IndexProblem>,
    /// Removed since the walk.
    vanished: u64,
    /// Indexed files that could not be read, and so count neither as unchanged nor as removed.
    failed: u64,
}

#[derive(Debug, Clone)]
struct Move {
    from: String,
    to: String,
    version: FileVersion,
}

/// The results of parsing and storing.
#[derive(Debug, Default)]
pub(super) struct Stored {
    pub(super) indexed: u64,
    unchanged: u64,
    failed: u64,
    /// Files with secrets, which are not indexed.
    skipped: u64,
    /// Indexed files that another root had already.
    pub(super) reused: u64,
    inserted_chunks: u64,
    deleted_chunks: u64,
    problems: Vec<IndexProblem>,
}

impl Pipeline {
    pub(super) fn new(
        engine: &Engine,
        Run { root, place, folder, settings: limits, options, watcher }: Run<'_>,
    ) -> Result<Self, Failure> {
        let settings = PoolSettings {
            memory_cap: Some(PARSER_MEMORY),
            job_deadline: options.parse_deadline,
            queue_patience: options.parse_deadline * PATIENCE,
            ..pool_settings(&engine.inner.options, options.parsers)
        };
        let how = ParserSettings { file_cpu: options.file_cpu };
        let parsers = Pool::start(&how, settings, engine.inner.hooks.clone())
            .map_err(|error| of_call(&error))?;
        Ok(Self {
            engine: engine.clone(),
            root,
            siblings: if options.rebuild { Vec::new() } else { place.siblings() },
            folder: folder.clone(),
            largest_file: limits.max_file_size,
            rebuild: options.rebuild,
            include_secrets: options.include_secrets,
            // One batch is stored and others wait for their turn while the next are parsed.
            tasks: 2 * options.parsers + 1,
            _shown: engine.watch_pool(Arc::new(parsers.clone())),
            parsers,
            watcher: Arc::clone(watcher),
            done: AtomicU64::new(0),
            total: AtomicU64::new(0),
        })
    }

    pub(super) async fn run(
        self,
        plan: IndexPlan,
        report: &mut IndexReport,
    ) -> Result<(), Failure> {
        let pipeline = Arc::new(self);
        let outcome = Arc::clone(&pipeline).work(plan, report).await;
        pipeline.parsers.kill();
        outcome
    }

    async fn work(
        self: Arc<Self>,
        plan: IndexPlan,
        report: &mut IndexReport,
    ) -> Result<(), Failure> {
        let IndexPlan { to_read, gone } = plan;
        self.total.store(to_read.len() as u64, Ordering::Relaxed);
        let (sender, batches) = mpsc::channel(1);
        let reader = Reader {
            folder: self.folder.clone(),
            largest_file: self.largest_file,
            gone: if self.rebuild { Gone::default() } else { Gone::of(&gone) },
            batches: sender,
            batch: Vec::new(),
            aside: Unparsed::default(),
        };
        let reading = tokio::task::spawn_blocking(move || reader.run(to_read));
        let batches = Arc::new(Mutex::new(Batches::new(batches)));
        let mut tasks = JoinSet::new();
        for _ in 0..self.tasks {
            tasks.spawn(Arc::clone(&self).store_batches(Arc::clone(&batches)));
        }
        drop(batches);
        let mut outcome = Ok(());
        while let Some(task) = tasks.join_next().await {
            let ended = task.map_err(|error| Failure::new(Code::Failed, error.to_string()));
            match ended {
                Ok((stored, ended)) => {
                    stored.tell(report);
                    outcome = outcome.and(ended);
                }
                Err(failure) => outcome = Err(failure),
            }
        }
        // The reader ends when its channel is closed.
        let aside = reading.await.map_err(|error| Failure::new(Code::Failed, error.to_string()))?;
        outcome?;
        self.settle_aside(aside, gone, report).await
    }

    /// One of the tasks: takes batches until there are no more.
    async fn store_batches(
        self: Arc<Self>,
        batches: Arc<Mutex<Batches>>,
    ) -> (Stored, Result<(), Failure>) {
        let mut stored = Stored::default();
        loop {
            let next = tokio::select! {
                next = async { batches.lock().await.next().await } => next,
                () = self.engine.inner.readers.drained() => {
                    let failure = Failure::new(Code::Draining, "the program is stopping");
                    return (stored, Err(failure));
                }
            };
            let Some((batch, mut turn)) = next else { return (stored, Ok(())) };
            let files = batch.len() as u64;
            if let Err(failure) = self.store_batch(batch, &mut turn, &mut stored).await {
                // Stop the reader of a failed run.
                batches.lock().await.files.close();
                return (stored, Err(failure));
            }
            drop(turn);
            let done = self.done.fetch_add(files, Ordering::Relaxed);
            self.show(done + files);
        }
    }

    fn show(&self, done: u64) {
        let total = self.total.load(Ordering::Relaxed);
        (self.watcher)(IndexProgress { stage: IndexStage::Parsing, done, total });
    }

    async fn store_batch(
        &self,
        batch: Vec<File>,
        turn: &mut Turn,
        stored: &mut Stored,
    ) -> Result<(), Failure> {
        let batch = self.reuse(batch, turn, stored).await?;
        let mut left = vec![&batch[..]];
        let mut refusals = 0;
        while let Some(files) = left.pop().filter(|files| !files.is_empty()) {
            let options = CallOptions { idempotent: true, ..CallOptions::default() };
            let parts =
                self.parsers.call_batch(files, |files| self.job(files, false), options).await;
            turn.comes().await;
            for BatchPart { items, outcome } in parts {
                match (outcome, &files[items]) {
                    (Ok(answer), files) => self.put(answer.reply, files, stored).await?,
                    (Err(error), [file]) if blames_input(&error) => {
                        self.put_plain(file, &error, stored).await?;
                    }
                    // Several crashing files in one batch must not fail the others.
                    (Err(CallError::BreakerOpen { retry_after, .. }), files)
                        if refusals < MAX_REFUSALS =>
                    {
                        refusals += 1;
                        tokio::time::sleep(retry_after.min(MAX_PAUSE)).await;
                        left.push(files);
                    }
                    (Err(error), _) => return Err(of_call(&error)),
                }
            }
        }
        Ok(())
    }

    /// Stores a file that crashes its parser as plain text.
    async fn put_plain(
        &self,
        file: &File,
        error: &CallError,
        stored: &mut Stored,
    ) -> Result<(), Failure> {
        let files = std::slice::from_ref(file);
        let code = match error {
            CallError::Quarantined { .. } => "quarantined",
            _ => "parser_died",
        };
        let mut note = IndexProblem {
            path: file.note.path.clone(),
            code,
            message: format!("{error}; indexed as plain text"),
        };
        if file.again {
            stored.failed += 1;
            stored.problems.push(note);
            return Ok(());
        }
        let options = CallOptions { idempotent: true, ..CallOptions::default() };
        let mut as_text = Stored::default();
        let outcome = match self.parsers.call(&self.job(files, true), options).await {
            Ok(answer) => self.put(answer.reply, files, &mut as_text).await,
            Err(error) if blames_input(&error) => {
                note.message = format!("{error}; not indexed");
                Ok(())
            }
            Err(error) => Err(of_call(&error)),
        };
        // It counts once: as skipped if it turns out to have a secret, else as failed.
        stored.failed += 1 - as_text.skipped;
        stored.skipped += as_text.skipped;
        stored.count_chunks(as_text.inserted_chunks, as_text.deleted_chunks);
        stored.problems.append(&mut as_text.problems);
        stored.problems.push(note);
        outcome
    }

    fn job(&self, files: &[File], plain: bool) -> ParseJob {
        let contents = match files {
            [file] => Bulk::from(file.bytes.clone()),
            files => {
                let length = files.iter().map(|file| file.bytes.len()).sum();
                let mut all = Vec::with_capacity(length);
                files.iter().for_each(|file| all.extend_from_slice(&file.bytes));
                Bulk::from(all)
            }
        };
        let (files, include_secrets) =
            (files.iter().map(|file| file.note.clone()).collect(), self.include_secrets);
        ParseJob { files, contents, plain, include_secrets }
    }

    async fn put(
        &self,
        parsed: Parsed,
        files: &[File],
        stored: &mut Stored,
    ) -> Result<(), Failure> {
        let all = || files.iter().zip(&parsed.summaries);
        let ages: Vec<i64> =
            all().filter(|(_, note)| note.stored).map(|(file, _)| file.modified).collect();
        if !ages.is_empty() {
            let put = PutFiles {
                root: self.root,
                files: parsed.files,
                ages,
                dimension: DIMENSION as u32,
                vectors: parsed.vectors,
                model: model_name().to_owned(),
            };
            let put = self.engine.write(put, None).await?.done.reply;
            stored.count_chunks(put.inserted, put.deleted);
        }
        for (file, note) in all() {
            stored.note(&file.note.path, note, self.include_secrets);
        }
        Ok(())
    }

    async fn settle_aside(
        self: &Arc<Self>,
        aside: Unparsed,
        gone: Vec<(String, FileVersion)>,
        report: &mut IndexReport,
    ) -> Result<(), Failure> {
        let Unparsed { touched, moved, problems, vanished, failed } = aside;
        let root = self.root;
        report.files.seen -= vanished;
        report.files.failed += failed;
        report.problems.extend(problems);
        report.problems.sort_by(|a, b| a.path.cmp(&b.path));
        for some in touched.chunks(MANY_PATHS) {
            let files =
                some.iter().map(|(path, it)| (path.clone(), it.modified, it.size)).collect();
            self.engine.write(TouchFiles { root, files }, None).await?;
            report.files.unchanged += some.len() as u64;
        }
        let renamed = self.rename_all(moved, report).await?;
        let gone: Vec<String> =
            gone.into_iter().map(|(path, _)| path).filter(|path| !renamed.contains(path)).collect();
        for some in gone.chunks(MANY_PATHS) {
            let remove = RemoveFiles { root, paths: some.to_vec() };
            let removed = self.engine.write(remove, None).await?.done.reply;
            report.count_chunks(0, removed.deleted);
            report.files.removed += some.len() as u64;
        }
        Ok(())
    }

    /// Renames files concurrently, so that they share transactions. Returns the old paths.
    /// Files that could not be renamed are removed, and the next run indexes them as new.
    async fn rename_all(
        self: &Arc<Self>,
        moved: Vec<Move>,
        report: &mut IndexReport,
    ) -> Result<HashSet<String>, Failure> {
        let mut moves = JoinSet::new();
        let mut waiting = moved.into_iter();
        let mut renamed = HashSet::new();
        loop {
            while moves.len() < MOVES
                && let Some(it) = waiting.next()
            {
                let pipeline = Arc::clone(self);
                moves.spawn(async move { (it.clone(), pipeline.rename(it).await) });
            }
            let Some(task) = moves.join_next().await else { return Ok(renamed) };
            match task.map_err(|error| Failure::new(Code::Failed, error.to_string()))? {
                (it, Ok(done)) => {
                    report.count_chunks(0, done.deleted);
                    report.files.renamed += 1;
                    renamed.insert(it.from);
                }
                (_, Err(failure)) if super::is_stop(&failure) => return Err(failure),
                (it, Err(failure)) => {
                    let message = format!("it was renamed, and is left to the next run: {failure}");
                    let problem = IndexProblem { path: it.to, code: "rename_failed", message };
                    report.problems.push(problem);
                    report.files.failed += 1;
                }
            }
        }
    }

    /// Embeds the stored chunks again, because the path is part of their vectors.
    async fn rename(&self, it: Move) -> Result<FileMoved, Failure> {
        let Move { from, to, version } = it;
        let embed = EmbedMovedFile { root: self.root, path: from.clone(), as_path: to.clone() };
        let vectors = self.engine.ask(embed).await?;
        let step = MoveFile {
            root: self.root,
            from,
            to,
            version,
            dimension: DIMENSION as u32,
            vectors,
            model: model_name().to_owned(),
        };
        Ok(self.engine.write(step, None).await?.done.reply)
    }
}

impl Stored {
    /// Counts a parsed file and lists its problems.
    fn note(&mut self, path: &str, note: &FileSummary, include_secrets: bool) {
        let mut list = |code, message| {
            self.problems.push(IndexProblem { path: path.to_owned(), code, message });
        };
        if let Some(message) = &note.problem {
            list("slow", message.clone());
        }
        match &note.secret {
            Some((rule, line)) if include_secrets => {
                list("secret_included", format!("line {line}: looks like a secret ({rule})"));
            }
            Some((rule, line)) => {
                let message = format!("line {line}: looks like a secret ({rule}); not indexed");
                list("secret", message);
                self.skipped += 1;
                return;
            }
            None => {}
        }
        match note.stored {
            true => self.indexed += 1,
            false => self.unchanged += 1,
        }
    }

    pub(super) fn count_chunks(&mut self, inserted: u64, deleted: u64) {
        self.inserted_chunks += inserted;
        self.deleted_chunks += deleted;
    }

    fn tell(self, report: &mut IndexReport) {
        report.files.skipped += self.skipped;
        report.files.indexed += self.indexed;
        report.files.unchanged += self.unchanged;
        report.files.failed += self.failed;
        report.reused += self.reused;
        report.count_chunks(self.inserted_chunks, self.deleted_chunks);
        report.problems.extend(self.problems);
    }
}

/// Whether the file is to blame, not the program or the machine.
fn blames_input(error: &CallError) -> bool {
    match error {
        CallError::Died { class, .. } => class.blames_job(),
        CallError::Poisoned { .. } | CallError::Quarantined { .. } | CallError::Unanswerable(_) => {
            true
        }
        CallError::BadRequest(_)
        | CallError::RequestTooLarge { .. }
        | CallError::QueueFull { .. }
        | CallError::QueueTimeout { .. }
        | CallError::BreakerOpen { .. }
        | CallError::Draining { .. }
        | CallError::StartFailed { .. } => false,
    }
}

/// Reads files on a thread of its own.
struct Reader {
    folder: Folder,
    largest_file: u64,
    gone: Gone,
    batches: mpsc::Sender<Vec<File>>,
    batch: Vec<File>,
    aside: Unparsed,
}

impl Reader {
    fn run(mut self, to_read: Vec<ToRead>) -> Unparsed {
        let (mut bytes, mut enough) = (0, FIRST_BATCH_BYTES);
        for file in to_read {
            if self.batches.is_closed() {
                return self.aside;
            }
            match read(&self.folder, &file.path, self.largest_file) {
                Ok(contents) => bytes += self.take(file, contents),
                Err(ReadError::Gone) => self.aside.vanished += 1,
                Err(error) => self.fail(file.path, &error),
            }
            if bytes >= enough || self.batch.len() >= BATCH_FILES {
                (bytes, enough) = (0, BATCH_BYTES.min(enough * 2));
                if self.batches.blocking_send(std::mem::take(&mut self.batch)).is_err() {
                    return self.aside;
                }
            }
        }
        if !self.batch.is_empty() {
            // Sending fails only if the run has failed, which reports its own error.
            let _ = self.batches.blocking_send(std::mem::take(&mut self.batch));
        }
        self.aside
    }

    /// Decides what to do with a file; returns the number of bytes to parse.
    fn take(&mut self, file: ToRead, contents: Contents) -> usize {
        let ToRead { path, known, again, outdated, secret } = file;
        let Contents { bytes, modified } = contents;
        let size = bytes.len() as u64;
        let version = FileVersion { hash: *blake3::hash(&bytes).as_bytes(), size, modified };
        let same = known.is_some_and(|known| known.hash == version.hash);
        if same && !again && !outdated {
            self.aside.touched.push((path, version));
            return 0;
        }
        if known.is_none()
            && let Some(from) = self.gone.take(&path, &version)
        {
            self.aside.moved.push(Move { from, to: path, version });
            return 0;
        }
        let secret = secret.filter(|_| same);
        let note = FileToParse { path, hash: version.hash, length: size, secret };
        let again = again && same && !outdated;
        let is_new = known.is_none();
        self.batch.push(File { note, modified, bytes: Bytes::from(bytes), again, is_new });
        size as usize
    }

    fn fail(&mut self, path: String, error: &ReadError) {
        self.aside.failed += 1;
        let message = error.to_string();
        self.aside.problems.push(IndexProblem { path, code: "unreadable", message });
    }
}

/// Removed files by content hash: one that appears elsewhere was renamed.
#[derive(Debug, Default)]
struct Gone(HashMap<[u8; 32], Vec<String>>);

impl Gone {
    fn of(gone: &[(String, FileVersion)]) -> Self {
        let mut by_content = Self::default();
        let known = |version: &FileVersion| version.size > 0 && version.hash != [0; 32];
        for (path, version) in gone.iter().filter(|(_, version)| known(version)) {
            by_content.0.entry(version.hash).or_default().push(path.clone());
        }
        by_content
    }

    /// The old path of a file with this content, if it has the same language: in another
    /// language, its chunks would differ.
    fn take(&mut self, path: &str, version: &FileVersion) -> Option<String> {
        let language = |path: &str| Language::of(path, &[]);
        let paths = self.0.get_mut(&version.hash)?;
        let at = paths.iter().position(|from| language(from) == language(path))?;
        Some(paths.swap_remove(at))
    }
}
