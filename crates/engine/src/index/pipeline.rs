//! The way of changed files: read in the front, parsed in workers, stored by the writer.
//! What is under way is bounded by the number of tasks and the size of a batch.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use isolate::{BatchPart, Bulk, CallError, CallOptions, Pool, PoolSettings, Supervised};
use isolith_embed::{DIMENSION, model_name};
use isolith_folder::Folder;
use isolith_protocol::{EmbedMovedFile, MoveFile, PutFiles, RemoveFiles, TouchFiles};
use isolith_roles::{FileToParse, ParseJob, ParseNote, Parsed, Parser};
use isolith_source::Language;
use isolith_source::walk::{Contents, ReadError, read};
use isolith_types::{Code, Failure, FileVersion};
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinSet;

use super::plan::{Plan, ToRead};
use super::{IndexProblem, IndexProgress, IndexReport, IndexStage, IndexWatcher, Run};
use crate::failure::of_call;
use crate::open::{Engine, pool_settings};
use crate::status::WatchedPool;

/// A batch is about this large: enough that the way to a worker costs little and that a page
/// of the truth is seldom written again, so small that its transaction is short.
const BATCH_BYTES: usize = 768 << 10;
const BATCH_FILES: usize = 128;

/// The first batch is smaller, and each is twice the one before until they are as large as
/// that: all parsers of a small project have something to do.
const FIRST_BATCH_BYTES: usize = 96 << 10;

/// The memory of a worker that parses.
const PARSER_MEMORY: u64 = 512 << 20;

/// Paths that are removed or touched in one transaction.
const MANY_PATHS: usize = 500;

/// How often a batch is tried again while parsers are not started for having died too
/// often, and how long it waits at most.
const MOST_REFUSALS: u32 = 12;
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// Renamed files that are on their way at the same time.
const MOVES: usize = 16;

/// One run over the files of a plan.
pub(super) struct Pipeline {
    engine: Engine,
    root: u64,
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
struct File {
    note: FileToParse,
    modified: i64,
    bytes: Bytes,
    /// Whether its content is in the index already, cut as text.
    again: bool,
}

/// What reading found out beside contents.
#[derive(Debug, Default)]
struct Aside {
    /// Same content, other age.
    touched: Vec<(String, FileVersion)>,
    /// Same content, other path.
    moved: Vec<Move>,
    problems: Vec<IndexProblem>,
    /// Went away between the walk and now.
    vanished: u64,
    /// Known files that must not be taken for unchanged or gone: they were not read.
    failed: u64,
}

#[derive(Debug, Clone)]
struct Move {
    from: String,
    to: String,
    version: FileVersion,
}

/// What became of parsed files.
#[derive(Debug, Default)]
struct Stored {
    indexed: u64,
    unchanged: u64,
    chunks: u64,
    failed: u64,
    problems: Vec<IndexProblem>,
}

impl Pipeline {
    pub(super) fn new(
        engine: &Engine,
        Run { root, folder, settings: limits, options, watcher, .. }: Run<'_>,
    ) -> Result<Self, Failure> {
        let settings = PoolSettings {
            memory_cap: Some(PARSER_MEMORY),
            job_deadline: options.parse_deadline,
            ..pool_settings(&engine.inner.options, options.parsers)
        };
        let parsers = Pool::start(&(), settings, engine.inner.hooks.clone())
            .map_err(|error| of_call(&error))?;
        Ok(Self {
            engine: engine.clone(),
            root,
            folder: folder.clone(),
            largest_file: limits.max_file_size,
            rebuild: options.rebuild,
            include_secrets: options.include_secrets,
            // One batch is stored while the others are parsed.
            tasks: options.parsers + 1,
            _shown: engine.watch_pool(Arc::new(parsers.clone())),
            parsers,
            watcher: Arc::clone(watcher),
            done: AtomicU64::new(0),
            total: AtomicU64::new(0),
        })
    }

    pub(super) async fn run(self, plan: Plan, report: &mut IndexReport) -> Result<(), Failure> {
        let pipeline = Arc::new(self);
        let outcome = Arc::clone(&pipeline).work(plan, report).await;
        pipeline.parsers.kill();
        outcome
    }

    async fn work(self: Arc<Self>, plan: Plan, report: &mut IndexReport) -> Result<(), Failure> {
        let Plan { to_read, gone } = plan;
        self.total.store(to_read.len() as u64, Ordering::Relaxed);
        let (sender, batches) = mpsc::channel(1);
        let reader = Reader {
            folder: self.folder.clone(),
            largest_file: self.largest_file,
            gone: if self.rebuild { Gone::default() } else { Gone::of(&gone) },
            batches: sender,
            batch: Vec::new(),
            aside: Aside::default(),
        };
        let reading = tokio::task::spawn_blocking(move || reader.run(to_read));
        let batches = Arc::new(Mutex::new(batches));
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
        // The reader ends when nobody takes its batches any more.
        let aside = reading.await.map_err(|error| Failure::new(Code::Failed, error.to_string()))?;
        outcome?;
        self.settle_aside(aside, gone, report).await
    }

    /// One of the tasks: takes batches until there are no more.
    async fn store_batches(
        self: Arc<Self>,
        batches: Arc<Mutex<mpsc::Receiver<Vec<File>>>>,
    ) -> (Stored, Result<(), Failure>) {
        let mut stored = Stored::default();
        loop {
            let next = tokio::select! {
                next = async { batches.lock().await.recv().await } => next,
                () = self.engine.inner.readers.drained() => {
                    let failure = Failure::new(Code::Draining, "the program is stopping");
                    return (stored, Err(failure));
                }
            };
            let Some(batch) = next else { return (stored, Ok(())) };
            if let Err(failure) = self.store_batch(&batch, &mut stored).await {
                // Nobody reads on for a run that has failed.
                batches.lock().await.close();
                return (stored, Err(failure));
            }
            let done = self.done.fetch_add(batch.len() as u64, Ordering::Relaxed);
            self.show(done + batch.len() as u64);
        }
    }

    fn show(&self, done: u64) {
        let total = self.total.load(Ordering::Relaxed);
        (self.watcher)(IndexProgress { stage: IndexStage::Parsing, done, total });
    }

    async fn store_batch(&self, batch: &[File], stored: &mut Stored) -> Result<(), Failure> {
        let mut left = vec![batch];
        let mut refusals = 0;
        while let Some(files) = left.pop() {
            let options = CallOptions { idempotent: true, ..CallOptions::default() };
            let parts =
                self.parsers.call_batch(files, |files| self.job(files, false), options).await;
            for BatchPart { items, outcome } in parts {
                match (outcome, &files[items]) {
                    (Ok(answer), files) => self.put(answer.reply, files, stored).await?,
                    (Err(error), [file]) if blames_input(&error) => {
                        self.put_plain(file, &error, stored).await?;
                    }
                    // Several deadly files at once are not a reason to give up on the others.
                    (Err(CallError::BreakerOpen { retry_after, .. }), files)
                        if refusals < MOST_REFUSALS =>
                    {
                        refusals += 1;
                        tokio::time::sleep(retry_after.min(LONGEST_PAUSE)).await;
                        left.push(files);
                    }
                    (Err(error), _) => return Err(of_call(&error)),
                }
            }
        }
        Ok(())
    }

    /// Stores a file as text that kills its parser.
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
        stored.failed += 1;
        if file.again {
            stored.unchanged += 1;
            stored.problems.push(note);
            return Ok(());
        }
        let options = CallOptions { idempotent: true, ..CallOptions::default() };
        let outcome = match self.parsers.call(&self.job(files, true), options).await {
            Ok(answer) => self.put(answer.reply, files, stored).await,
            Err(error) if blames_input(&error) => {
                note.message = format!("{error}; not indexed");
                Ok(())
            }
            Err(error) => Err(of_call(&error)),
        };
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
        let all = || files.iter().zip(&parsed.notes);
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
            self.engine.write(put, None).await?;
        }
        for (file, note) in all() {
            stored.note(&file.note.path, note, self.include_secrets);
        }
        Ok(())
    }

    async fn settle_aside(
        self: &Arc<Self>,
        aside: Aside,
        gone: Vec<(String, FileVersion)>,
        report: &mut IndexReport,
    ) -> Result<(), Failure> {
        let Aside { touched, moved, problems, vanished, failed } = aside;
        let root = self.root;
        report.files.seen -= vanished;
        report.files.failed += failed;
        report.files.unchanged += touched.len() as u64;
        report.problems.extend(problems);
        report.problems.sort_by(|a, b| a.path.cmp(&b.path));
        for some in touched.chunks(MANY_PATHS) {
            let files =
                some.iter().map(|(path, it)| (path.clone(), it.modified, it.size)).collect();
            self.engine.write(TouchFiles { root, files }, None).await?;
        }
        let moved_files = moved.len() as u64;
        let not_moved = self.rename_all(moved.clone()).await?;
        report.files.renamed = moved_files - not_moved.len() as u64;
        let renamed: HashSet<&str> = moved
            .iter()
            .map(|it| it.from.as_str())
            .filter(|from| !not_moved.iter().any(|it| it == from))
            .collect();
        let gone: Vec<String> = gone
            .into_iter()
            .map(|(path, _)| path)
            .filter(|path| !renamed.contains(path.as_str()))
            .collect();
        for some in gone.chunks(MANY_PATHS) {
            let remove = RemoveFiles { root, paths: some.to_vec() };
            self.engine.write(remove, None).await?;
            report.files.removed += some.len() as u64;
        }
        Ok(())
    }

    /// Some at a time, so that they share transactions. Returns the former paths of files
    /// that could not be moved: they are removed, and the next run takes them for new.
    async fn rename_all(self: &Arc<Self>, moved: Vec<Move>) -> Result<Vec<String>, Failure> {
        let mut moves = JoinSet::new();
        let mut waiting = moved.into_iter();
        let mut not_moved = Vec::new();
        loop {
            while moves.len() < MOVES
                && let Some(it) = waiting.next()
            {
                let (pipeline, from) = (Arc::clone(self), it.from.clone());
                moves.spawn(async move { (from, pipeline.rename(it).await) });
            }
            let Some(task) = moves.join_next().await else { return Ok(not_moved) };
            match task.map_err(|error| Failure::new(Code::Failed, error.to_string()))? {
                (_, Ok(())) => {}
                (_, Err(failure)) if super::is_stop(&failure) => return Err(failure),
                (from, Err(failure)) => {
                    tracing::warn!(from, %failure, "a renamed file could not be moved");
                    not_moved.push(from);
                }
            }
        }
    }

    /// The path is part of the vectors: they are made again from the stored chunks.
    async fn rename(&self, it: Move) -> Result<(), Failure> {
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
        self.engine.write(step, None).await.map(drop)
    }
}

impl Stored {
    /// Counts a file that was parsed, and lists what is to be said of it.
    fn note(&mut self, path: &str, note: &ParseNote, include_secrets: bool) {
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
                return;
            }
            None => {}
        }
        self.chunks += u64::from(note.chunks);
        match note.stored {
            true => self.indexed += 1,
            false => self.unchanged += 1,
        }
    }

    fn tell(self, report: &mut IndexReport) {
        report.files.indexed += self.indexed;
        report.files.unchanged += self.unchanged;
        report.chunks += self.chunks;
        report.files.failed += self.failed;
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
        _ => false,
    }
}

/// Reads files on a thread of its own.
struct Reader {
    folder: Folder,
    largest_file: u64,
    gone: Gone,
    batches: mpsc::Sender<Vec<File>>,
    batch: Vec<File>,
    aside: Aside,
}

impl Reader {
    fn run(mut self, to_read: Vec<ToRead>) -> Aside {
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
            // If nobody takes it, the run has failed and says so.
            let _ = self.batches.blocking_send(std::mem::take(&mut self.batch));
        }
        self.aside
    }

    /// Decides what is to be done with a content; returns how much is to be parsed.
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
        self.batch.push(File { note, modified, bytes: Bytes::from(bytes), again });
        size as usize
    }

    fn fail(&mut self, path: String, error: &ReadError) {
        self.aside.failed += 1;
        let message = error.to_string();
        self.aside.problems.push(IndexProblem { path, code: "unreadable", message });
    }
}

/// Files that went away, by content: one that turns up elsewhere was renamed.
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

    /// The former path of a file with this content. In another language its chunks would
    /// be others.
    fn take(&mut self, path: &str, version: &FileVersion) -> Option<String> {
        let language = |path: &str| Language::of(path, &[]);
        let paths = self.0.get_mut(&version.hash)?;
        let at = paths.iter().position(|from| language(from) == language(path))?;
        Some(paths.swap_remove(at))
    }
}
