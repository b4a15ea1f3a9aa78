use std::borrow::Cow;

use super::Value;

/// Formats a float for `toString`: always with a fraction or an exponent.
pub(crate) fn number_text(number: f64) -> String {
    if number.is_nan() {
        "NaN".to_owned()
    } else if number.is_infinite() {
        if number > 0.0 { "Infinity" } else { "-Infinity" }.to_owned()
    } else {
        format!("{number:?}")
    }
}

/// The text of a string, number, boolean or temporal value; `None` for other values.
pub(crate) fn plain_text(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::Boolean(value) => Some(value.to_string().into()),
        Value::Integer(value) => Some(value.to_string().into()),
        Value::Float(value) => Some(number_text(*value).into()),
        Value::Text(text) => Some(Cow::Borrowed(text)),
        Value::Temporal(it) => Some(it.to_string().into()),
        _ => None,
    }
}
