//! Equality, comparison, order and equivalence: four different relations in openCypher.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use super::{Map, Value};

/// `a = b`: true, false, or unknown because of a null.
pub fn equals(a: &Value, b: &Value) -> Option<bool> {
    use Value::*;
    match (a, b) {
        (Null, _) | (_, Null) => None,
        (Boolean(a), Boolean(b)) => Some(a == b),
        (Integer(a), Integer(b)) => Some(a == b),
        (Integer(_) | Float(_), Integer(_) | Float(_)) => {
            Some(compare_numbers(a, b) == Some(Ordering::Equal))
        }
        (Text(a), Text(b)) => Some(a == b),
        (List(a), List(b)) => lists_equal(a, b),
        (Map(a), Map(b)) => maps_equal(a, b),
        (Node(a), Node(b)) | (Relationship(a), Relationship(b)) => Some(a == b),
        (Path(a), Path(b)) => Some(a == b),
        (Temporal(a), Temporal(b)) => Some(a == b),
        _ => Some(false),
    }
}

fn lists_equal(a: &[Value], b: &[Value]) -> Option<bool> {
    if a.len() != b.len() {
        return Some(false);
    }
    all_equal(a.iter().zip(b))
}

fn maps_equal(a: &Map, b: &Map) -> Option<bool> {
    if a.len() != b.len() || !a.keys().eq(b.keys()) {
        return Some(false);
    }
    all_equal(a.values().zip(b.values()))
}

fn all_equal<'a>(pairs: impl Iterator<Item = (&'a Value, &'a Value)>) -> Option<bool> {
    let mut result = Some(true);
    for (a, b) in pairs {
        match equals(a, b) {
            Some(false) => return Some(false),
            None => result = None,
            Some(true) => {}
        }
    }
    result
}

/// Compares for `<`, `<=`, `>` and `>=`: `None` if the result is null, `Some(None)` if every
/// comparison is false, as with NaN.
pub fn compare(a: &Value, b: &Value) -> Option<Option<Ordering>> {
    use Value::*;
    match (a, b) {
        (Integer(_) | Float(_), Integer(_) | Float(_)) => Some(compare_numbers(a, b)),
        (Text(a), Text(b)) => Some(Some(a.cmp(b))),
        (Boolean(a), Boolean(b)) => Some(Some(a.cmp(b))),
        (List(a), List(b)) => {
            for (a, b) in a.iter().zip(b.iter()) {
                match compare(a, b)? {
                    Some(Ordering::Equal) => {}
                    other => return Some(other),
                }
            }
            Some(Some(a.len().cmp(&b.len())))
        }
        (Temporal(a), Temporal(b)) => a.compare(b).map(Some),
        _ => None,
    }
}

/// Compares numbers by value; `None` for NaN.
fn compare_numbers(a: &Value, b: &Value) -> Option<Ordering> {
    match (a, b) {
        (Value::Integer(a), Value::Integer(b)) => Some(a.cmp(b)),
        (Value::Float(a), Value::Float(b)) => a.partial_cmp(b),
        (Value::Integer(a), Value::Float(b)) => integer_with_float(*a, *b),
        (Value::Float(a), Value::Integer(b)) => integer_with_float(*b, *a).map(Ordering::reverse),
        _ => None,
    }
}

/// Exact, where converting the integer to a float would round it.
fn integer_with_float(a: i64, b: f64) -> Option<Ordering> {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if b.is_nan() {
        None
    } else if b >= LIMIT {
        Some(Ordering::Less)
    } else if b < -LIMIT {
        Some(Ordering::Greater)
    } else {
        let whole = b.trunc();
        let by_whole = a.cmp(&(whole as i64));
        Some(by_whole.then_with(|| 0.0_f64.partial_cmp(&(b - whole)).unwrap_or(Ordering::Equal)))
    }
}

/// The order of `ORDER BY`: total, over all types, with null last.
pub fn order(a: &Value, b: &Value) -> Ordering {
    use Value::*;
    match (a, b) {
        (Null, Null) => Ordering::Equal,
        (Boolean(a), Boolean(b)) => a.cmp(b),
        (Integer(a), Integer(b)) => a.cmp(b),
        (Integer(_) | Float(_), Integer(_) | Float(_)) => {
            compare_numbers(a, b).unwrap_or_else(|| is_nan(a).cmp(&is_nan(b)))
        }
        (Text(a), Text(b)) => a.cmp(b),
        // Do not traverse identical values, which may be large.
        (List(a), List(b)) if a.is_same(b) => Ordering::Equal,
        (Map(a), Map(b)) if a.is_same(b) => Ordering::Equal,
        (List(a), List(b)) => order_all(a.iter(), b.iter()),
        (Map(a), Map(b)) => a.keys().cmp(b.keys()).then_with(|| order_all(a.values(), b.values())),
        (Node(a), Node(b)) | (Relationship(a), Relationship(b)) => a.cmp(b),
        (Path(a), Path(b)) => a.cmp(b),
        (Temporal(a), Temporal(b)) => a.order(b),
        _ => rank(a).cmp(&rank(b)),
    }
}

fn order_all<'a>(
    a: impl Iterator<Item = &'a Value>,
    mut b: impl Iterator<Item = &'a Value>,
) -> Ordering {
    for a in a {
        let Some(b) = b.next() else { return Ordering::Greater };
        match order(a, b) {
            Ordering::Equal => {}
            other => return other,
        }
    }
    if b.next().is_some() { Ordering::Less } else { Ordering::Equal }
}

fn is_nan(value: &Value) -> bool {
    matches!(value, Value::Float(number) if number.is_nan())
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Map(_) => 0,
        Value::Node(_) => 1,
        Value::Relationship(_) => 2,
        Value::List(_) => 3,
        Value::Path(_) => 4,
        Value::Temporal(_) => 5,
        Value::Text(_) => 6,
        Value::Boolean(_) => 7,
        Value::Integer(_) | Value::Float(_) => 8,
        Value::Null => 9,
    }
}

/// Values compared as in `DISTINCT` and grouping: null equals null, NaN equals NaN.
#[derive(Debug, Clone)]
pub(crate) enum GroupKey {
    /// One value, the most common case.
    One(Value),
    Many(Vec<Value>),
}

impl GroupKey {
    pub(crate) fn of<'a>(mut values: impl ExactSizeIterator<Item = &'a Value>) -> Self {
        match (values.len(), values.next()) {
            (1, Some(value)) => GroupKey::One(value.clone()),
            (_, first) => GroupKey::Many(first.into_iter().chain(values).cloned().collect()),
        }
    }

    pub(crate) fn values(&self) -> &[Value] {
        match self {
            GroupKey::One(value) => std::slice::from_ref(value),
            GroupKey::Many(values) => values,
        }
    }

    /// The memory for keeping the key in a hash table.
    pub(crate) fn held(&self) -> usize {
        // A hash table is between half and almost full, and is copied when it grows.
        2 * size_of::<GroupKey>()
            + self.values().iter().map(Value::held_beside).sum::<usize>()
            + match self {
                GroupKey::One(_) => 0,
                GroupKey::Many(values) => values.len() * size_of::<Value>() + 16,
            }
    }

    /// The cost of looking up the key in a hash table.
    pub(crate) fn weight(&self) -> usize {
        self.values().iter().map(Value::weight).fold(0, usize::saturating_add)
    }
}

impl PartialEq for GroupKey {
    fn eq(&self, other: &Self) -> bool {
        self.values() == other.values()
    }
}

impl Eq for GroupKey {}

impl Hash for GroupKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        for value in self.values() {
            hash_value(value, state);
        }
    }
}

fn hash_value<H: Hasher>(value: &Value, state: &mut H) {
    rank(value).hash(state);
    match value {
        Value::Null => {}
        Value::Boolean(value) => value.hash(state),
        Value::Integer(value) => value.hash(state),
        Value::Float(value) => {
            // An integer and a float of the same value are in the same group.
            let whole = *value as i64;
            if integer_with_float(whole, *value) == Some(Ordering::Equal) {
                whole.hash(state);
            } else if value.is_nan() {
                f64::NAN.to_bits().hash(state);
            } else {
                value.to_bits().hash(state);
            }
        }
        Value::Text(text) => text.hash(state),
        Value::List(list) => {
            list.len().hash(state);
            list.iter().for_each(|value| hash_value(value, state));
        }
        Value::Map(map) => {
            map.len().hash(state);
            for (key, value) in map.entries() {
                key.hash(state);
                hash_value(value, state);
            }
        }
        Value::Node(id) | Value::Relationship(id) => id.hash(state),
        Value::Path(path) => path.hash(state),
        Value::Temporal(it) => it.hash(state),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equality_is_three_valued() {
        let null_list = Value::list(vec![Value::Integer(1), Value::Null]);
        let table = [
            (Value::Integer(1), Value::Float(1.0), Some(true)),
            (Value::Integer(i64::MAX), Value::Float(i64::MAX as f64), Some(false)),
            (Value::Float(f64::NAN), Value::Float(f64::NAN), Some(false)),
            (Value::Null, Value::Integer(1), None),
            (Value::from("1"), Value::Integer(1), Some(false)),
            (Value::from(vec![1_i64, 2]), null_list.clone(), None),
            (Value::from(vec![2_i64, 2]), null_list.clone(), Some(false)),
            (Value::from(vec![1_i64]), null_list, Some(false)),
        ];
        for (a, b, expected) in table {
            assert_eq!(equals(&a, &b), expected, "{a:?} = {b:?}");
            assert_eq!(equals(&b, &a), expected, "{b:?} = {a:?}");
        }
    }

    #[test]
    fn order_is_total_with_null_last() {
        let mut values = [
            Value::Null,
            Value::Float(f64::NAN),
            Value::Float(1.5),
            Value::Integer(1),
            Value::Boolean(true),
            Value::from("a"),
            Value::from(vec![1_i64]),
            Value::Node(7),
        ];
        values.sort_by(order);
        let names: Vec<_> = values.iter().map(Value::type_name).collect();
        assert_eq!(
            names,
            [
                "a node",
                "a list",
                "a string",
                "a boolean",
                "an integer",
                "a float",
                "a float",
                "null"
            ]
        );
    }

    #[test]
    fn equivalent_values_are_in_one_group() {
        let key = GroupKey::One;
        assert_eq!(key(Value::Null), key(Value::Null));
        assert_eq!(key(Value::Float(f64::NAN)), key(Value::Float(f64::NAN)));
        let groups: std::collections::HashSet<_> =
            [Value::Integer(1), Value::Float(1.0), Value::Float(-0.0), Value::Integer(0)]
                .into_iter()
                .map(key)
                .collect();
        assert_eq!(groups.len(), 2);
    }
}
