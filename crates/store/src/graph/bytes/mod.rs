//! Encoding of properties: one after another, each with the id of its name, so that one can be
//! read without decoding the others.

mod temporal;

use isolith_graph::{Temporal, Value};

const FALSE: u8 = 0;
const TRUE: u8 = 1;
const INTEGER: u8 = 2;
const FLOAT: u8 = 3;
const TEXT: u8 = 4;
const LIST: u8 = 5;

/// Encodes properties. The caller has already rejected values that cannot be stored.
pub(super) fn write<'a>(properties: impl Iterator<Item = (u32, &'a Value)>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (key, value) in properties {
        put_number(&mut bytes, u64::from(key));
        put_value(&mut bytes, value);
    }
    bytes
}

/// Encodes a temporal value alone.
pub(super) fn write_temporal(value: &Temporal) -> Vec<u8> {
    let mut bytes = Vec::new();
    temporal::put(&mut bytes, value);
    bytes
}

/// Decodes a temporal value; `None` if the bytes are malformed.
pub(super) fn read_temporal(bytes: &[u8]) -> Option<Temporal> {
    let (tag, rest) = bytes.split_first()?;
    let mut rest = PropertyReader(rest);
    rest.temporal(*tag).filter(|_| rest.0.is_empty())
}

/// Decodes all properties; `None` if the bytes are malformed.
pub(super) fn read(bytes: &[u8]) -> Option<Vec<(u32, Value)>> {
    let mut rest = PropertyReader(bytes);
    let mut properties = Vec::new();
    while !rest.0.is_empty() {
        let key = u32::try_from(rest.number()?).ok()?;
        properties.push((key, rest.value()?));
    }
    Some(properties)
}

/// Decodes one property, null if it is absent; `None` if the bytes are malformed.
pub(super) fn read_one(bytes: &[u8], wanted: u32) -> Option<Value> {
    let mut rest = PropertyReader(bytes);
    while !rest.0.is_empty() {
        let key = rest.number()?;
        if key == u64::from(wanted) {
            return rest.value();
        }
        rest.skip()?;
    }
    Some(Value::Null)
}

pub(super) fn write_labels(labels: &[u32]) -> Vec<u8> {
    let mut bytes = Vec::new();
    labels.iter().for_each(|label| put_number(&mut bytes, u64::from(*label)));
    bytes
}

/// Decodes label ids; `None` if the bytes are malformed.
pub(super) fn read_labels(bytes: &[u8]) -> Option<Vec<u32>> {
    let mut rest = PropertyReader(bytes);
    let mut labels = Vec::new();
    while !rest.0.is_empty() {
        labels.push(u32::try_from(rest.number()?).ok()?);
    }
    Some(labels)
}

fn put_value(bytes: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Boolean(false) => bytes.push(FALSE),
        Value::Boolean(true) => bytes.push(TRUE),
        Value::Integer(number) => {
            bytes.push(INTEGER);
            temporal::put_signed(bytes, *number);
        }
        Value::Float(number) => {
            bytes.push(FLOAT);
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        Value::Text(text) => {
            bytes.push(TEXT);
            put_text(bytes, text);
        }
        Value::Temporal(it) => temporal::put(bytes, it),
        Value::List(list) => {
            bytes.push(LIST);
            put_number(bytes, list.len() as u64);
            list.iter().for_each(|value| put_value(bytes, value));
        }
        _ => debug_assert!(false, "{} cannot be stored", value.type_name()),
    }
}

fn put_text(bytes: &mut Vec<u8>, text: &str) {
    put_number(bytes, text.len() as u64);
    bytes.extend_from_slice(text.as_bytes());
}

fn put_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

struct PropertyReader<'a>(&'a [u8]);

impl<'a> PropertyReader<'a> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn take(&mut self, length: u64) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(usize::try_from(length).ok()?)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    fn text(&mut self) -> Option<&'a str> {
        let length = self.number()?;
        std::str::from_utf8(self.take(length)?).ok()
    }

    fn value(&mut self) -> Option<Value> {
        Some(match self.byte()? {
            FALSE => Value::Boolean(false),
            TRUE => Value::Boolean(true),
            INTEGER => Value::Integer(self.signed()?),
            FLOAT => Value::Float(f64::from_le_bytes(self.take(8)?.try_into().ok()?)),
            TEXT => Value::text(self.text()?),
            tag @ temporal::DATE..=temporal::DURATION => Value::from(self.temporal(tag)?),
            LIST => {
                let count = self.number()?;
                // Every value takes at least one byte, so a damaged count cannot over-allocate.
                let mut list = Vec::with_capacity(usize::try_from(count).ok()?.min(self.0.len()));
                for _ in 0..count {
                    // Lists are never nested, so this is damage; following it could recurse
                    // without end.
                    if self.0.first() == Some(&LIST) {
                        return None;
                    }
                    list.push(self.value()?);
                }
                Value::list(list)
            }
            _ => return None,
        })
    }

    fn skip(&mut self) -> Option<()> {
        match self.byte()? {
            FALSE | TRUE => {}
            INTEGER => {
                self.number()?;
            }
            FLOAT => {
                self.take(8)?;
            }
            TEXT => {
                let length = self.number()?;
                self.take(length)?;
            }
            tag @ temporal::DATE..=temporal::DURATION => self.skip_temporal(tag)?,
            LIST => {
                for _ in 0..self.number()? {
                    self.skip()?;
                }
            }
            _ => return None,
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoded_properties_round_trip() {
        let zone = Some("Europe/Stockholm".into());
        let zoned = Temporal::DateTime { seconds: 7, nanos: 1, offset: 3600, zone };
        let list = Value::list(vec![
            Value::from(zoned.clone()),
            Value::Integer(-1),
            Value::text("ü"),
            Value::Boolean(true),
        ]);
        let values = [
            Value::Boolean(false),
            Value::Integer(i64::MIN),
            Value::Integer(i64::MAX),
            Value::Float(-0.5),
            Value::text(""),
            Value::from(Temporal::Date(-5)),
            Value::from(Temporal::LocalTime(86_399_999_999_999)),
            Value::from(Temporal::Time { nanos: 1, offset: -64_800 }),
            Value::from(Temporal::LocalDateTime { seconds: -1, nanos: 999_999_999 }),
            Value::from(Temporal::DateTime { seconds: 7, nanos: 1, offset: 3600, zone: None }),
            Value::from(zoned),
            Value::from(Temporal::Duration { months: -1, days: 2, seconds: i64::MIN, nanos: 3 }),
            list,
            Value::list(Vec::new()),
        ];
        let keyed: Vec<(u32, &Value)> = (200..).zip(&values).collect();
        let bytes = write(keyed.iter().copied());
        let back = read(&bytes).unwrap();
        assert_eq!(back.len(), values.len());
        for ((key, value), (read_key, read_value)) in keyed.iter().zip(&back) {
            assert_eq!((key, *value), (read_key, read_value));
            assert_eq!(read_one(&bytes, *key).unwrap(), **value);
        }
        assert_eq!(read_one(&bytes, 1).unwrap(), Value::Null);
    }

    #[test]
    fn damaged_bytes_are_detected() {
        let bytes = write([(7, &Value::text("twelve letters"))].into_iter());
        for cut in 1..bytes.len() {
            assert!(read(&bytes[..cut]).is_none(), "{cut}");
        }
        assert!(read(&[1, 13]).is_none());
        for value in [
            Temporal::LocalTime(-1),
            Temporal::Date(i64::MAX),
            Temporal::DateTime { seconds: 0, nanos: 0, offset: 0, zone: Some("a]b".into()) },
        ] {
            let bytes = write([(7, &Value::from(value))].into_iter());
            assert!(read(&bytes).is_none());
        }
        assert!(read_one(&[1, LIST, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F, 0], 2).is_none());
    }
}
