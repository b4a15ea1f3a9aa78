//! An index run without workers, which calls the roles' code in this process. The difference to a
//! normal run is the cost of isolation.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use isolate::{Bulk, Context, InWorker, Refusal, Role};
use isolith_embed::{DIMENSION, model_name};
use isolith_protocol::{
    AddRoot, CODE_COLLECTION, FinishIndex, Key, LinkFiles, PutFiles, Tidy, Write, WriteOperation,
    code_spec,
};
use isolith_roles::{
    BuildJob, FileToParse, FoldJob, ParseJob, Parser, ParserSettings, StoreBuilder, StoreSettings,
    StoreWriter, WriteJob,
};
use isolith_store::{Durability, TruthId};
use serde::{Deserialize, Serialize};

use super::files::Files;
use super::front::own_cpu_time;

/// The batch size of the product.
const BATCH_BYTES: usize = 384 << 10;
const BATCH_FILES: usize = 64;

const TIMEOUT: Duration = Duration::from_secs(1800);

/// CPU time by stage, in seconds.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct StageTimes {
    pub(super) walk: f64,
    pub(super) read: f64,
    pub(super) parse: f64,
    pub(super) store: f64,
    pub(super) link: f64,
    pub(super) fold: f64,
}

pub(super) fn index(code: &Path, store: &Path) -> Result<StageTimes> {
    DirBuilder::new().recursive(true).mode(0o700).create(store)?;
    let mut run = IndexRun::start(code, store)?;
    let mut lap = Lap(own_cpu_time());
    let files = Files::of(code)?;
    run.stages.walk = lap.seconds();
    let mut batch = Batch::default();
    for found in &files.found {
        batch.read(&files, &found.path)?;
        run.stages.read += lap.seconds();
        if batch.contents.len() >= BATCH_BYTES || batch.files.len() >= BATCH_FILES {
            run.put(std::mem::take(&mut batch), &mut lap)?;
        }
    }
    run.put(batch, &mut lap)?;
    run.finish(lap)
}

/// Measures the CPU time since the last call of [`Lap::seconds`].
struct Lap(Duration);

impl Lap {
    fn seconds(&mut self) -> f64 {
        let now = own_cpu_time();
        let used = now - std::mem::replace(&mut self.0, now);
        used.as_secs_f64()
    }
}

#[derive(Default)]
struct Batch {
    files: Vec<FileToParse>,
    ages: Vec<i64>,
    contents: Vec<u8>,
}

impl Batch {
    fn read(&mut self, files: &Files, path: &str) -> Result<()> {
        let contents = files.read(path)?;
        let length = contents.bytes.len() as u64;
        let hash = *blake3::hash(&contents.bytes).as_bytes();
        self.files.push(FileToParse { path: path.to_owned(), hash, length, secret: None });
        self.ages.push(contents.modified);
        self.contents.extend(contents.bytes);
        Ok(())
    }
}

struct IndexRun {
    parser: Parser,
    writer: StoreWriter,
    settings: StoreSettings,
    root: u64,
    /// The key of the last write, which is done.
    confirmed: Vec<Key>,
    stages: StageTimes,
}

impl IndexRun {
    fn start(code: &Path, store: &Path) -> Result<Self> {
        let token = InWorker::in_process();
        let settings = StoreSettings {
            folder: store.to_owned(),
            truth: TruthId::Any,
            durability: Durability::Full,
            create: true,
        };
        let mut run = Self {
            parser: Parser::warm_up(ParserSettings::default(), token).map_err(refused)?,
            writer: StoreWriter::warm_up(settings.clone(), token).map_err(refused)?,
            settings,
            root: 0,
            confirmed: Vec::new(),
            stages: StageTimes::default(),
        };
        let spec = code_spec(DIMENSION as u32, model_name());
        let path = code.to_string_lossy().into_owned();
        let added = run.write(AddRoot { path, spec, worktree: None })?;
        run.root = added.root.id;
        Ok(run)
    }

    fn put(&mut self, batch: Batch, lap: &mut Lap) -> Result<()> {
        if batch.files.is_empty() {
            return Ok(());
        }
        let Batch { files, ages, contents } = batch;
        let job = ParseJob {
            files,
            contents: Bulk::from(contents),
            plain: false,
            include_secrets: false,
        };
        let parsed = self.parser.handle(job, &Context::in_process(TIMEOUT));
        self.stages.parse += lap.seconds();
        self.write(PutFiles {
            root: self.root,
            files: parsed.files,
            ages,
            dimension: DIMENSION as u32,
            vectors: parsed.vectors,
            model: model_name().to_owned(),
        })?;
        self.stages.store += lap.seconds();
        Ok(())
    }

    fn finish(mut self, mut lap: Lap) -> Result<StageTimes> {
        while self.write(LinkFiles { root: self.root })?.more {}
        self.stages.link = lap.seconds();
        self.write(FinishIndex { root: self.root })?;
        self.stages.store += lap.seconds();
        let token = InWorker::in_process();
        let mut builder = StoreBuilder::warm_up(self.settings.clone(), token).map_err(refused)?;
        let collection = CODE_COLLECTION.to_owned();
        let key = random_key();
        let job =
            BuildJob::Fold(FoldJob { collection, ignore_threshold: true, rebuild: false, key });
        builder.handle(job, &Context::in_process(TIMEOUT))?;
        self.stages.fold = lap.seconds();
        self.write(Tidy)?;
        Ok(self.stages)
    }

    fn write<O: WriteOperation>(&mut self, operation: O) -> Result<O::Reply> {
        let key = random_key();
        let confirmed = std::mem::replace(&mut self.confirmed, vec![key]);
        let job = WriteJob {
            writes: vec![Write { key, keep: false, action: operation.into() }],
            confirmed,
            rest: false,
            time: None,
        };
        let mut done = self.writer.handle(job, &Context::in_process(TIMEOUT))?;
        let done = done.pop().context("the write has no reply")??;
        O::reply_from(done.reply).context("unexpected reply")
    }
}

fn random_key() -> Key {
    Key(fastrand::u128(..).to_le_bytes())
}

fn refused(refusal: Refusal) -> anyhow::Error {
    anyhow!("{}: {}", refusal.code, refusal.message)
}
