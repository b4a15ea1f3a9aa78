//! Functions that make temporal values.

use crate::error::{Class, Detail, Error, Result};
use crate::run::Run;
use crate::temporal::{
    Amount, Temporal, TemporalKind, Unit, between, build, duration_of, from_epoch, in_zone, parse,
    parse_zone, select, truncate,
};
use crate::value::{Map, Value};

/// A function that makes a temporal value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TemporalFunction {
    Make(TemporalKind),
    /// The time at which the query began, or the current one.
    Clock(TemporalKind, bool),
    Truncate(TemporalKind),
    FromEpoch,
    FromEpochMillis,
    Duration,
    Between(Unit),
    Timestamp,
}

/// Looks up a function by its name in lower case: itself, its minimum and maximum number of
/// arguments.
pub(super) fn find(name: &str) -> Option<(TemporalFunction, usize, usize)> {
    use TemporalFunction::*;
    let (root, of) = name.split_once('.').unwrap_or((name, ""));
    if name == "timestamp" {
        return Some((Timestamp, 0, 0));
    }
    let kind = TemporalKind::named(root)?;
    Some(match (of, kind) {
        ("", TemporalKind::Duration) => (Duration, 1, 1),
        ("between", TemporalKind::Duration) => (Between(Unit::All), 2, 2),
        ("inmonths", TemporalKind::Duration) => (Between(Unit::Months), 2, 2),
        ("indays", TemporalKind::Duration) => (Between(Unit::Days), 2, 2),
        ("inseconds", TemporalKind::Duration) => (Between(Unit::Seconds), 2, 2),
        (_, TemporalKind::Duration) => return None,
        ("", _) => (Make(kind), 0, 1),
        ("transaction" | "statement", _) => (Clock(kind, false), 0, 1),
        ("realtime", _) => (Clock(kind, true), 0, 1),
        ("truncate", _) => (Truncate(kind), 1, 3),
        ("fromepoch", TemporalKind::DateTime) => (FromEpoch, 2, 2),
        ("fromepochmillis", TemporalKind::DateTime) => (FromEpochMillis, 1, 1),
        _ => return None,
    })
}

pub(super) fn call(
    run: &Run<'_>,
    function: TemporalFunction,
    arguments: &[Value],
) -> Result<Value> {
    if arguments.iter().any(Value::is_null) {
        return Ok(Value::Null);
    }
    made(run, function, arguments)
        .map_err(|message| Error::run(Class::ArgumentError, Detail::InvalidArgumentValue, message))
}

fn made(run: &Run<'_>, function: TemporalFunction, arguments: &[Value]) -> Result<Value, String> {
    let made = match (function, arguments) {
        (TemporalFunction::Timestamp, _) => return Ok(run.now().epoch_millis()),
        (TemporalFunction::Make(kind) | TemporalFunction::Clock(kind, false), []) => {
            select(kind, run.now())
        }
        (TemporalFunction::Clock(kind, true), []) => select(kind, &Temporal::now()),
        (TemporalFunction::Clock(kind, real), [Value::Text(zone)]) => {
            let zone = parse_zone(zone)?;
            let now = if real { &Temporal::now() } else { run.now() };
            in_zone(kind, now, &zone)
        }
        (TemporalFunction::Make(kind), [Value::Text(text)]) => parse(kind, text),
        (TemporalFunction::Make(kind), [Value::Map(map)]) => build(kind, map, run.now()),
        (TemporalFunction::Make(kind), [Value::Temporal(from)]) => select(kind, from),
        (TemporalFunction::Truncate(kind), [Value::Text(unit), rest @ ..]) => {
            let none = Map::new(Vec::new());
            match rest {
                [] => truncate(kind, unit, run.now(), &none),
                [Value::Temporal(from)] => truncate(kind, unit, from, &none),
                [Value::Temporal(from), Value::Map(map)] => truncate(kind, unit, from, map),
                _ => return Err(unfit("truncate", rest)),
            }
        }
        (TemporalFunction::FromEpoch, [Value::Integer(seconds), Value::Integer(nanos)]) => {
            from_epoch(*seconds, *nanos)
        }
        (TemporalFunction::FromEpochMillis, [Value::Integer(millis)]) => {
            from_epoch(millis.div_euclid(1000), millis.rem_euclid(1000) * 1_000_000)
        }
        (TemporalFunction::Duration, [Value::Text(text)]) => parse(TemporalKind::Duration, text),
        (TemporalFunction::Duration, [Value::Map(map)]) => return duration(map),
        (TemporalFunction::Duration, [value @ Value::Temporal(it)]) if it.is_duration() => {
            return Ok(value.clone());
        }
        (TemporalFunction::Between(unit), [Value::Temporal(from), Value::Temporal(to)]) => {
            between(unit, from, to)
        }
        _ => return Err(unfit("this function", arguments)),
    };
    made.map(Value::from)
}

fn duration(map: &Map) -> Result<Value, String> {
    let mut amounts = Vec::with_capacity(map.len());
    for (name, value) in map.entries() {
        let amount = match value {
            Value::Integer(number) => Amount::Integer(*number),
            Value::Float(number) => Amount::Float(*number),
            Value::Null => return Ok(Value::Null),
            other => return Err(format!("{name} must be a number, not {}", other.type_name())),
        };
        amounts.push((&**name, amount));
    }
    duration_of(amounts.into_iter()).map(Value::from)
}

fn unfit(name: &str, arguments: &[Value]) -> String {
    let types: Vec<_> = arguments.iter().map(Value::type_name).collect();
    format!("{name} does not accept {}", types.join(" and "))
}
