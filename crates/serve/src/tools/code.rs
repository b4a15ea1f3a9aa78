//! Tools for code: searching, reading and the status of the index.

use std::fmt::Write as _;
use std::path::Path;

use isolith_engine::{
    CodeFilter, CodeHit, CodeHits, CodeSearch, FoundPlace, IndexedChunk, IndexedFile, Root,
    SearchMode,
};
use isolith_types::{ChunkKind, Code, Failure, Moment, counted};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::matches::{MatchCounts, MatchQuery, find_matches, matches_text};
use crate::arguments::{NoArguments, check_length, check_query};
use crate::fresh::{reindex, search_fresh};
use crate::hints::for_agents;
use crate::server::Server;
use crate::text::{fit, lines_from, round, truncate};
use crate::tool::{Call, Effect, Limits, Surface, Tool, ToolAnswer};

/// Maximum size of a snippet; `read_chunk` returns the whole chunk.
pub(super) const MAX_SNIPPET_BYTES: usize = 1_600;

/// Maximum number of lines of a snippet in the text.
const MAX_SNIPPET_LINES: usize = 6;

/// Maximum size of the chunks that `read_chunk` returns.
const MAX_CHUNKS_BYTES: usize = 32 << 10;

/// The same, for programs.
const MAX_PROGRAM_BYTES: usize = 4 << 20;

const MAX_FILTER_BYTES: usize = 1_024;

pub(super) fn tools() -> Vec<Tool> {
    vec![
        Tool::new(
            "search_code",
            Effect::Read,
            "Find code by a question, keywords or a name. Use it before reading files. Modes exact and regex list every match. Not for callers: use graph_neighbours. Example: {\"query\":\"where are retries limited\"}",
            search_code,
        ),
        Tool::new(
            "search_similar",
            Effect::Read,
            "Find code that resembles the code at a line of a file. Use it to look for duplicates, or for other places to change alike. Not for a question: use search_code. Example: {\"path\":\"src/retry.rs\",\"line\":40}",
            search_similar,
        ),
        Tool::new(
            "read_chunk",
            Effect::Read,
            "Read whole functions, classes or sections of a file. Use it when search_code has shown where. Not to find code: use search_code. Example: {\"path\":\"src/retry.rs\",\"line\":40}",
            read_chunk,
        ),
        Tool::new(
            "index_status",
            Effect::Read,
            "List the indexed folders with file counts and times. Use it to see whether code is indexed and up to date. To index use index_project. Example: {}",
            index_status,
        ),
    ]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SearchCode {
    /// Question or name; "quoted text" must occur
    query: String,
    /// Default hybrid
    #[serde(default)]
    mode: Mode,
    /// exact, regex
    ignore_case: Option<bool>,
    /// Lines around
    context: Option<u32>,
    /// Default 10
    limit: Option<u32>,
    /// e.g. rust
    language: Option<String>,
    /// Folder or glob
    path: Option<String>,
    kind: Option<Kind>,
    /// Defines this name
    symbol: Option<String>,
    /// Only tests, or none
    tests: Option<bool>,
    /// YYYY-MM-DD
    #[schemars(with = "Option<String>")]
    since: Option<Moment>,
    /// Tokens
    budget: Option<u32>,
}

#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Mode {
    #[default]
    Hybrid,
    Keyword,
    Vector,
    Exact,
    Regex,
}

impl Mode {
    /// How to rank, or for a search for every match whether it is for a regular expression.
    pub(crate) fn ranked(self) -> Result<SearchMode, bool> {
        match self {
            Self::Hybrid => Ok(SearchMode::Hybrid),
            Self::Keyword => Ok(SearchMode::Keyword),
            Self::Vector => Ok(SearchMode::Vector),
            Self::Exact => Err(false),
            Self::Regex => Err(true),
        }
    }
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    Function,
    Method,
    Class,
    Module,
    Section,
    Text,
}

impl From<Kind> for ChunkKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Function => Self::Function,
            Kind::Method => Self::Method,
            Kind::Class => Self::Class,
            Kind::Module => Self::Module,
            Kind::Section => Self::Section,
            Kind::Text => Self::Text,
        }
    }
}

async fn search_code(call: Call, arguments: SearchCode) -> Result<CodeResults, Failure> {
    let SearchCode { query, mode, ignore_case, context, limit, language, path, .. } = arguments;
    let filter = CodeFilter {
        kinds: arguments.kind.map(ChunkKind::from).into_iter().collect(),
        symbol: arguments.symbol,
        tests: arguments.tests,
        since: arguments.since.map(Moment::start),
        ..filter(&call.server, language, path)?
    };
    let mut results = match mode.ranked() {
        Err(regex) => {
            let (pattern, ignore_case) = (query, ignore_case.unwrap_or(false));
            let query = MatchQuery { pattern, regex, ignore_case, limit, context, filter };
            find_matches(call, query).await?
        }
        Ok(mode) => {
            let limit = call.limit(limit, Limits::RESULTS)?;
            let search =
                CodeSearch { mode, filter, ..CodeSearch::new(check_query(&query)?, limit) };
            CodeResults::of(find_code(&call, &search).await?, &call)
        }
    };
    results.cut = fit(&mut results.hits, arguments.budget);
    Ok(results)
}

/// Searches, after what has changed is indexed again.
pub(crate) async fn find_code(call: &Call, search: &CodeSearch) -> Result<CodeHits, Failure> {
    let engine = call.server.stores().code()?;
    call.server.wait_for_watchers().await;
    search_fresh(&engine, || engine.search_code(search)).await
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SearchSimilar {
    /// File, relative to the project
    path: String,
    /// Default: the first chunk
    line: Option<u32>,
    /// Default 10
    limit: Option<u32>,
    /// e.g. rust
    language: Option<String>,
}

async fn search_similar(call: Call, arguments: SearchSimilar) -> Result<CodeResults, Failure> {
    Ok(CodeResults::of(find_similar(&call, arguments).await?, &call))
}

/// Finds similar code, after what has changed is indexed again.
pub(crate) async fn find_similar(
    call: &Call,
    arguments: SearchSimilar,
) -> Result<CodeHits, Failure> {
    let SearchSimilar { path, line, limit, language } = arguments;
    let filter = filter(&call.server, language, None)?;
    let limit = call.limit(limit, Limits::RESULTS)?;
    let file = call.server.stores().confinement().file(&path)?;
    let engine = call.server.stores().code()?;
    call.server.wait_for_watchers().await;
    search_fresh(&engine, || engine.similar_to(&file, line, filter.clone(), limit)).await
}

pub(crate) fn filter(
    server: &Server,
    language: Option<String>,
    path: Option<String>,
) -> Result<CodeFilter, Failure> {
    for (name, text) in [("language", &language), ("path", &path)] {
        check_length(name, text.as_deref().unwrap_or_default(), MAX_FILTER_BYTES)?;
    }
    let (languages, paths) = (language.into_iter().collect(), path.into_iter().collect());
    let base = server.stores().project_folder();
    Ok(CodeFilter { languages, paths, base, ..CodeFilter::default() })
}

#[derive(Serialize, JsonSchema)]
pub(super) struct CodeResults {
    pub(super) hits: Vec<CodeResult>,
    /// Of all matches, for exact and regex
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub(super) matches: Option<MatchCounts>,
    pub(super) degraded: Option<String>,
    pub(super) weak: bool,
    /// Says which quoted text nothing contains
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub(super) missing: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) notice: Option<String>,
    /// Says what the budget left out
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub(super) cut: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct CodeResult {
    pub(super) root: String,
    pub(super) path: String,
    pub(super) start_line: u32,
    pub(super) end_line: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub(super) line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub(super) column: Option<u32>,
    pub(super) symbol: Option<String>,
    pub(super) kind: String,
    pub(super) score: f64,
    pub(super) snippet: String,
    pub(super) why: Vec<String>,
    pub(super) also: Vec<String>,
    pub(super) stale: bool,
    /// Number of snippet lines before the symbol.
    #[serde(skip)]
    pub(super) before: usize,
}

/// A further place in the file of a hit, such as `40-52 sum`.
fn place(FoundPlace { start_line, end_line, symbol }: FoundPlace) -> String {
    let symbol = symbol.map(|symbol| format!(" {symbol}")).unwrap_or_default();
    format!("{start_line}-{end_line}{symbol}")
}

impl CodeResults {
    fn of(found: CodeHits, call: &Call) -> Self {
        let missing = found.missing_text();
        let CodeHits { hits, degraded, weak, .. } = found;
        let degraded = degraded.map(|it| it.worded(for_agents));
        let hits = hits.into_iter().map(CodeResult::from).collect();
        let notice = call.notice();
        Self { hits, matches: None, degraded, weak, missing, notice, cut: None }
    }
}

impl From<CodeHit> for CodeResult {
    fn from(hit: CodeHit) -> Self {
        let before = hit.symbol_line.map_or(0, |line| line.saturating_sub(hit.snippet_line));
        Self {
            before: before as usize,
            root: hit.root,
            path: hit.path,
            start_line: hit.start_line,
            end_line: hit.end_line,
            line: None,
            column: None,
            symbol: hit.symbol,
            kind: hit.kind.name().to_owned(),
            score: round(f64::from(hit.score)),
            snippet: truncate(&hit.snippet, MAX_SNIPPET_BYTES).to_owned(),
            why: hit.why,
            also: hit.also.into_iter().map(place).collect(),
            stale: hit.stale,
        }
    }
}

impl ToolAnswer for CodeResults {
    fn text(&self) -> String {
        let mut text = match (&self.matches, self.hits.is_empty(), self.weak) {
            (Some(counts), ..) => matches_text(&self.hits, counts),
            (None, true, _) => self.missing.as_deref().unwrap_or("nothing found").to_owned() + "\n",
            (None, false, true) => "nothing fits well; these are the closest matches\n".to_owned(),
            (None, false, false) => String::new(),
        };
        for hit in self.hits.iter().filter(|_| self.matches.is_none()) {
            let path = Path::new(&hit.root).join(&hit.path);
            let _ = write!(text, "{}:{}-{}", path.display(), hit.start_line, hit.end_line);
            if let Some(symbol) = &hit.symbol {
                let _ = write!(text, " {symbol}");
            }
            let stale =
                if hit.stale { ", stale: the file has changed since it was indexed" } else { "" };
            let _ = writeln!(text, " ({}, {:.2}{stale})", hit.kind, hit.score);
            for line in lines_from(&hit.snippet, hit.before, MAX_SNIPPET_LINES) {
                let _ = writeln!(text, "  {line}");
            }
            for also in &hit.also {
                let _ = writeln!(text, "  also {also}");
            }
        }
        if let Some(degraded) = &self.degraded {
            let _ = writeln!(text, "degraded: {degraded}");
        }
        for note in [&self.cut, &self.notice].into_iter().flatten() {
            let _ = writeln!(text, "{note}");
        }
        text
    }

    fn is_trusted(&self) -> bool {
        self.hits.is_empty()
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReadChunk {
    /// File in the project
    path: String,
    /// Default 1
    line: Option<u32>,
    /// Default: one chunk
    end_line: Option<u32>,
}

pub(crate) async fn read_chunk(call: Call, arguments: ReadChunk) -> Result<FileChunks, Failure> {
    let line = arguments.line.unwrap_or(1);
    let found = indexed_file(&call.server, &arguments.path).await?;
    let to = arguments.end_line.unwrap_or(line).max(line);
    match call.surface {
        Surface::Agent => FileChunks::of(found, line, to, MAX_CHUNKS_BYTES),
        Surface::Program => FileChunks::of(found, line, to, MAX_PROGRAM_BYTES),
    }
}

/// The chunks of a file, up to the maximum size of an answer.
pub(crate) async fn file_chunks(server: &Server, path: &str) -> Result<FileChunks, Failure> {
    FileChunks::of(indexed_file(server, path).await?, 1, u32::MAX, MAX_CHUNKS_BYTES)
}

async fn indexed_file(server: &Server, path: &str) -> Result<IndexedFile, Failure> {
    let file = server.stores().confinement().resolve(path)?.path;
    let engine = server.stores().code()?;
    let found = engine.indexed_file(&file).await?;
    if !found.stale {
        return Ok(found);
    }
    reindex(&engine, [(found.root.into(), file.clone())]).await;
    engine.indexed_file(&file).await
}

/// The answer of `read_chunk`.
#[derive(Serialize, JsonSchema)]
pub(crate) struct FileChunks {
    root: String,
    path: String,
    language: String,
    chunks: Vec<ChunkText>,
    stale: bool,
    truncated: bool,
}

#[derive(Serialize, JsonSchema)]
struct ChunkText {
    start_line: u32,
    end_line: u32,
    kind: String,
    symbol: Option<String>,
    text: String,
}

impl FileChunks {
    /// The chunks that overlap some lines, or the next chunk if there is none; up to `max` bytes.
    fn of(file: IndexedFile, from: u32, to: u32, max: usize) -> Result<Self, Failure> {
        let IndexedFile { root, path, language, chunks, stale } = file;
        let next = chunks.iter().find(|chunk| chunk.end_line >= from);
        let Some(next) = next.map(|chunk| chunk.start_line) else {
            let last = chunks.last().map_or(0, |chunk| chunk.end_line);
            let message = format!("{path} has no code at line {from}; its last line is {last}");
            return Err(Failure::new(Code::NotFound, message));
        };
        let (mut remaining, mut truncated) = (max, false);
        let mut shown = Vec::new();
        for chunk in chunks.into_iter().skip_while(|it| it.start_line < next) {
            if chunk.start_line > to.max(next) {
                break;
            }
            let (chunk, is_truncated) = ChunkText::of(chunk, remaining);
            remaining -= chunk.text.len();
            shown.push(chunk);
            truncated = is_truncated;
            if truncated {
                break;
            }
        }
        Ok(Self { root, path, language, chunks: shown, stale, truncated })
    }
}

impl ChunkText {
    /// The first `max` bytes of a chunk, and whether it was truncated.
    fn of(chunk: IndexedChunk, max: usize) -> (Self, bool) {
        let IndexedChunk { start_line, end_line, kind, symbol, text } = chunk;
        let shown = truncate(&text, max).to_owned();
        let truncated = shown.len() < text.len();
        let kind = kind.name().to_owned();
        (Self { start_line, end_line, kind, symbol, text: shown }, truncated)
    }
}

impl ToolAnswer for FileChunks {
    fn text(&self) -> String {
        let stale =
            if self.stale { " (stale: the file has changed since it was indexed)" } else { "" };
        let mut text = format!("{}/{}{stale}\n", self.root, self.path);
        for chunk in &self.chunks {
            let _ = writeln!(text, "{}-{}:\n{}", chunk.start_line, chunk.end_line, chunk.text);
        }
        if self.truncated {
            text.push_str("truncated: request fewer lines\n");
        }
        text
    }
}

pub(crate) async fn index_status(call: Call, _: NoArguments) -> Result<IndexOverview, Failure> {
    let engine = call.server.stores().code()?;
    let indexed = |root: Root| IndexedRoot {
        watched: call.server.watch_state(&root.folder).name().to_owned(),
        root: root.folder.display().to_string(),
        files: root.files,
        chunks: root.chunks,
        indexed_at: root.indexed_at.map(|at| Moment::instant(at).to_string()),
    };
    let roots = engine.roots().await?.into_iter().map(indexed).collect();
    Ok(IndexOverview { store: engine.folder().display().to_string(), roots })
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct IndexOverview {
    store: String,
    roots: Vec<IndexedRoot>,
}

#[derive(Serialize, JsonSchema)]
struct IndexedRoot {
    root: String,
    files: u64,
    chunks: u64,
    /// `None` until the first run has finished.
    indexed_at: Option<String>,
    watched: String,
}

impl ToolAnswer for IndexOverview {
    const TRUSTED: bool = true;

    fn text(&self) -> String {
        let mut text = String::new();
        for IndexedRoot { root, files, chunks, indexed_at, watched } in &self.roots {
            let when = match indexed_at {
                Some(at) => format!("indexed {at}"),
                None => "first index not finished".to_owned(),
            };
            let files = counted(*files, "file");
            let chunks = counted(*chunks, "chunk");
            let _ = writeln!(text, "{root}: {files}, {chunks}, {when}, watched: {watched}");
        }
        if text.is_empty() { "nothing is indexed: call index_project".to_owned() } else { text }
    }
}

#[cfg(test)]
mod tests {
    use isolith_types::ChunkKind;

    use super::*;

    fn file(chunks: &[(u32, u32, usize)]) -> IndexedFile {
        let chunk = |&(start_line, end_line, bytes): &(u32, u32, usize)| IndexedChunk {
            start_line,
            end_line,
            kind: ChunkKind::Function,
            symbol: None,
            text: "x".repeat(bytes),
        };
        IndexedFile {
            root: "/root".to_owned(),
            path: "a.rs".to_owned(),
            language: "rust".to_owned(),
            chunks: chunks.iter().map(chunk).collect(),
            stale: false,
        }
    }

    #[test]
    fn hits_are_shown_in_a_few_lines() {
        let hit = CodeResult {
            root: "/root".to_owned(),
            path: "src/a.rs".to_owned(),
            start_line: 3,
            end_line: 20,
            line: None,
            column: None,
            symbol: Some("count".to_owned()),
            kind: "function".to_owned(),
            score: 0.876,
            snippet: "use x;\n\nfn count() {\n    1\n}".to_owned(),
            why: vec!["keywords 0.5".to_owned()],
            also: vec!["40-52 sum".to_owned()],
            stale: true,
            before: 2,
        };
        let degraded = Some("half of it".to_owned());
        let notice = Some("another store".to_owned());
        let results = CodeResults {
            hits: vec![hit],
            matches: None,
            degraded,
            weak: true,
            missing: None,
            notice,
            cut: Some("1 of 2 results left out".to_owned()),
        };
        insta::assert_snapshot!(results.text(), @r"
        nothing fits well; these are the closest matches
        /root/src/a.rs:3-20 count (function, 0.88, stale: the file has changed since it was indexed)
          fn count() {
              1
          }
          also 40-52 sum
        degraded: half of it
        1 of 2 results left out
        another store
        ");
        let nothing = |missing: Option<&str>| CodeResults {
            hits: Vec::new(),
            matches: None,
            degraded: None,
            weak: true,
            missing: missing.map(str::to_owned),
            notice: None,
            cut: None,
        };
        assert_eq!(nothing(None).text(), "nothing found\n");
        assert_eq!(nothing(Some("nothing contains \"x\"")).text(), "nothing contains \"x\"\n");
    }

    #[test]
    fn lines_are_mapped_to_chunks() {
        let chunks = [(1, 4, 10), (6, 9, 10), (10, 12, 10)];
        let table = [
            ((1, 1), Some(vec![1])),
            ((4, 6), Some(vec![1, 6])),
            ((5, 5), Some(vec![6])),
            ((2, 99), Some(vec![1, 6, 10])),
            ((12, 12), Some(vec![10])),
            ((13, 13), None),
        ];
        for ((from, to), expected) in table {
            let found = FileChunks::of(file(&chunks), from, to, MAX_CHUNKS_BYTES).ok();
            let starts = found.map(|it| it.chunks.iter().map(|it| it.start_line).collect());
            assert_eq!(starts, expected, "{from}-{to}");
        }
    }

    #[test]
    fn overlong_answers_are_truncated_and_marked() {
        let long = file(&[(1, 1, MAX_CHUNKS_BYTES - 5), (2, 2, 10), (3, 3, 10)]);
        let found = FileChunks::of(long, 1, 3, MAX_CHUNKS_BYTES).unwrap();
        assert!(found.truncated);
        assert_eq!(found.chunks.iter().map(|it| it.text.len()).sum::<usize>(), MAX_CHUNKS_BYTES);
        assert_eq!(found.chunks.len(), 2);
    }
}
