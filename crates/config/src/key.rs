//! The keys of all settings and the values they accept.

use std::fmt;

/// Maximum value of `index.max_file_size`: a file is sent to a worker as a single message.
const LARGEST_FILE: u64 = 32 << 20;

/// Maximum value of `limits.results` and `limits.rows`.
const MAX_RESULTS: u64 = 1_000;

/// The same maximum in a project's file. Servers never return more.
const MAX_PROJECT_RESULTS: u64 = 100;

/// Maximum value of `server.timeout`, in seconds.
const MAX_TIMEOUT: u64 = 3_600;

/// Maximum value of `server.alert_minutes`: a day.
const MAX_ALERT_MINUTES: u64 = 24 * 60;

/// Maximum value of `server.alert_disk_free`: more than any disk has.
const MAX_DISK_FREE: u64 = 1 << 50;

/// Maximum number of entries in a list.
const MAX_ENTRIES: usize = 1_000;

/// The key of a setting. `docs/configuration.md` describes each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the variants are the names in configuration files")]
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
    ServerAlertCommand,
    ServerAlertWebhook,
    ServerAlertFailureRate,
    ServerAlertMinutes,
    ServerAlertDiskFree,
    CollectionMetric,
    CollectionModel,
}

/// What a project's file may do with a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProjectAccess {
    /// It cannot set it.
    Never,
    /// It can set it.
    Set,
    /// It can only set it lower than the user's value or the default.
    Lower,
}

/// The value of a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// A number, or a size in bytes.
    Number(u64),
    /// A string, or a path.
    Text(String),
    /// A list of strings.
    List(Vec<String>),
}

/// The values that a setting accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ValueType {
    /// A number from 1 to this.
    Number(u64),
    /// A number of bytes from 1 to this, or a string such as `500K`.
    Size(u64),
    Text,
    /// One of these strings.
    OneOf(&'static [&'static str]),
    List,
    /// A list of patterns of paths to exclude.
    Patterns,
}

impl Key {
    /// All keys, in display order.
    pub const ALL: [Self; 20] = [
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
        Self::ServerAlertCommand,
        Self::ServerAlertWebhook,
        Self::ServerAlertFailureRate,
        Self::ServerAlertMinutes,
        Self::ServerAlertDiskFree,
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
            Self::ServerAlertCommand => "server.alert_command",
            Self::ServerAlertWebhook => "server.alert_webhook",
            Self::ServerAlertFailureRate => "server.alert_failure_rate",
            Self::ServerAlertMinutes => "server.alert_minutes",
            Self::ServerAlertDiskFree => "server.alert_disk_free",
            Self::CollectionMetric => "collection.metric",
            Self::CollectionModel => "collection.model",
        }
    }

    /// The key with this name in configuration files.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|key| key.name() == name)
    }

    /// The environment variable, for example `ISOLITH_LIMITS_RESULTS`.
    pub fn variable(self) -> String {
        format!("ISOLITH_{}", self.name().to_ascii_uppercase().replace('.', "_"))
    }

    /// What a project's file may do with this setting.
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
            | Self::ServerAlertCommand
            | Self::ServerAlertWebhook
            | Self::ServerAlertFailureRate
            | Self::ServerAlertMinutes
            | Self::ServerAlertDiskFree
            | Self::CollectionMetric
            | Self::CollectionModel => ProjectAccess::Never,
        }
    }

    /// Whether the value is a path, or a list of paths.
    pub(crate) fn is_path(self) -> bool {
        matches!(self, Self::Store | Self::SecretFile | Self::ServerAllow | Self::ServerTokenFile)
    }

    pub(crate) fn value_type(self, in_project: bool) -> ValueType {
        match self {
            Self::Store
            | Self::SecretFile
            | Self::Log
            | Self::ServerListen
            | Self::ServerTokenFile
            | Self::ServerAlertCommand
            | Self::ServerAlertWebhook
            | Self::CollectionModel => ValueType::Text,
            Self::LimitsResults | Self::LimitsRows => {
                ValueType::Number(if in_project { MAX_PROJECT_RESULTS } else { MAX_RESULTS })
            }
            Self::IndexIgnore => ValueType::Patterns,
            Self::IndexLanguages | Self::ServerAllow | Self::ServerHosts => ValueType::List,
            Self::IndexMaxFileSize => ValueType::Size(LARGEST_FILE),
            Self::ServerTimeout => ValueType::Number(MAX_TIMEOUT),
            Self::ServerAlertFailureRate => ValueType::Number(100),
            Self::ServerAlertMinutes => ValueType::Number(MAX_ALERT_MINUTES),
            Self::ServerAlertDiskFree => ValueType::Size(MAX_DISK_FREE),
            Self::CollectionMetric => ValueType::OneOf(&["cosine", "l2", "dot"]),
        }
    }

    /// Parses the value of an environment variable. List entries are separated by commas.
    pub(crate) fn parse(self, text: &str) -> Result<Value, String> {
        let value_type = self.value_type(false);
        let value = match value_type {
            ValueType::Number(_) => match text.trim().parse() {
                Ok(number) => Value::Number(number),
                Err(_) => return Err(value_type.to_string()),
            },
            ValueType::Size(_) | ValueType::Text | ValueType::OneOf(_) => {
                Value::Text(text.to_owned())
            }
            ValueType::List | ValueType::Patterns => {
                let entries = text.split(',').map(str::trim).filter(|entry| !entry.is_empty());
                Value::List(entries.map(str::to_owned).collect())
            }
        };
        value_type.check(value)
    }
}

impl ValueType {
    /// Checks a value and converts a size such as `500K` to a number. The error says what is
    /// expected.
    pub(crate) fn check(self, value: Value) -> Result<Value, String> {
        let is_valid = match (&self, &value) {
            (Self::Number(max) | Self::Size(max), Value::Number(number)) => {
                (1..=*max).contains(number)
            }
            (Self::Size(max), Value::Text(text)) => {
                return parse_bytes(text, *max).map(Value::Number);
            }
            (Self::Text, Value::Text(text)) => !text.is_empty(),
            (Self::OneOf(names), Value::Text(text)) => names.contains(&text.as_str()),
            (Self::List, Value::List(entries)) => entries.len() <= MAX_ENTRIES,
            (Self::Patterns, Value::List(entries)) => {
                entries.len() <= MAX_ENTRIES && !entries.iter().any(|it| it.starts_with('!'))
            }
            _ => false,
        };
        if is_valid { Ok(value) } else { Err(self.to_string()) }
    }
}

impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(max) => write!(f, "expected a number from 1 to {max}"),
            Self::Size(max) => {
                let max = if *max == LARGEST_FILE { "32M" } else { "1024T" };
                write!(f, "expected a size from 1 to {max}, for example \"500K\"")
            }
            Self::Text => f.write_str("expected a non-empty string"),
            Self::OneOf(names) => write!(f, "expected one of {}", names.join(", ")),
            Self::List => write!(f, "expected a list of at most {MAX_ENTRIES} strings"),
            Self::Patterns => {
                write!(
                    f,
                    "expected a list of at most {MAX_ENTRIES} patterns that do not start with !"
                )
            }
        }
    }
}

/// Parses a number of bytes such as `500K` or `1M`.
///
/// # Errors
/// If it is not from 1 byte to 32 MB; the error says what is expected.
pub fn parse_size(text: &str) -> Result<u64, String> {
    parse_bytes(text, LARGEST_FILE)
}

/// Parses the free space below which a disk is nearly full, such as `500M` or `10G`.
///
/// # Errors
/// If it is not from 1 byte to 1024 TB; the error says what is expected.
pub fn parse_disk_size(text: &str) -> Result<u64, String> {
    parse_bytes(text, MAX_DISK_FREE)
}

fn parse_bytes(text: &str, max: u64) -> Result<u64, String> {
    let text = text.trim();
    let (digits, unit) = match text.as_bytes().last() {
        Some(b'k' | b'K') => (&text[..text.len() - 1], 1 << 10),
        Some(b'm' | b'M') => (&text[..text.len() - 1], 1 << 20),
        Some(b'g' | b'G') => (&text[..text.len() - 1], 1 << 30),
        Some(b't' | b'T') => (&text[..text.len() - 1], 1 << 40),
        _ => (text, 1),
    };
    let bytes = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(unit));
    bytes.filter(|bytes| (1..=max).contains(bytes)).ok_or_else(|| ValueType::Size(max).to_string())
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
    fn variables_are_derived_from_names() {
        assert_eq!(Key::Store.variable(), "ISOLITH_STORE");
        assert_eq!(Key::SecretFile.variable(), "ISOLITH_SECRET_FILE");
        assert_eq!(Key::IndexMaxFileSize.variable(), "ISOLITH_INDEX_MAX_FILE_SIZE");
        for key in Key::ALL {
            assert_eq!(Key::from_name(key.name()), Some(key));
        }
    }

    #[test]
    fn invalid_values_are_refused() {
        assert_eq!(parse_size("500k"), Ok(512_000));
        assert_eq!(parse_size("1M"), Ok(1 << 20));
        for wrong in ["", "0", "33M", "1G", "M", "-1", "é"] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
        assert_eq!(parse_disk_size("10G"), Ok(10 << 30));
        assert_eq!(parse_disk_size("1024T"), Ok(MAX_DISK_FREE));
        assert!(parse_disk_size("1025T").unwrap_err().contains("1024T"));
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
