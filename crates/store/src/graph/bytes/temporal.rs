//! Encoding of dates, times and durations.

use isolith_graph::Temporal;

use super::{PropertyReader, put_number, put_text};

pub(super) const DATE: u8 = 6;
const LOCAL_TIME: u8 = 7;
const TIME: u8 = 8;
const LOCAL_DATE_TIME: u8 = 9;
const DATE_TIME: u8 = 10;
const ZONED_DATE_TIME: u8 = 11;
pub(super) const DURATION: u8 = 12;

pub(super) fn put(bytes: &mut Vec<u8>, value: &Temporal) {
    match value {
        Temporal::Date(day) => {
            bytes.push(DATE);
            put_signed(bytes, *day);
        }
        Temporal::LocalTime(nanos) => {
            bytes.push(LOCAL_TIME);
            put_signed(bytes, *nanos);
        }
        Temporal::Time { nanos, offset } => {
            bytes.push(TIME);
            put_signed(bytes, *nanos);
            put_signed(bytes, i64::from(*offset));
        }
        Temporal::LocalDateTime { seconds, nanos } => {
            bytes.push(LOCAL_DATE_TIME);
            put_signed(bytes, *seconds);
            put_number(bytes, u64::from(*nanos));
        }
        Temporal::DateTime { seconds, nanos, offset, zone } => {
            bytes.push(if zone.is_some() { ZONED_DATE_TIME } else { DATE_TIME });
            put_signed(bytes, *seconds);
            put_number(bytes, u64::from(*nanos));
            put_signed(bytes, i64::from(*offset));
            if let Some(zone) = zone {
                put_text(bytes, zone);
            }
        }
        Temporal::Duration { months, days, seconds, nanos } => {
            bytes.push(DURATION);
            [months, days, seconds].into_iter().for_each(|part| put_signed(bytes, *part));
            put_number(bytes, u64::from(*nanos));
        }
    }
}

pub(super) fn put_signed(bytes: &mut Vec<u8>, number: i64) {
    put_number(bytes, ((number << 1) ^ (number >> 63)).cast_unsigned());
}

impl PropertyReader<'_> {
    pub(super) fn signed(&mut self) -> Option<i64> {
        let number = self.number()?;
        Some((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
    }

    fn nanos(&mut self) -> Option<u32> {
        u32::try_from(self.number()?).ok()
    }

    fn offset(&mut self) -> Option<i32> {
        i32::try_from(self.signed()?).ok()
    }

    /// The rest of a temporal value; `None` if it is malformed or out of range.
    pub(super) fn temporal(&mut self, tag: u8) -> Option<Temporal> {
        let value = match tag {
            DATE => Temporal::Date(self.signed()?),
            LOCAL_TIME => Temporal::LocalTime(self.signed()?),
            TIME => Temporal::Time { nanos: self.signed()?, offset: self.offset()? },
            LOCAL_DATE_TIME => {
                Temporal::LocalDateTime { seconds: self.signed()?, nanos: self.nanos()? }
            }
            DATE_TIME | ZONED_DATE_TIME => Temporal::DateTime {
                seconds: self.signed()?,
                nanos: self.nanos()?,
                offset: self.offset()?,
                zone: match tag {
                    ZONED_DATE_TIME => Some(self.text()?.into()),
                    _ => None,
                },
            },
            DURATION => Temporal::Duration {
                months: self.signed()?,
                days: self.signed()?,
                seconds: self.signed()?,
                nanos: self.nanos()?,
            },
            _ => return None,
        };
        value.is_valid().then_some(value)
    }

    /// Skips the rest of a temporal value.
    pub(super) fn skip_temporal(&mut self, tag: u8) -> Option<()> {
        let numbers = match tag {
            DATE | LOCAL_TIME => 1,
            TIME | LOCAL_DATE_TIME => 2,
            DATE_TIME | ZONED_DATE_TIME => 3,
            DURATION => 4,
            _ => return None,
        };
        for _ in 0..numbers {
            self.number()?;
        }
        if tag == ZONED_DATE_TIME {
            self.text()?;
        }
        Some(())
    }
}
