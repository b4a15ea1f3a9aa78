/// Why a number cannot be part of a vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NumberFault {
    /// NaN or an infinity, as Python writes them.
    NotFinite,
    /// It is finite, but too large for a 32-bit float.
    TooLarge,
    /// Not a JSON number.
    Malformed,
}

/// Parses the number at the start of the bytes; returns it and its length. It is the nearest
/// 32-bit float, exactly as from `str::parse::<f32>`.
#[inline]
pub(crate) fn read_number(bytes: &[u8]) -> Result<(f32, usize), NumberFault> {
    let negative = bytes.first() == Some(&b'-');
    let start = usize::from(negative);
    let (whole, mut at) = digits(bytes, start, 0);
    let mut mantissa = whole;
    let whole_digits = at - start;
    if whole_digits == 0 || (whole_digits > 1 && bytes[start] == b'0') {
        return Err(not_a_number(&bytes[start..]));
    }
    let mut fraction_digits = 0;
    if bytes.get(at) == Some(&b'.') {
        let end;
        (mantissa, end) = digits(bytes, at + 1, mantissa);
        fraction_digits = end - at - 1;
        if fraction_digits == 0 {
            return Err(NumberFault::Malformed);
        }
        at = end;
    }
    let mut exponent = -(fraction_digits as i64);
    if let Some(b'e' | b'E') = bytes.get(at) {
        let (explicit, end) = read_exponent(bytes, at + 1)?;
        exponent += explicit;
        at = end;
    }
    let fits = whole_digits + fraction_digits <= MAX_DIGITS
        || significant(&bytes[start..at]) <= MAX_DIGITS;
    if fits && let Some(value) = nearest(mantissa, exponent) {
        return Ok((if negative { -value } else { value }, at));
    }
    parse_slowly(&bytes[..at]).map(|value| (value, at))
}

/// The number of decimal digits that always fit into 64 bits.
const MAX_DIGITS: usize = 19;

/// Powers of ten that a 64-bit float represents exactly.
const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
];

/// mantissa × 10^exponent as the nearest 32-bit float; `None` if that takes the slow path.
///
/// The 64-bit value below is rounded at most twice (mantissa, then quotient or
/// product), so it is less than 3 units in its last place away from the true one. Both
/// round to the same 32-bit float unless the midpoint of two such floats lies between them; close
/// to a midpoint, the slow path decides.
#[inline]
fn nearest(mantissa: u64, exponent: i64) -> Option<f32> {
    const DROPPED_BITS: u64 = (1 << 29) - 1;
    const MIDDLE: u64 = 1 << 28;
    const DOUBT: u64 = 4;
    if mantissa == 0 {
        return Some(0.0);
    }
    let power = *POWERS.get(usize::try_from(exponent.unsigned_abs()).ok()?)?;
    let value = if exponent < 0 { mantissa as f64 / power } else { mantissa as f64 * power };
    let normal = (f64::from(f32::MIN_POSITIVE)..=f64::from(f32::MAX)).contains(&value);
    let doubtful = (value.to_bits() & DROPPED_BITS).abs_diff(MIDDLE) <= DOUBT;
    (normal && !doubtful).then_some(value as f32)
}

/// Appends the digits from `at` on to a number. Overflow is silent: the caller counts the digits.
#[inline]
fn digits(bytes: &[u8], mut at: usize, mut number: u64) -> (u64, usize) {
    while let Some(eight) = bytes.get(at..at + 8).and_then(|eight| eight.try_into().ok())
        && let Some(value) = eight_digits(u64::from_le_bytes(eight))
    {
        number = number.wrapping_mul(100_000_000).wrapping_add(value);
        at += 8;
    }
    while let Some(byte) = bytes.get(at).filter(|byte| byte.is_ascii_digit()) {
        number = number.wrapping_mul(10).wrapping_add(u64::from(byte - b'0'));
        at += 1;
    }
    (number, at)
}

/// The value of eight little-endian bytes, if all are digits: combines pairs, then pairs of pairs,
/// in one register.
#[inline]
fn eight_digits(bytes: u64) -> Option<u64> {
    const HIGH: u64 = 0xF0F0_F0F0_F0F0_F0F0;
    let above_nine = bytes.wrapping_add(0x0606_0606_0606_0606) & HIGH;
    if bytes & HIGH | above_nine >> 4 != 0x3333_3333_3333_3333 {
        return None;
    }
    let ones = bytes - 0x3030_3030_3030_3030;
    let pairs = ones.wrapping_mul(10).wrapping_add(ones >> 8) & 0x00FF_00FF_00FF_00FF;
    let fours = pairs.wrapping_mul(100).wrapping_add(pairs >> 16) & 0x0000_FFFF_0000_FFFF;
    Some(fours.wrapping_mul(10_000).wrapping_add(fours >> 32) & 0xFFFF_FFFF)
}

fn read_exponent(bytes: &[u8], at: usize) -> Result<(i64, usize), NumberFault> {
    // Beyond this the value is zero or too large, whatever its mantissa.
    const ENOUGH: i64 = 1_000_000_000;
    let negative = bytes.get(at) == Some(&b'-');
    let start = at + usize::from(matches!(bytes.get(at), Some(b'+' | b'-')));
    let mut exponent = 0i64;
    let mut end = start;
    while let Some(byte) = bytes.get(end).filter(|byte| byte.is_ascii_digit()) {
        exponent = (exponent * 10 + i64::from(byte - b'0')).min(ENOUGH);
        end += 1;
    }
    if end == start {
        return Err(NumberFault::Malformed);
    }
    Ok((if negative { -exponent } else { exponent }, end))
}

/// The number of digits without leading zeros.
fn significant(number: &[u8]) -> usize {
    number
        .iter()
        .take_while(|byte| !matches!(byte, b'e' | b'E'))
        .filter(|byte| byte.is_ascii_digit())
        .skip_while(|byte| **byte == b'0')
        .count()
}

#[cold]
fn parse_slowly(number: &[u8]) -> Result<f32, NumberFault> {
    let value = std::str::from_utf8(number).ok().and_then(|text| text.parse::<f32>().ok());
    match value {
        Some(value) if value.is_finite() => Ok(value),
        Some(_) => Err(NumberFault::TooLarge),
        None => Err(NumberFault::Malformed),
    }
}

#[cold]
fn not_a_number(rest: &[u8]) -> NumberFault {
    if rest.starts_with(b"NaN") || rest.starts_with(b"Infinity") {
        NumberFault::NotFinite
    } else {
        NumberFault::Malformed
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn assert_exact(text: &str) {
        let expected: f32 = text.parse().unwrap();
        let read = read_number(format!("{text},").as_bytes());
        if expected.is_finite() {
            let (value, length) = read.unwrap();
            assert_eq!(value.to_bits(), expected.to_bits(), "{text}");
            assert_eq!(length, text.len(), "{text}");
        } else {
            assert_eq!(read, Err(NumberFault::TooLarge), "{text}");
        }
    }

    #[test]
    fn plain_numbers_are_parsed_exactly() {
        for text in [
            "0",
            "-0",
            "0.0",
            "-0.0",
            "1",
            "-1",
            "12345678",
            "123456789012345678901234567890",
            "0.1",
            "-0.012345678",
            "-0.012345678359270096",
            "0.00000000000000000000012345678901",
            "1e5",
            "1E-5",
            "1.5e+3",
            "3.4028235e38",
            "3.4028236e38",
            "1e39",
            "-1e400",
            "1e-400",
            "1.17549435e-38",
            "1e-45",
            "7e-46",
            "16777217",
            "16777216.9999999",
            "0e99999999999999",
            "33554435",
            "8388608.5",
            "8388609.5",
            "0.50000000000000000000000000000000000000000001",
        ] {
            assert_exact(text);
        }
    }

    #[test]
    fn invalid_numbers_are_refused() {
        for (text, fault) in [
            ("NaN", NumberFault::NotFinite),
            ("Infinity", NumberFault::NotFinite),
            ("-Infinity", NumberFault::NotFinite),
            ("", NumberFault::Malformed),
            ("-", NumberFault::Malformed),
            ("+1", NumberFault::Malformed),
            (".5", NumberFault::Malformed),
            ("1.", NumberFault::Malformed),
            ("01", NumberFault::Malformed),
            ("1e", NumberFault::Malformed),
            ("1e+", NumberFault::Malformed),
            ("null", NumberFault::Malformed),
            ("1e39", NumberFault::TooLarge),
        ] {
            assert_eq!(read_number(text.as_bytes()), Err(fault), "{text}");
        }
    }

    /// The exact midpoint between a 32-bit float and the next, as decimal text.
    fn middle(bits: u32) -> Option<String> {
        let (low, high) = (f32::from_bits(bits), f32::from_bits(bits + 1));
        (low.is_finite() && high.is_finite())
            .then(|| format!("{:.160}", (f64::from(low) + f64::from(high)) / 2.0))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_500))]

        #[test]
        fn any_decimal_is_parsed_exactly(text in "-?(0|[1-9][0-9]{0,24})(\\.[0-9]{1,24})?([eE][+-]?[0-9]{1,2})?") {
            assert_exact(&text);
        }

        #[test]
        fn any_printed_float_is_parsed_exactly(bits: u32, digits in 1usize..20) {
            let value = f32::from_bits(bits);
            if value.is_finite() {
                assert_exact(&format!("{value}"));
                assert_exact(&format!("{value:e}"));
                assert_exact(&format!("{}", f64::from(value)));
                assert_exact(&format!("{value:.digits$}"));
                assert_exact(&format!("{value:.digits$e}"));
            }
        }

        #[test]
        fn numbers_near_a_midpoint_are_parsed_exactly(bits in 0u32..0x7F7F_FFFF, cut in 1usize..60) {
            if let Some(text) = middle(bits) {
                assert_exact(&text);
                assert_exact(&format!("{text}1"));
                let digits = text.find(|c: char| c.is_ascii_digit() && c != '0').unwrap_or(0);
                let end = (digits + cut).max(3).min(text.len());
                assert_exact(text[..end].trim_end_matches('.'));
            }
        }
    }
}
