//! Exact search: every match of a text or a regular expression in indexed files.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use isolith_folder::Folder;
use isolith_protocol::{
    CODE_COLLECTION, EnclosingSymbol, FindMatches, FoundMatch, MatchCounts, MatchesFound, Pattern,
    PatternSyntax,
};
use isolith_types::{ChunkKind, Degraded, Failure};
use serde::Serialize;

use crate::code::{CodeFilter, is_fresh, nothing_indexed, unfinished};
use crate::index::RootFolder;
use crate::open::Engine;
use crate::search::Answered;

/// A search for all matches.
#[derive(Debug, Clone)]
pub struct MatchSearch {
    /// A text or a regular expression.
    pub pattern: String,
    /// Whether the pattern is a regular expression.
    pub regex: bool,
    /// Whether upper and lower case are the same.
    pub ignore_case: bool,
    /// Maximum number of hits; all matches are counted.
    pub limit: u32,
    /// Lines before and after a match in its snippet.
    pub context: u32,
    /// Whether a file is one hit, with its first match.
    pub by_file: bool,
    /// Which code is searched.
    pub filter: CodeFilter,
}

impl MatchSearch {
    /// A search for a text, with default settings.
    pub fn new(pattern: &str, limit: u32) -> Self {
        Self {
            pattern: pattern.to_owned(),
            regex: false,
            ignore_case: false,
            limit,
            context: 0,
            by_file: false,
            filter: CodeFilter::default(),
        }
    }
}

/// The result of a search for all matches.
#[derive(Debug, Clone)]
pub struct Matches {
    /// By path and line.
    pub hits: Vec<MatchHit>,
    /// How much there is in total.
    pub counts: MatchTotals,
    /// Why the answer is incomplete, or took longer than it should.
    pub degraded: Option<Degraded>,
    /// How long it took.
    pub took: Duration,
}

/// Total numbers of matches, shown or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct MatchTotals {
    /// Matches.
    pub total: u64,
    /// Lines on which a match begins.
    pub lines: u64,
    /// Files with a match.
    pub files: u64,
}

/// A line on which a match begins. The fields of ranked hits mean the same.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MatchHit {
    /// The root's folder.
    pub root: String,
    /// Relative to the root.
    pub path: String,
    /// The line of the match, from 1.
    pub line: u32,
    /// Where on the line the first match begins, in bytes from 1.
    pub column: u32,
    /// Where the matches on the line begin.
    pub columns: Vec<u32>,
    /// The number of matches on the line, or in the file if a file is one hit.
    pub matches: u64,
    /// The last line of the match.
    pub last_line: u32,
    /// The first line of the chunk that it is in.
    pub start_line: u32,
    /// The chunk's last line.
    pub end_line: u32,
    /// The innermost definition around the match.
    pub symbol: Option<String>,
    /// The line of that definition.
    pub symbol_line: Option<u32>,
    /// The definition around that one.
    pub parent: Option<String>,
    /// The signature of the innermost definition.
    pub signature: Option<String>,
    /// The kind of most of the chunk's code.
    pub kind: ChunkKind,
    /// The file's language.
    pub language: String,
    /// The same for all: matches are not ranked.
    pub score: f32,
    /// The lines of the match, and those around it.
    pub snippet: String,
    /// The first line of the snippet.
    pub snippet_line: u32,
    /// Whether lines of the snippet were shortened.
    pub shortened: bool,
    /// Why it was found.
    pub why: Vec<String>,
    /// Empty: every match is a hit of its own.
    pub also: Vec<()>,
    /// Whether the file has changed since it was indexed; lines and text are then those of the
    /// indexed version.
    pub stale: bool,
    /// Where the matches are on the line, in bytes from 0.
    #[serde(skip)]
    pub spans: Vec<(u32, u32)>,
}

impl Engine {
    /// Finds all matches in the indexed code.
    ///
    /// # Errors
    /// `not_found` if nothing is indexed, `bad_input` for an invalid pattern or filter; any error
    /// of a read.
    pub async fn find_matches(&self, search: &MatchSearch) -> Result<Matches, Failure> {
        let started = Instant::now();
        let syntax = if search.regex { PatternSyntax::Regex } else { PatternSyntax::Literal };
        let (text, ignore_case) = (search.pattern.clone(), search.ignore_case);
        self.load_quarantine().await;
        let (known, scope) = self.scope_of(&search.filter).await?;
        let mut query = FindMatches {
            pattern: Pattern { text, syntax, ignore_case },
            filter: scope,
            limit: search.limit,
            context: search.context,
            by_file: search.by_file,
        };
        let mut found = self.ask_for_matches(query.clone()).await?;
        if found.roots != known {
            self.remember_roots(&found.roots);
            let scope = self.code_scope(&search.filter, &found.roots)?;
            if scope != query.filter {
                query.filter = scope;
                found = self.ask_for_matches(query.clone()).await?;
            }
        }
        let MatchesFound { hits, counts, degraded, .. } = found;
        let mut roots = self.allowed_roots(&found.roots);
        let asked = &query.filter.roots;
        roots.retain(|root| asked.is_empty() || asked.contains(&root.id));
        let degraded = degraded.or_else(|| unfinished(&roots));
        let mut fresh = FreshFiles { engine: self, roots: &roots, folders: HashMap::new() };
        let why = if search.regex { "matches the regex" } else { "contains the text" };
        let hits = hits.into_iter().filter_map(|hit| fresh.shown(hit, why)).collect();
        Ok(Matches { hits, counts: counts.into(), degraded, took: started.elapsed() })
    }

    async fn ask_for_matches(&self, query: FindMatches) -> Result<MatchesFound, Failure> {
        let Answered { reply: found, blamed } = self.ask_for(query).await?;
        if !found.indexed {
            return Err(nothing_indexed());
        }
        if found.searched.quarantined || found.unsegmented {
            self.fold_later(CODE_COLLECTION);
        }
        self.quarantine_segments(CODE_COLLECTION, &found.searched, blamed).await;
        Ok(found)
    }
}

impl From<MatchCounts> for MatchTotals {
    fn from(counts: MatchCounts) -> Self {
        Self { total: counts.matches, lines: counts.lines, files: counts.files }
    }
}

/// The path of a file, and whether it is unchanged.
type LastFile = (String, bool);

/// Tells which files are unchanged since indexing. Hits of a file are adjacent.
struct FreshFiles<'a> {
    engine: &'a Engine,
    roots: &'a [RootFolder],
    /// The folders of roots with hits, if they can be opened, and the last file.
    folders: HashMap<u64, (Option<Folder>, Option<LastFile>)>,
}

impl FreshFiles<'_> {
    /// Converts a hit; `None` if its root must not be shown.
    fn shown(&mut self, hit: FoundMatch, why: &str) -> Option<MatchHit> {
        let root = self.roots.iter().find(|root| root.id == hit.root)?;
        let open = || (self.engine.open_root(&root.folder).ok(), None);
        let (folder, last) = self.folders.entry(root.id).or_insert_with(open);
        let fresh = match last {
            Some((path, fresh)) if *path == hit.path => *fresh,
            _ => {
                let is_fresh = |folder: &Folder| is_fresh(folder, &hit.path, &hit.version);
                let fresh = folder.as_ref().is_some_and(is_fresh);
                *last = Some((hit.path.clone(), fresh));
                fresh
            }
        };
        let symbol = hit.symbol.as_ref();
        let columns: Vec<u32> = hit.spans.iter().map(|(start, _)| start + 1).collect();
        Some(MatchHit {
            root: root.folder.to_string_lossy().into_owned(),
            path: hit.path,
            line: hit.line,
            column: columns.first().copied().unwrap_or(1),
            columns,
            matches: hit.matches,
            last_line: hit.last_line,
            start_line: hit.start_line,
            end_line: hit.end_line,
            symbol_line: symbol.and_then(|symbol| symbol.line),
            parent: symbol.and_then(|symbol| symbol.parent.clone()),
            signature: symbol.and_then(|symbol| symbol.signature.clone()),
            symbol: hit.symbol.map(|EnclosingSymbol { name, .. }| name),
            kind: hit.kind,
            language: hit.language,
            score: 1.0,
            snippet: hit.snippet,
            snippet_line: hit.snippet_line,
            shortened: hit.shortened,
            why: vec![why.to_owned()],
            also: Vec::new(),
            stale: !fresh,
            spans: hit.spans,
        })
    }
}
