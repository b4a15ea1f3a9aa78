use crate::temporal::TemporalKind;
use crate::value::Value;

/// A type of properties.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PropertyType {
    /// A single value.
    Scalar(Scalar),
    /// A list of such values.
    List(Scalar),
}

/// A type of single values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scalar {
    /// True or false.
    Boolean,
    /// A string.
    String,
    /// A 64-bit integer.
    Integer,
    /// A 64-bit float.
    Float,
    /// A date, a time, or a duration.
    Temporal(TemporalKind),
}

impl PropertyType {
    /// Whether a value that is not null has this type. An empty list is a list of anything.
    pub fn holds(self, value: &Value) -> bool {
        match self {
            PropertyType::Scalar(scalar) => scalar.holds(value),
            PropertyType::List(scalar) => match value {
                Value::List(list) => list.iter().all(|item| scalar.holds(item)),
                _ => false,
            },
        }
    }
}

impl Scalar {
    /// The type with this name in Cypher.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name.to_ascii_uppercase().as_str() {
            "BOOLEAN" | "BOOL" => Scalar::Boolean,
            "STRING" | "VARCHAR" => Scalar::String,
            "INTEGER" | "INT" => Scalar::Integer,
            "FLOAT" => Scalar::Float,
            "DATE" => Scalar::Temporal(TemporalKind::Date),
            "LOCAL TIME" => Scalar::Temporal(TemporalKind::LocalTime),
            "ZONED TIME" => Scalar::Temporal(TemporalKind::Time),
            "LOCAL DATETIME" => Scalar::Temporal(TemporalKind::LocalDateTime),
            "ZONED DATETIME" => Scalar::Temporal(TemporalKind::DateTime),
            "DURATION" => Scalar::Temporal(TemporalKind::Duration),
            _ => return None,
        })
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Scalar::Boolean => "BOOLEAN",
            Scalar::String => "STRING",
            Scalar::Integer => "INTEGER",
            Scalar::Float => "FLOAT",
            Scalar::Temporal(TemporalKind::Date) => "DATE",
            Scalar::Temporal(TemporalKind::LocalTime) => "LOCAL TIME",
            Scalar::Temporal(TemporalKind::Time) => "ZONED TIME",
            Scalar::Temporal(TemporalKind::LocalDateTime) => "LOCAL DATETIME",
            Scalar::Temporal(TemporalKind::DateTime) => "ZONED DATETIME",
            Scalar::Temporal(TemporalKind::Duration) => "DURATION",
        }
    }

    fn holds(self, value: &Value) -> bool {
        match value {
            Value::Boolean(_) => self == Scalar::Boolean,
            Value::Text(_) => self == Scalar::String,
            Value::Integer(_) => self == Scalar::Integer,
            Value::Float(_) => self == Scalar::Float,
            Value::Temporal(it) => self == Scalar::Temporal(it.kind()),
            _ => false,
        }
    }
}
