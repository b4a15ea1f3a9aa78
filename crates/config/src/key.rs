//! The settings that exist, and which values they take.

use std::fmt;

/// The largest file that can be indexed: its contents are sent to a worker in one piece.
const LARGEST_FILE: u64 = 32 << 20;

/// The highest default number of results.
const MAX_RESULTS: u64 = 1_000;

/// The highest default number of results that a project may set. Servers never return more.
const MAX_PROJECT_RESULTS: u64 = 100;

/// The longest time limit of a call, in seconds.
const MAX_TIMEOUT: u64 = 3_600;

/// The most entries in a list.
const MAX_ENTRIES: usize = 1_000;

/// A setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "`Key::about` describes them")]
pub enum Key {
    Store,
    SecretFile,
    Log,
    LimitsResults,
    LimitsRows,
    IndexIgnore,
    IndexLanguages,
    IndexMaxFileSize,
    ServerListen,
    ServerTimeout,
    ServerAllow,
    ServerHosts,
    ServerTokenFile,
    CollectionMetric,
    CollectionModel,
}

/// What a project's file may do with a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProjectAccess {
    /// Nothing.
    Never,
    /// Set it.
    Set,
    /// Set it to less than the user did.
    Lower,
}

/// A value of a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// A number, or a size in bytes.
    Number(u64),
    /// A text, or a path.
    Text(String),
    /// A list of texts.
    List(Vec<String>),
}

/// The type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A number from 1 to this.
    Number(u64),
    /// A number of bytes from 1 to this, or a text such as `500K`.
    Size(u64),
    Text,
    /// One of these texts.
    OneOf(&'static [&'static str]),
    List,
    /// Patterns of paths to exclude.
    Patterns,
}

impl Key {
    /// All settings, in the order in which they are shown.
    pub const ALL: [Self; 15] = [
        Self::Store,
        Self::SecretFile,
        Self::Log,
        Self::LimitsResults,
        Self::LimitsRows,
        Self::IndexIgnore,
        Self::IndexLanguages,
        Self::IndexMaxFileSize,
        Self::ServerListen,
        Self::ServerTimeout,
        Self::ServerAllow,
        Self::ServerHosts,
        Self::ServerTokenFile,
        Self::CollectionMetric,
        Self::CollectionModel,
    ];

    /// The name in configuration files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Store => "store",
            Self::SecretFile => "secret_file",
            Self::Log => "log",
            Self::LimitsResults => "limits.results",
            Self::LimitsRows => "limits.rows",
            Self::IndexIgnore => "index.ignore",
            Self::IndexLanguages => "index.languages",
            Self::IndexMaxFileSize => "index.max_file_size",
            Self::ServerListen => "server.listen",
            Self::ServerTimeout => "server.timeout",
            Self::ServerAllow => "server.allow",
            Self::ServerHosts => "server.hosts",
            Self::ServerTokenFile => "server.token_file",
            Self::CollectionMetric => "collection.metric",
            Self::CollectionModel => "collection.model",
        }
    }

    /// The setting with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|key| key.name() == name)
    }

    /// The environment variable: `ISOLITH_`, and the name in capitals with underscores.
    pub fn variable(self) -> String {
        format!("ISOLITH_{}", self.name().to_ascii_uppercase().replace('.', "_"))
    }

    /// What it sets, in a few words.
    pub fn about(self) -> &'static str {
        match self {
            Self::Store => "folder of the store",
            Self::SecretFile => "file with the secret that seals stores",
            Self::Log => "log filter",
            Self::LimitsResults => "results of a search",
            Self::LimitsRows => "rows of a list",
            Self::IndexIgnore => "paths that are not indexed",
            Self::IndexLanguages => "languages that are indexed",
            Self::IndexMaxFileSize => "size of the largest file that is indexed, in bytes",
            Self::ServerListen => "address that `isolith serve` listens on",
            Self::ServerTimeout => "time limit of a server's call, in seconds",
            Self::ServerAllow => "further folders that a server may read",
            Self::ServerHosts => "further host names of the server",
            Self::ServerTokenFile => "file with the server's token",
            Self::CollectionMetric => "metric of new collections",
            Self::CollectionModel => "model id of new collections",
        }
    }

    /// What a project's file may do with it.
    pub fn project(self) -> ProjectAccess {
        match self {
            Self::LimitsResults | Self::LimitsRows | Self::IndexIgnore | Self::IndexLanguages => {
                ProjectAccess::Set
            }
            Self::IndexMaxFileSize => ProjectAccess::Lower,
            Self::Store
            | Self::SecretFile
            | Self::Log
            | Self::ServerListen
            | Self::ServerTimeout
            | Self::ServerAllow
            | Self::ServerHosts
            | Self::ServerTokenFile
            | Self::CollectionMetric
            | Self::CollectionModel => ProjectAccess::Never,
        }
    }

    /// Whether a value is a path. In the user's file it is relative to the file's folder.
    pub(crate) fn is_path(self) -> bool {
        matches!(self, Self::Store | Self::SecretFile | Self::ServerAllow | Self::ServerTokenFile)
    }

    pub(crate) fn kind(self, in_project: bool) -> Kind {
        match self {
            Self::Store
            | Self::SecretFile
            | Self::Log
            | Self::ServerListen
            | Self::ServerTokenFile
            | Self::CollectionModel => Kind::Text,
            Self::LimitsResults | Self::LimitsRows => {
                Kind::Number(if in_project { MAX_PROJECT_RESULTS } else { MAX_RESULTS })
            }
            Self::IndexIgnore => Kind::Patterns,
            Self::IndexLanguages | Self::ServerAllow | Self::ServerHosts => Kind::List,
            Self::IndexMaxFileSize => Kind::Size(LARGEST_FILE),
            Self::ServerTimeout => Kind::Number(MAX_TIMEOUT),
            Self::CollectionMetric => Kind::OneOf(&["cosine", "l2", "dot"]),
        }
    }

    /// Reads a value as it stands in an environment variable. Entries of lists are separated
    /// by commas.
    pub(crate) fn parse(self, text: &str) -> Result<Value, String> {
        let kind = self.kind(false);
        let value = match kind {
            Kind::Number(_) => match text.trim().parse() {
                Ok(number) => Value::Number(number),
                Err(_) => return Err(kind.to_string()),
            },
            Kind::Size(_) | Kind::Text | Kind::OneOf(_) => Value::Text(text.to_owned()),
            Kind::List | Kind::Patterns => {
                let entries = text.split(',').map(str::trim).filter(|entry| !entry.is_empty());
                Value::List(entries.map(str::to_owned).collect())
            }
        };
        kind.check(value)
    }
}

impl Kind {
    /// The value in its final form, or what is expected instead.
    pub(crate) fn check(self, value: Value) -> Result<Value, String> {
        let fits = match (&self, &value) {
            (Self::Number(most) | Self::Size(most), Value::Number(number)) => {
                (1..=*most).contains(number)
            }
            (Self::Size(_), Value::Text(text)) => return parse_size(text).map(Value::Number),
            (Self::Text, Value::Text(text)) => !text.is_empty(),
            (Self::OneOf(names), Value::Text(text)) => names.contains(&text.as_str()),
            (Self::List, Value::List(entries)) => entries.len() <= MAX_ENTRIES,
            (Self::Patterns, Value::List(entries)) => {
                entries.len() <= MAX_ENTRIES && !entries.iter().any(|it| it.starts_with('!'))
            }
            _ => false,
        };
        if fits { Ok(value) } else { Err(self.to_string()) }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(most) => write!(f, "expected a number from 1 to {most}"),
            Self::Size(_) => f.write_str("expected a size from 1 to 32M, for example \"500K\""),
            Self::Text => f.write_str("expected a text that is not empty"),
            Self::OneOf(names) => write!(f, "expected one of {}", names.join(", ")),
            Self::List => write!(f, "expected a list of at most {MAX_ENTRIES} texts"),
            Self::Patterns => write!(
                f,
                "expected a list of at most {MAX_ENTRIES} patterns, none of which begins with !"
            ),
        }
    }
}

/// A number of bytes such as `500K` or `1M`.
///
/// # Errors
/// What is expected, if it is not from 1 byte to 32 MB.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let (digits, unit) = match text.as_bytes().last() {
        Some(b'k' | b'K') => (&text[..text.len() - 1], 1 << 10),
        Some(b'm' | b'M') => (&text[..text.len() - 1], 1 << 20),
        _ => (text, 1),
    };
    let bytes = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(unit));
    bytes
        .filter(|bytes| (1..=LARGEST_FILE).contains(bytes))
        .ok_or_else(|| Kind::Size(LARGEST_FILE).to_string())
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => f.write_str(text),
            Self::List(entries) => f.write_str(&entries.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_follow_from_names() {
        assert_eq!(Key::Store.variable(), "ISOLITH_STORE");
        assert_eq!(Key::SecretFile.variable(), "ISOLITH_SECRET_FILE");
        assert_eq!(Key::IndexMaxFileSize.variable(), "ISOLITH_INDEX_MAX_FILE_SIZE");
        for key in Key::ALL {
            assert_eq!(Key::from_name(key.name()), Some(key));
        }
    }

    #[test]
    fn values_are_checked() {
        assert_eq!(parse_size("500k"), Ok(512_000));
        assert_eq!(parse_size("1M"), Ok(1 << 20));
        for wrong in ["", "0", "33M", "1G", "M", "-1", "é"] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
        let list = |entries: &[&str]| Value::List(entries.iter().map(|it| (*it).into()).collect());
        assert_eq!(Key::IndexLanguages.parse("rust, go,"), Ok(list(&["rust", "go"])));
        for (key, wrong) in [
            (Key::LimitsResults, "0"),
            (Key::LimitsResults, "1001"),
            (Key::LimitsRows, "ten"),
            (Key::IndexIgnore, "a,!b"),
            (Key::CollectionMetric, "manhattan"),
            (Key::ServerListen, ""),
        ] {
            assert!(key.parse(wrong).is_err(), "{key:?} {wrong}");
        }
    }
}
