//! Flags of the commands that deal with code.

use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::{Args, ValueEnum};
use isolith_engine::{CodeFilter, IndexOptions, Mode, WalkOptions};
use isolith_types::{ChunkKind, Code, Failure, Moment};

use crate::code::{Asked, IndexPlan, Listing, SearchPlan};

#[derive(Args)]
pub(super) struct TypedIndex {
    /// The folder [default: the working folder]
    ///
    /// A folder inside one that is indexed already renews that part alone.
    pub(super) path: Option<PathBuf>,
    /// Read and index all of the folder again, whatever is known of it
    #[arg(long)]
    rebuild: bool,
    /// Move the whole code index to the model of this program
    #[arg(long)]
    reembed: bool,
    /// Move the store aside and index into a new one
    ///
    /// For a store that is refused because it came with a clone or an archive. Nothing in
    /// the old store is deleted.
    #[arg(long)]
    fresh: bool,
    /// Drop the folder's index; its files are left alone
    #[arg(long, conflicts_with_all = ["rebuild", "reembed", "fresh", "no_wait", "max_file_size", "include_secrets"])]
    remove: bool,
    /// Exit with 75 if another process is indexing the folder, instead of waiting for it
    #[arg(long)]
    no_wait: bool,
    /// Leave out larger files (bytes, or with K or M)
    #[arg(long, value_name = "SIZE", default_value = "1M", value_parser = size)]
    max_file_size: u64,
    /// Index files that look like secrets, too: keys, passwords, tokens
    ///
    /// Holds for this run. A later one without it removes them from the index again.
    #[arg(long)]
    include_secrets: bool,
}

#[derive(Args)]
pub(super) struct TypedSearch {
    /// What is looked for: a question, some words, a name
    #[arg(required = true, num_args = 1.., value_name = "QUERY")]
    query: Vec<String>,
    /// What ranks hits
    #[arg(long, value_enum, default_value_t = TypedMode::Hybrid)]
    mode: TypedMode,
    #[command(flatten)]
    filter: TypedCodeFilter,
    #[command(flatten)]
    listing: TypedListing,
}

#[derive(Args)]
pub(super) struct TypedSimilar {
    /// A file, and a line in it [default: its first chunk]
    #[arg(value_name = "FILE[:LINE]")]
    place: String,
    #[command(flatten)]
    filter: TypedCodeFilter,
    #[command(flatten)]
    listing: TypedListing,
}

#[derive(Args)]
pub(super) struct TypedWatch {
    /// The folder [default: the working folder]
    pub(super) path: Option<PathBuf>,
    /// Leave out larger files (bytes, or with K or M)
    #[arg(long, value_name = "SIZE", default_value = "1M", value_parser = size)]
    max_file_size: u64,
    /// Index files that look like secrets, too: keys, passwords, tokens
    ///
    /// Holds for this run. A later one without it removes them from the index again.
    #[arg(long)]
    include_secrets: bool,
}

#[derive(Args)]
pub(super) struct TypedCodeFilter {
    /// Only files in this language; may be repeated
    #[arg(long = "lang", value_name = "NAME")]
    languages: Vec<String>,
    /// Only files whose path, relative to their root, matches (src/**/*.rs); may be repeated
    #[arg(long = "path", value_name = "GLOB")]
    paths: Vec<String>,
    /// Only chunks of this kind: function, method, class, module, section, text; may be repeated
    #[arg(long = "kind", value_name = "KIND", value_parser = kind)]
    kinds: Vec<ChunkKind>,
    /// Only chunks that define this name
    #[arg(long, value_name = "NAME")]
    symbol: Option<String>,
    /// Only tests
    #[arg(long, conflicts_with = "no_tests")]
    tests: bool,
    /// No tests
    #[arg(long)]
    no_tests: bool,
    /// Only files that changed since (2026-01-31, or 30m, 12h, 90d, 3w)
    #[arg(long, value_name = "WHEN", value_parser = since)]
    since: Option<i64>,
    /// Only below this root; may be repeated
    #[arg(long = "root", value_name = "DIR")]
    roots: Vec<PathBuf>,
}

#[derive(Args)]
struct TypedListing {
    /// Show at most so many hits
    #[arg(long, short = 'n', value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    limit: u32,
    /// Show so many lines around the best one [default: 2; in JSON the whole chunk]
    #[arg(long, short = 'C', value_name = "N")]
    context: Option<usize>,
    /// Print paths alone
    #[arg(long)]
    files_only: bool,
    /// Print a JSON document for each hit, one a line
    #[arg(long, conflicts_with = "json")]
    jsonl: bool,
}

#[derive(Clone, Copy, ValueEnum)]
pub(super) enum TypedMode {
    /// Words and meaning together
    Hybrid,
    /// Words alone
    Keyword,
    /// Meaning alone
    Vector,
}

impl From<TypedMode> for Mode {
    fn from(typed: TypedMode) -> Self {
        match typed {
            TypedMode::Hybrid => Self::Hybrid,
            TypedMode::Keyword => Self::Keyword,
            TypedMode::Vector => Self::Vector,
        }
    }
}

impl TypedIndex {
    pub(super) fn plan(self, path: PathBuf) -> IndexPlan {
        if self.remove {
            return IndexPlan::Remove(path);
        }
        let walk =
            WalkOptions { largest_file: self.max_file_size, include_secrets: self.include_secrets };
        let Self { rebuild, reembed, fresh, no_wait, .. } = self;
        let usual = IndexOptions::new(path);
        let options = IndexOptions { rebuild, reembed, wait: !no_wait, walk, ..usual };
        IndexPlan::Index { options, fresh }
    }
}

impl TypedWatch {
    pub(super) fn options(self, path: PathBuf) -> IndexOptions {
        let walk =
            WalkOptions { largest_file: self.max_file_size, include_secrets: self.include_secrets };
        IndexOptions { walk, ..IndexOptions::new(path) }
    }
}

impl TypedSearch {
    pub(super) fn plan(self) -> Result<SearchPlan, Failure> {
        let text = self.query.join(" ");
        if text.trim().is_empty() {
            return Err(Failure::new(Code::BadInput, "there is nothing to look for")
                .with_hint("ask a question: isolith search \"where are retries handled\""));
        }
        let mode = self.mode.into();
        self.listing.plan(Asked::Text { text, mode }, self.filter)
    }
}

impl TypedSimilar {
    pub(super) fn plan(self) -> Result<SearchPlan, Failure> {
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
        self.listing.plan(Asked::Like { file: file.into(), line }, self.filter)
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn ends_in_line(place: &str) -> bool {
    place.rsplit_once(':').is_some_and(|(_, line)| is_number(line))
}

fn bad_line(place: &str) -> Failure {
    Failure::new(Code::BadInput, format!("{place:?} names no file and line"))
        .with_hint("for example src/main.rs:42; lines count from 1")
}

impl TypedListing {
    fn plan(self, asked: Asked, filter: TypedCodeFilter) -> Result<SearchPlan, Failure> {
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
        };
        let listing = match (self.files_only, self.jsonl) {
            (true, true) => Listing::FileLines,
            (true, false) => Listing::Files,
            (false, true) => Listing::Lines,
            _ => Listing::Hits,
        };
        Ok(SearchPlan { asked, filter, limit: self.limit, context: self.context, listing })
    }
}

fn kind(name: &str) -> Result<ChunkKind, String> {
    let names = ChunkKind::ALL.map(ChunkKind::name).join(", ");
    name.parse().map_err(|_| format!("it is one of {names}"))
}

/// A number of bytes.
fn size(text: &str) -> Result<u64, String> {
    let (digits, unit) = match text.to_ascii_uppercase().as_str() {
        upper if upper.ends_with('K') => (upper[..upper.len() - 1].to_owned(), 1 << 10),
        upper if upper.ends_with('M') => (upper[..upper.len() - 1].to_owned(), 1 << 20),
        upper => (upper.to_owned(), 1),
    };
    let bytes = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(unit));
    match bytes {
        // What is parsed crosses to a worker in one piece.
        Some(bytes @ 1..=33_554_432) => Ok(bytes),
        _ => Err("from 1 to 32M, for example 500K".to_owned()),
    }
}

/// A moment in the past: milliseconds since 1970.
fn since(text: &str) -> Result<i64, String> {
    let wrong = || "a day such as 2026-01-31, or an age such as 30m, 12h, 90d or 3w".to_owned();
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
    fn ages_and_sizes_are_understood() {
        assert!(since("3w").unwrap() < since("12h").unwrap());
        assert_eq!(since("2026-11-16"), Ok(1_794_787_200_000));
        for wrong in ["", "d", "3y", "-1d", "99999999999999999999d", "é"] {
            assert!(since(wrong).is_err(), "{wrong}");
        }
        assert_eq!(size("500k"), Ok(512_000));
        assert_eq!(size("1M"), Ok(1 << 20));
        for wrong in ["", "0", "33M", "1G", "M", "-1"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }
}
