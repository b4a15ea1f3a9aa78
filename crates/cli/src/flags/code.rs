//! Flags of the commands that deal with code.

use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::{Args, ValueEnum};
use isolith_config::{Key, Layers, Value, parse_size};
use isolith_engine::{CodeFilter, IndexOptions, SearchMode, StorePlace};
use isolith_types::{ChunkKind, Code, Failure, Moment};

use super::settings::{Context, working_folder};
use crate::code::{IndexCommand, Listing, MatchPlan, SearchInput, SearchPlan, WatchPlan};

/// Results of a search by default.
pub(super) const DEFAULT_RESULTS: u32 = 10;

/// Maximum number of results of a ranked search.
const MAX_RANKED: u32 = 1_000;

#[derive(Args)]
pub(super) struct TypedIndex {
    /// Folder to index [default: the working folder]
    ///
    /// If it lies inside an indexed folder, only that part is updated. A folder with a .git of
    /// its own (a repository or a linked worktree, but not a submodule) is indexed by itself,
    /// and so is one that ignore rules of the folders above exclude.
    pub(super) path: Option<PathBuf>,
    /// Index all files again, changed or not
    #[arg(long)]
    rebuild: bool,
    /// Recompute all vectors with the built-in model of this version
    #[arg(long)]
    reembed: bool,
    /// Move the store aside and start a new one
    ///
    /// For a store that is refused because it came with a clone or an archive. The old store
    /// is kept.
    #[arg(long)]
    fresh: bool,
    /// Remove the folder from the index; its files stay
    #[arg(long, conflicts_with_all = ["rebuild", "reembed", "fresh", "no_wait", "max_file_size", "include_secrets"])]
    remove: bool,
    /// Merge the folder's own store into that of a folder above
    ///
    /// For a folder that was indexed before the one that contains it. Its code is indexed in
    /// the store above; its own store is moved aside and kept. Refused if it holds anything
    /// but code.
    #[arg(long, conflicts_with_all = ["rebuild", "reembed", "fresh", "remove"])]
    pub(super) merge: bool,
    /// Do not wait for another process that is indexing the folder: exit with 75
    #[arg(long)]
    no_wait: bool,
    /// Size of the largest file to index, for example 500K [default: index.max_file_size, or 1M]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    max_file_size: Option<u64>,
    /// Also index files that look like secrets: keys, passwords, tokens
    ///
    /// For this run only: a later run without it removes them from the index.
    #[arg(long)]
    include_secrets: bool,
}

#[derive(Args)]
pub(super) struct TypedSearch {
    /// A question, keywords or a name; with --mode exact a text, with --mode regex a pattern
    /// [default: the name given with --symbol]
    ///
    /// In a ranked search, text in double quotes must occur: '"retry budget" scheduler'.
    #[arg(required_unless_present = "symbol", num_args = 1.., value_name = "QUERY")]
    query: Vec<String>,
    /// How to search: ranked, or for every match in order of path and line
    #[arg(long, value_enum, default_value_t = TypedCodeMode::Hybrid)]
    mode: TypedCodeMode,
    /// Ignore case in exact and regex searches; ranked searches always do
    #[arg(long, short)]
    ignore_case: bool,
    #[command(flatten)]
    filter: TypedCodeFilter,
    #[command(flatten)]
    listing: TypedListing,
}

#[derive(Args)]
pub(super) struct TypedSimilar {
    /// File and line [default: the first chunk of the file]
    #[arg(value_name = "FILE[:LINE]")]
    place: String,
    #[command(flatten)]
    filter: TypedCodeFilter,
    #[command(flatten)]
    listing: TypedListing,
}

#[derive(Args)]
pub(super) struct TypedWatch {
    /// Folder to watch [default: the working folder]
    pub(super) path: Option<PathBuf>,
    /// Size of the largest file to index, for example 500K [default: index.max_file_size, or 1M]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    max_file_size: Option<u64>,
    /// Also index files that look like secrets: keys, passwords, tokens
    ///
    /// For this run only: a later run without it removes them from the index.
    #[arg(long)]
    include_secrets: bool,
}

#[derive(Args)]
#[command(next_help_heading = "Filters")]
pub(super) struct TypedCodeFilter {
    /// Only files in this language; may be repeated
    #[arg(long = "lang", value_name = "NAME")]
    languages: Vec<String>,
    /// Only files whose path matches, for example src/**/*.rs; may be repeated
    ///
    /// Relative to the root, except for patterns that begin with . or .. (relative to the
    /// working folder) or / (absolute).
    #[arg(long = "path", value_name = "GLOB")]
    paths: Vec<String>,
    /// Only chunks of this kind: function, method, class, module, section, text; may be repeated
    #[arg(long = "kind", value_name = "KIND", value_parser = kind)]
    kinds: Vec<ChunkKind>,
    /// Only chunks that define this name
    #[arg(long, value_name = "NAME")]
    symbol: Option<String>,
    /// Only test code
    #[arg(long, conflicts_with = "no_tests")]
    tests: bool,
    /// No test code
    #[arg(long)]
    no_tests: bool,
    /// Only files changed since then: a date (2026-01-31) or an age (30m, 12h, 90d, 3w)
    #[arg(long, value_name = "WHEN", value_parser = since)]
    since: Option<i64>,
    /// Only this indexed folder; may be repeated [default: the one that contains the working
    /// folder, else all]
    #[arg(long = "root", value_name = "DIR", conflicts_with = "all_roots")]
    roots: Vec<PathBuf>,
    /// All indexed folders of the store
    #[arg(long)]
    all_roots: bool,
}

#[derive(Args)]
#[command(next_help_heading = "Output")]
struct TypedListing {
    /// Maximum number of results, up to 1000; 100000 for exact and regex searches [default:
    /// limits.results, or 10]
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: Option<u32>,
    /// Lines of context around the best line, or around a match [default: 2; with --json the
    /// whole chunk; for exact and regex searches 0]
    #[arg(long, short = 'C', value_name = "N")]
    context: Option<usize>,
    /// Print only paths
    #[arg(long)]
    files_only: bool,
    /// Print one JSON document per line, one for each result
    #[arg(long, conflicts_with = "json")]
    jsonl: bool,
}

#[derive(Clone, Copy, ValueEnum)]
pub(super) enum TypedMode {
    /// Keywords and meaning together
    Hybrid,
    /// Keywords only
    Keyword,
    /// Meaning only
    Vector,
}

/// The modes of code search.
#[derive(Clone, Copy, ValueEnum)]
enum TypedCodeMode {
    /// Keywords and meaning together
    Hybrid,
    /// Keywords only
    Keyword,
    /// Meaning only
    Vector,
    /// Every line that contains the text as it is
    Exact,
    /// Every line that matches a regular expression
    Regex,
}

impl From<TypedMode> for SearchMode {
    fn from(typed: TypedMode) -> Self {
        match typed {
            TypedMode::Hybrid => Self::Hybrid,
            TypedMode::Keyword => Self::Keyword,
            TypedMode::Vector => Self::Vector,
        }
    }
}

impl TypedIndex {
    /// `merged` is the folder's own store if it is to be merged.
    pub(super) fn plan(
        self,
        path: PathBuf,
        settings: Layers,
        merged: Option<StorePlace>,
    ) -> IndexCommand {
        if self.remove {
            return IndexCommand::Remove(path);
        }
        let settings = with_size(settings, self.max_file_size);
        let Self { rebuild, reembed, fresh, no_wait, include_secrets, .. } = self;
        let usual = IndexOptions::new(path);
        let options = IndexOptions { rebuild, reembed, wait: !no_wait, include_secrets, ..usual };
        match merged {
            Some(inner) => IndexCommand::Merge { inner, options, settings },
            None => IndexCommand::Index { options, settings, fresh },
        }
    }
}

impl TypedWatch {
    pub(super) fn plan(self, path: PathBuf, settings: Layers) -> WatchPlan {
        let settings = with_size(settings, self.max_file_size);
        let include_secrets = self.include_secrets;
        WatchPlan { options: IndexOptions { include_secrets, ..IndexOptions::new(path) }, settings }
    }
}

fn with_size(mut settings: Layers, max_file_size: Option<u64>) -> Layers {
    if let Some(size) = max_file_size {
        settings.set(Key::IndexMaxFileSize, "--max-file-size", Value::Number(size));
    }
    settings
}

impl TypedSearch {
    pub(super) fn plan(self, context: &Context<'_>) -> Result<SearchPlan, Failure> {
        let text = match (&self.query[..], &self.filter.symbol) {
            ([], Some(symbol)) => symbol.clone(),
            (query, _) => query.join(" "),
        };
        if text.trim().is_empty() {
            return Err(Failure::new(Code::BadInput, "the query is empty")
                .with_hint("for example: isolith search \"where are retries handled\""));
        }
        let ignore_case = self.ignore_case;
        let asked = match self.mode {
            TypedCodeMode::Hybrid => SearchInput::Text { text, mode: SearchMode::Hybrid },
            TypedCodeMode::Keyword => SearchInput::Text { text, mode: SearchMode::Keyword },
            TypedCodeMode::Vector => SearchInput::Text { text, mode: SearchMode::Vector },
            TypedCodeMode::Exact => {
                SearchInput::Matches(MatchPlan { pattern: text, regex: false, ignore_case })
            }
            TypedCodeMode::Regex => {
                // The name given with --symbol is no pattern.
                let regex = !self.query.is_empty();
                SearchInput::Matches(MatchPlan { pattern: text, regex, ignore_case })
            }
        };
        self.listing.plan(asked, self.filter, context)
    }
}

impl TypedSimilar {
    pub(super) fn plan(self, context: &Context<'_>) -> Result<SearchPlan, Failure> {
        // Compilers and grep add a column.
        let place = match self.place.rsplit_once(':') {
            Some((place, column)) if is_number(column) && ends_in_line(place) => place,
            _ => &self.place,
        };
        let (file, line) = match place.rsplit_once(':') {
            // A file may have a colon in its name.
            _ if std::path::Path::new(&self.place).is_file() => (self.place.as_str(), None),
            Some((file, line)) => match line.parse() {
                Ok(line) if line > 0 => (file, Some(line)),
                _ => return Err(bad_line(&self.place)),
            },
            None => (place, None),
        };
        self.listing.plan(SearchInput::Like { file: file.into(), line }, self.filter, context)
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn ends_in_line(place: &str) -> bool {
    place.rsplit_once(':').is_some_and(|(_, line)| is_number(line))
}

fn bad_line(place: &str) -> Failure {
    Failure::new(Code::BadInput, format!("{place:?} is not a file and line"))
        .with_hint("for example src/main.rs:42; the first line is 1")
}

impl TypedListing {
    fn plan(
        self,
        asked: SearchInput,
        filter: TypedCodeFilter,
        context: &Context<'_>,
    ) -> Result<SearchPlan, Failure> {
        let filter = CodeFilter {
            languages: filter.languages,
            paths: filter.paths,
            kinds: filter.kinds,
            symbol: filter.symbol,
            tests: match (filter.tests, filter.no_tests) {
                (true, _) => Some(true),
                (_, true) => Some(false),
                _ => None,
            },
            since: filter.since,
            roots: filter.roots,
            all_roots: filter.all_roots,
            base: Some(working_folder()?),
        };
        let listing = match (self.files_only, self.jsonl) {
            (true, true) => Listing::FileLines,
            (true, false) => Listing::Files,
            (false, true) => Listing::Lines,
            _ => Listing::Hits,
        };
        let limit = context.results(self.limit, DEFAULT_RESULTS)?;
        if limit > MAX_RANKED && !matches!(asked, SearchInput::Matches(_)) {
            let message = format!("--limit {limit} is too high for a ranked search");
            let hint = format!("at most {MAX_RANKED}; exact and regex searches take more");
            return Err(Failure::new(Code::Usage, message).with_hint(hint));
        }
        let (context, here) = (self.context, working_folder()?);
        Ok(SearchPlan { asked, filter, limit, context, listing, here, store_above: None })
    }
}

fn kind(name: &str) -> Result<ChunkKind, String> {
    let names = ChunkKind::ALL.map(ChunkKind::name).join(", ");
    name.parse().map_err(|_| format!("expected one of {names}"))
}

/// A moment in the past: milliseconds since 1970.
fn since(text: &str) -> Result<i64, String> {
    let wrong =
        || "expected a date such as 2026-01-31, or an age such as 30m, 12h, 90d or 3w".to_owned();
    if let Ok(moment) = text.parse::<Moment>() {
        return Ok(moment.start());
    }
    let (number, unit) = text.split_at_checked(text.len().saturating_sub(1)).ok_or_else(wrong)?;
    let seconds: u64 = match unit {
        "m" => 60,
        "h" => 3600,
        "d" => 24 * 3600,
        "w" => 7 * 24 * 3600,
        _ => return Err(wrong()),
    };
    let age = number.parse::<u64>().ok().and_then(|number| number.checked_mul(seconds));
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let moment = now.saturating_sub(Duration::from_secs(age.ok_or_else(wrong)?));
    i64::try_from(moment.as_millis()).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_parsed() {
        assert!(since("3w").unwrap() < since("12h").unwrap());
        assert_eq!(since("2026-11-16"), Ok(1_794_787_200_000));
        for wrong in ["", "d", "3y", "-1d", "99999999999999999999d", "é"] {
            assert!(since(wrong).is_err(), "{wrong}");
        }
    }
}
