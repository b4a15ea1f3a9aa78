//! Endpoints for code.

use isolith_engine::{
    CodeFilter, CodeHit, CodeHits, CodeSearch, FileCounts, FoundPlace, IndexProblem, IndexReport,
    MatchHit, MatchSearch, MatchTotals, Matches,
};
use isolith_types::{ChunkKind, Code, Failure, Moment};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::endpoint::{Endpoint, Verb};
use crate::arguments::check_query;
use crate::text::fit;
use crate::tool::{Call, Limits};
use crate::tools::code::{
    Kind, Mode, SearchSimilar, filter, find_code, find_similar, index_status, read_chunk,
};
use crate::tools::index::{IndexProject, run_index};
use crate::tools::matches::{MAX_CONTEXT, MatchCounts, find_all};

/// Maximum number of problems in an answer.
const MAX_PROBLEMS: usize = 1_000;

pub(super) fn endpoints() -> Vec<Endpoint> {
    let search = "Search code by a question, keywords or a name, or find every match of a text or a regular expression";
    vec![
        Endpoint::new((Verb::Get, "/code/search"), "search_code", search, search_code),
        Endpoint::new((Verb::Post, "/code/search"), "search_code_post", search, search_code),
        Endpoint::new(
            (Verb::Get, "/code/similar"),
            "search_similar",
            "Find code similar to that at a line of a file",
            search_similar,
        ),
        Endpoint::new(
            (Verb::Get, "/code/chunks"),
            "read_chunk",
            "Read whole chunks (functions, classes, sections) of an indexed file",
            read_chunk,
        ),
        Endpoint::new(
            (Verb::Get, "/code/index"),
            "index_status",
            "List the indexed folders",
            index_status,
        ),
        Endpoint::new(
            (Verb::Post, "/code/index"),
            "index_project",
            "Index the project's code, or update its index",
            index_project,
        )
        .job(),
    ]
}

/// A search of code. Only `exact` and `regex` take `ignore_case` and `context`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SearchCode {
    /// A question, keywords, a name, a text or a regular expression.
    query: String,
    /// How to search, by default hybrid. `exact` and `regex` find every match.
    mode: Option<Mode>,
    /// For exact and regex: whether upper and lower case are the same.
    ignore_case: Option<bool>,
    /// For exact and regex: lines around a match, up to 20.
    context: Option<u32>,
    /// Maximum number of hits: 1 to 1000, by default 10.
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<u32>,
    /// Only code in this language.
    language: Option<String>,
    /// Only files in this folder, or that match this glob.
    path: Option<String>,
    /// Only chunks of this kind.
    kind: Option<Kind>,
    /// Only chunks that define this symbol.
    symbol: Option<String>,
    /// Only tests, or no tests.
    tests: Option<bool>,
    /// Only files that changed at this date or later.
    #[schemars(with = "Option<String>")]
    since: Option<Moment>,
    /// Search all indexed folders, not only the project's.
    all_roots: Option<bool>,
    /// Tokens that the hits may take, estimated; the rest is left out.
    budget: Option<u32>,
}

async fn search_code(call: Call, arguments: SearchCode) -> Result<CodeAnswer, Failure> {
    let SearchCode { query, ignore_case, context, language, path, .. } = arguments;
    let filter = CodeFilter {
        kinds: arguments.kind.map(ChunkKind::from).into_iter().collect(),
        symbol: arguments.symbol,
        tests: arguments.tests,
        since: arguments.since.map(Moment::start),
        all_roots: arguments.all_roots.unwrap_or(false),
        ..filter(&call.server, language, path)?
    };
    let (query, limit) = (check_query(&query)?, call.limit(arguments.limit, Limits::RESULTS)?);
    let mut answer = match arguments.mode.unwrap_or_default().ranked() {
        Ok(mode) => {
            if ignore_case.is_some() || context.is_some() {
                let message = "only the modes exact and regex take ignore_case and context";
                return Err(Failure::new(Code::BadInput, message));
            }
            let search = CodeSearch { mode, filter, ..CodeSearch::new(query, limit) };
            CodeAnswer::ranked(find_code(&call, &search).await?, &call)
        }
        Err(regex) => {
            let search = MatchSearch {
                regex,
                ignore_case: ignore_case.unwrap_or(false),
                context: context.unwrap_or(0).min(MAX_CONTEXT),
                filter,
                ..MatchSearch::new(query, limit)
            };
            CodeAnswer::matches(find_all(&call, &search).await?, &call)
        }
    };
    answer.cut = fit(&mut answer.hits, arguments.budget);
    Ok(answer)
}

async fn search_similar(call: Call, arguments: SearchSimilar) -> Result<CodeAnswer, Failure> {
    Ok(CodeAnswer::ranked(find_similar(&call, arguments).await?, &call))
}

#[derive(Serialize, JsonSchema)]
struct CodeAnswer {
    hits: Vec<CodeHitAnswer>,
    /// For exact and regex: the number of all matches, in the answer or not.
    matches: Option<MatchCounts>,
    /// Why the answer is incomplete, or took longer than it should.
    degraded: Option<String>,
    /// Whether nothing fits the query well.
    weak: bool,
    /// Quoted parts of the query that nothing contains.
    missing: Vec<String>,
    /// What the budget left out.
    cut: Option<String>,
    took_ms: u64,
    /// Whether another store may hold the same code.
    notice: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct CodeHitAnswer {
    root: String,
    /// Relative to the root.
    path: String,
    start_line: u32,
    end_line: u32,
    /// For exact and regex: the line of the match.
    line: Option<u32>,
    /// For exact and regex: where the match begins on the line, in bytes from 1.
    column: Option<u32>,
    symbol: Option<String>,
    /// The line of the symbol.
    symbol_line: Option<u32>,
    /// The definition around the symbol.
    parent: Option<String>,
    signature: Option<String>,
    kind: String,
    language: String,
    score: f32,
    snippet: String,
    /// The line of the snippet's beginning.
    snippet_line: u32,
    /// Why it ranks where it does.
    why: Vec<String>,
    /// Further places in the same file, the best first.
    also: Vec<Place>,
    /// Whether the file has changed since it was indexed.
    stale: bool,
}

#[derive(Serialize, JsonSchema)]
struct Place {
    start_line: u32,
    end_line: u32,
    symbol: Option<String>,
}

impl From<FoundPlace> for Place {
    fn from(FoundPlace { start_line, end_line, symbol }: FoundPlace) -> Self {
        Self { start_line, end_line, symbol }
    }
}

impl CodeAnswer {
    fn ranked(found: CodeHits, call: &Call) -> Self {
        let CodeHits { hits, degraded, weak, missing, took } = found;
        Self {
            hits: hits.into_iter().map(CodeHitAnswer::from).collect(),
            matches: None,
            degraded: degraded.map(|it| it.worded(call.surface.words())),
            weak,
            missing,
            cut: None,
            took_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            notice: call.notice(),
        }
    }

    fn matches(found: Matches, call: &Call) -> Self {
        let Matches { hits, counts: MatchTotals { total, lines, files }, degraded, took } = found;
        Self {
            hits: hits.into_iter().map(CodeHitAnswer::from).collect(),
            matches: Some(MatchCounts { total, lines, files }),
            degraded: degraded.map(|it| it.worded(call.surface.words())),
            weak: false,
            missing: Vec::new(),
            cut: None,
            took_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            notice: call.notice(),
        }
    }
}

impl From<CodeHit> for CodeHitAnswer {
    fn from(hit: CodeHit) -> Self {
        Self {
            root: hit.root,
            path: hit.path,
            start_line: hit.start_line,
            end_line: hit.end_line,
            line: None,
            column: None,
            symbol: hit.symbol,
            symbol_line: hit.symbol_line,
            parent: hit.parent,
            signature: hit.signature,
            kind: hit.kind.name().to_owned(),
            language: hit.language,
            score: hit.score,
            snippet: hit.snippet,
            snippet_line: hit.snippet_line,
            why: hit.why,
            also: hit.also.into_iter().map(Place::from).collect(),
            stale: hit.stale,
        }
    }
}

impl From<MatchHit> for CodeHitAnswer {
    fn from(hit: MatchHit) -> Self {
        Self {
            root: hit.root,
            path: hit.path,
            start_line: hit.start_line,
            end_line: hit.end_line,
            line: Some(hit.line),
            column: Some(hit.column),
            symbol: hit.symbol,
            symbol_line: hit.symbol_line,
            parent: hit.parent,
            signature: hit.signature,
            kind: hit.kind.name().to_owned(),
            language: hit.language,
            score: hit.score,
            snippet: hit.snippet,
            snippet_line: hit.snippet_line,
            why: hit.why,
            also: Vec::new(),
            stale: hit.stale,
        }
    }
}

async fn index_project(call: Call, arguments: IndexProject) -> Result<IndexAnswer, Failure> {
    let (path, report) = run_index(call, arguments).await?;
    Ok(IndexAnswer::of(path.display().to_string(), report))
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "IndexReport")]
struct IndexAnswer {
    path: String,
    files: Files,
    /// Number of chunks in the index of this root.
    chunks: u64,
    /// Files that are not indexed, or not completely: the first 1000.
    problems: Vec<Problem>,
    seconds: Stages,
    peak_pss_bytes: u64,
    interrupted: bool,
}

/// Numbers of files; `seen` is the sum of all others but `removed`.
#[derive(Serialize, JsonSchema)]
struct Files {
    seen: u64,
    indexed: u64,
    unchanged: u64,
    removed: u64,
    renamed: u64,
    failed: u64,
    skipped: u64,
    pending: u64,
}

#[derive(Serialize, JsonSchema)]
struct Problem {
    path: String,
    code: String,
    message: String,
}

/// Durations.
#[derive(Serialize, JsonSchema)]
struct Stages {
    total: f64,
}

impl IndexAnswer {
    fn of(path: String, report: IndexReport) -> Self {
        let FileCounts { seen, indexed, unchanged, removed, renamed, failed, skipped, pending } =
            report.files;
        let problem = |it: IndexProblem| {
            let IndexProblem { path, code, message } = it;
            Problem { path, code: code.to_owned(), message }
        };
        Self {
            path,
            files: Files { seen, indexed, unchanged, removed, renamed, failed, skipped, pending },
            chunks: report.chunks,
            problems: report.problems.into_iter().take(MAX_PROBLEMS).map(problem).collect(),
            seconds: Stages { total: report.seconds.total },
            peak_pss_bytes: report.peak_pss_bytes,
            interrupted: report.interrupted,
        }
    }
}
