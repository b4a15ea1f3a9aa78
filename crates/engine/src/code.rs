//! Code search: by query, and by similarity to other code.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use isolate::{Bulk, CallOptions, Pool, PoolSettings, Supervised};
use isolith_embed::DIMENSION;
use isolith_folder::Folder;
use isolith_protocol::{CODE_COLLECTION, CodeFound, CodeScope, FoundChunk, FoundPlace, SearchCode};
use isolith_roles::{FileToParse, ParseJob, Parser, ParserSettings};
use isolith_search::{CodeWeights, SearchMode};
use isolith_source::walk::{modified, read, read_file};
use isolith_types::{ChunkKind, Code, Degraded, Failure, FileVersion, Hint, ParsedFile};
use serde::Serialize;

use crate::failure::of_call;
use crate::index::{RootFolder, root_around};
use crate::open::{Engine, pool_settings};
use crate::opened::OpenFile;
use crate::search::Answered;

/// A code search.
#[derive(Debug, Clone)]
pub struct CodeSearch {
    /// A question, words or a name.
    pub text: String,
    /// How hits are ranked.
    pub mode: SearchMode,
    /// Maximum number of hits.
    pub limit: u32,
    /// Which code is searched.
    pub filter: CodeFilter,
    /// Weights of the ranking signals; for evaluations.
    pub weights: CodeWeights,
}

impl CodeSearch {
    /// A search for `text` with default settings.
    pub fn new(text: &str, limit: u32) -> Self {
        Self {
            text: text.to_owned(),
            mode: SearchMode::Hybrid,
            limit,
            filter: CodeFilter::default(),
            weights: CodeWeights::default(),
        }
    }
}

/// Restricts a code search. Empty lists allow everything.
#[derive(Debug, Clone, Default)]
pub struct CodeFilter {
    /// Languages, by any of their names.
    pub languages: Vec<String>,
    /// Patterns for the path relative to its root. Those that begin with `/`, `.` or `..` are
    /// paths on the disk.
    pub paths: Vec<String>,
    /// Kinds of chunks.
    pub kinds: Vec<ChunkKind>,
    /// Only chunks that define this symbol.
    pub symbol: Option<String>,
    /// Only tests, or no tests.
    pub tests: Option<bool>,
    /// Only files changed since, in milliseconds since 1970.
    pub since: Option<i64>,
    /// Only these roots.
    pub roots: Vec<PathBuf>,
    /// All roots, not only the one that the question is asked in.
    pub all_roots: bool,
    /// The folder that patterns beginning with `.` or `..` are relative to.
    pub base: Option<PathBuf>,
}

/// The result of a code search.
#[derive(Debug, Clone)]
pub struct CodeHits {
    /// Best first.
    pub hits: Vec<CodeHit>,
    /// Why the answer is incomplete.
    pub degraded: Option<Degraded>,
    /// Whether nothing fits the query well.
    pub weak: bool,
    /// Quoted parts of the query that nothing contains; all of them if no file contains them
    /// together.
    pub missing: Vec<String>,
    /// How long it took.
    pub took: Duration,
}

impl CodeHits {
    /// Says which quoted text nothing contains.
    pub fn missing_text(&self) -> Option<String> {
        let quoted: Vec<String> = self.missing.iter().map(|text| format!("\"{text}\"")).collect();
        (!quoted.is_empty()).then(|| format!("nothing contains {}", quoted.join(" and ")))
    }
}

/// A chunk that a search found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CodeHit {
    /// The root's folder.
    pub root: String,
    /// Relative to the root.
    pub path: String,
    /// The first line, from 1.
    pub start_line: u32,
    /// The last line.
    pub end_line: u32,
    /// The best matching definition.
    pub symbol: Option<String>,
    /// The line of that definition.
    pub symbol_line: Option<u32>,
    /// The enclosing definition.
    pub parent: Option<String>,
    /// The signature of the first definition.
    pub signature: Option<String>,
    /// The kind of most of its code.
    pub kind: ChunkKind,
    /// The file's language.
    pub language: String,
    /// The score; larger is better.
    pub score: f32,
    /// The code.
    pub snippet: String,
    /// The first line of the snippet.
    pub snippet_line: u32,
    /// Why it ranks where it does.
    pub why: Vec<String>,
    /// Further places in the same file, best first.
    pub also: Vec<FoundPlace>,
    /// Whether the file has changed since it was indexed; lines and text are then those of
    /// the indexed version.
    pub stale: bool,
}

impl Engine {
    /// Searches the indexed code.
    ///
    /// # Errors
    /// `not_found` if nothing is indexed, `bad_input` for an invalid filter; any error of a
    /// read.
    pub async fn search_code(&self, search: &CodeSearch) -> Result<CodeHits, Failure> {
        let query = SearchCode {
            text: search.text.clone(),
            vector: None,
            mode: search.mode,
            limit: search.limit,
            filter: CodeScope::default(),
            weights: search.weights.clone(),
        };
        self.find_code(query, &search.filter, Instant::now()).await
    }

    /// Finds code similar to that at a line of a file. The file need not be indexed.
    ///
    /// # Errors
    /// `not_found` if the file or line does not exist or nothing is indexed; any error of a
    /// read.
    pub async fn similar_code(
        &self,
        file: &Path,
        line: Option<u32>,
        filter: CodeFilter,
        limit: u32,
    ) -> Result<CodeHits, Failure> {
        let file = OpenFile::open(file).map_err(|failure| match failure.code {
            Code::NotFound => failure.with_hint("name a file and a line in it: src/main.rs:42"),
            _ => failure,
        })?;
        self.similar_to(&file, line, filter, limit).await
    }

    /// Same as [`Engine::similar_code`], for an open file.
    ///
    /// # Errors
    /// As [`Engine::similar_code`].
    pub async fn similar_to(
        &self,
        file: &OpenFile,
        line: Option<u32>,
        filter: CodeFilter,
        limit: u32,
    ) -> Result<CodeHits, Failure> {
        let started = Instant::now();
        let roots = self.root_folders().await?;
        if roots.is_empty() {
            return Err(nothing_indexed());
        }
        let example = self.example(file, line, &roots).await?;
        let query = SearchCode {
            text: String::new(),
            vector: Some(example.vector),
            mode: SearchMode::Vector,
            limit,
            filter: CodeScope { except: example.place, ..CodeScope::default() },
            weights: CodeWeights::default(),
        };
        self.find_code(query, &filter, started).await
    }

    /// Asks a query about what the filter selects.
    async fn find_code(
        &self,
        mut query: SearchCode,
        filter: &CodeFilter,
        started: Instant,
    ) -> Result<CodeHits, Failure> {
        self.load_quarantine().await;
        let except = query.filter.except.take();
        let (known, scope) = self.scope_of(filter).await?;
        query.filter = CodeScope { except: except.clone(), ..scope };
        let mut found = self.ask_for_code(query.clone()).await?;
        if found.roots != known {
            self.remember_roots(&found.roots);
            let scope = CodeScope { except, ..self.code_scope(filter, &found.roots)? };
            if scope != query.filter {
                query.filter = scope;
                found = self.ask_for_code(query.clone()).await?;
            }
        }
        let CodeFound { hits, degraded, weak, missing, .. } = found;
        let mut roots = self.allowed_roots(&found.roots);
        let asked = &query.filter.roots;
        roots.retain(|root| asked.is_empty() || asked.contains(&root.id));
        let degraded = degraded.or_else(|| unfinished(&roots));
        let mut fresh = Fresh::of(self, &roots);
        let hits = hits.into_iter().filter_map(|hit| fresh.shown(hit)).collect();
        Ok(CodeHits { hits, degraded, weak, missing, took: started.elapsed() })
    }

    async fn ask_for_code(&self, query: SearchCode) -> Result<CodeFound, Failure> {
        let Answered { reply: found, blamed } = self.ask_for(query).await?;
        if !found.indexed {
            return Err(nothing_indexed());
        }
        if found.searched.quarantined {
            self.fold_later(CODE_COLLECTION);
        }
        self.quarantine_segments(CODE_COLLECTION, &found.searched, blamed).await;
        Ok(found)
    }

    /// The chunk at a line of a file, from its current content on disk.
    async fn example(
        &self,
        file: &OpenFile,
        line: Option<u32>,
        roots: &[RootFolder],
    ) -> Result<Example, Failure> {
        let real = file.path();
        let unreadable = |error: &dyn std::fmt::Display| {
            Failure::new(Code::BadInput, format!("{} cannot be read: {error}", real.display()))
        };
        let opened = file.file().map_err(|error| unreadable(&error))?;
        let contents = read_file(&opened, MAX_EXAMPLE_BYTES).map_err(|error| unreadable(&error))?;
        let home = root_around(roots, real);
        let inner = home.and_then(|root| Some((root.id, real.strip_prefix(&root.folder).ok()?)));
        let path = inner.map_or(Path::new(real.file_name().unwrap_or_default()), |(_, path)| path);
        let path = path.to_string_lossy().into_owned();
        let hash = *blake3::hash(&contents.bytes).as_bytes();
        let length = contents.bytes.len() as u64;
        let job = ParseJob {
            files: vec![FileToParse { path: path.clone(), hash, length, secret: None }],
            contents: Bulk::from(contents.bytes),
            plain: false,
            // Secrets are fine here: the code is only compared, neither stored nor shown.
            include_secrets: true,
        };
        let (parsed, vectors) = self.parse_one(&job).await?;
        let line = line.unwrap_or_else(|| parsed.chunks.first().map_or(1, |it| it.start_line));
        let at = parsed.chunks.iter().position(|it| (it.start_line..=it.end_line).contains(&line));
        let vector = at.and_then(|at| vectors.chunks_exact(DIMENSION * 4).nth(at));
        let Some(vector) = vector else {
            let message = format!("{} has no code at line {line}", real.display());
            return Err(Failure::new(Code::NotFound, message).with_hint("name another line"));
        };
        let vector = Bulk::from(vector.to_vec());
        Ok(Example { vector, place: inner.map(|(root, _)| (root, path, line)) })
    }

    async fn parse_one(&self, job: &ParseJob) -> Result<(ParsedFile, Bulk), Failure> {
        let settings = PoolSettings { spares: 0, ..pool_settings(&self.inner.options, 1) };
        let parsers =
            Pool::<Parser>::start(&ParserSettings::default(), settings, self.inner.hooks.clone());
        let parsers = parsers.map_err(|error| of_call(&error))?;
        let options = CallOptions { idempotent: true, ..CallOptions::default() };
        let answer = parsers.call(job, options).await;
        parsers.kill();
        let parsed = answer.map_err(|error| of_call(&error))?.reply;
        let files: Vec<ParsedFile> = parsed.decode().unwrap_or_default();
        let file = files.into_iter().next().ok_or_else(|| {
            Failure::new(Code::Failed, "the parser's answer could not be understood")
        })?;
        Ok((file, parsed.vectors))
    }
}

/// Maximum size of a file for `similar`, in bytes.
const MAX_EXAMPLE_BYTES: u64 = 32 << 20;

/// The code to find similar code for.
struct Example {
    vector: Bulk,
    /// Its position in the index, to exclude it from its own results.
    place: Option<(u64, String, u32)>,
}

pub(crate) fn nothing_indexed() -> Failure {
    Failure::new(Code::NotFound, "no code is indexed yet").with_hint(Hint::IndexProject)
}

/// A notice if indexing of a root was never completed, or if it lost files to damage.
pub(crate) fn unfinished(roots: &[RootFolder]) -> Option<Degraded> {
    let root = roots.iter().find(|root| !root.finished)?;
    let folder = root.folder.display().to_string();
    let why = format!("indexing of {folder} was not finished");
    Some(Degraded { why, hint: Some(Hint::ResumeIndexing { folder }) })
}

/// Tells which files are unchanged since indexing; checks each file once.
struct Fresh<'a> {
    engine: &'a Engine,
    roots: &'a [RootFolder],
    /// The folders of roots with hits, if they can be opened.
    folders: HashMap<u64, Option<Folder>>,
    files: HashMap<(u64, String), bool>,
}

impl<'a> Fresh<'a> {
    fn of(engine: &'a Engine, roots: &'a [RootFolder]) -> Self {
        Self { engine, roots, folders: HashMap::new(), files: HashMap::new() }
    }

    /// Converts a hit; `None` if its root must not be shown.
    fn shown(&mut self, hit: FoundChunk) -> Option<CodeHit> {
        let root = self.roots.iter().find(|root| root.id == hit.root)?;
        let open = || self.engine.open_root(&root.folder).ok();
        let folder = self.folders.entry(root.id).or_insert_with(open);
        let fresh = *self.files.entry((hit.root, hit.path.clone())).or_insert_with(|| {
            folder.as_ref().is_some_and(|folder| is_fresh(folder, &hit.path, &hit.version))
        });
        Some(CodeHit {
            root: root.folder.to_string_lossy().into_owned(),
            path: hit.path,
            start_line: hit.start_line,
            end_line: hit.end_line,
            symbol_line: hit.symbol.as_ref().map(|symbol| symbol.line),
            symbol: hit.symbol.map(|symbol| symbol.name),
            parent: hit.parent,
            signature: hit.signature,
            kind: hit.kind,
            language: hit.language,
            score: hit.score,
            snippet: hit.text,
            snippet_line: hit.start_line,
            why: hit.why.reasons(),
            also: hit.also,
            stale: !fresh,
        })
    }
}

/// Whether a file still has its indexed content. It is read only if size and modification
/// time do not decide.
pub(crate) fn is_fresh(folder: &Folder, path: &str, version: &FileVersion) -> bool {
    let Ok(metadata) = folder.metadata(Path::new(path)) else { return false };
    if !metadata.is_file() || metadata.len() != version.size {
        return false;
    }
    if modified(&metadata) == version.modified {
        return true;
    }
    let contents = read(folder, path, version.size);
    contents.is_ok_and(|contents| *blake3::hash(&contents.bytes).as_bytes() == version.hash)
}
