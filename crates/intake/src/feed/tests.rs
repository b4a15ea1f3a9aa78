use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::feed::{
    BufferedFeed, Fault, Feed, Taken, next_member, peek, take_key, take_line, take_value,
};

/// The items of a list, as written; `None` for those that are too long.
fn items(bytes: &[u8], buffer: usize, limit: usize) -> Result<Vec<Option<Vec<u8>>>, Fault> {
    let mut source = BufferedFeed::new(bytes, 0, buffer);
    assert_eq!(peek(&mut source)?, Some(b'['));
    source.advance(1);
    let mut items = Vec::new();
    while next_member(&mut source, items.is_empty(), b']')? {
        items.push(match take_value(&mut source, limit)? {
            Taken::Whole(length) => {
                let item = source.window()[..length].to_vec();
                source.advance(length);
                Some(item)
            }
            Taken::TooLong(_) => None,
        });
    }
    Ok(items)
}

fn lines(bytes: &[u8], buffer: usize, limit: usize) -> Vec<Option<Vec<u8>>> {
    let mut source = BufferedFeed::new(bytes, 0, buffer);
    let mut lines = Vec::new();
    while let Some(taken) = take_line(&mut source, limit).unwrap() {
        lines.push(match taken {
            Taken::Whole(length) => {
                let line = source.window()[..length].to_vec();
                source.advance(length);
                if source.window().first() == Some(&b'\n') {
                    source.advance(1);
                }
                Some(line)
            }
            Taken::TooLong(_) => None,
        });
    }
    lines
}

#[test]
fn a_key_ends_at_its_colon() {
    let mut source = BufferedFeed::new(&br#"  "a\u0062" : 1"#[..], 0, 2);
    assert_eq!(take_key(&mut source).unwrap(), "ab");
    assert_eq!(source.window().first(), Some(&b'1'));
}

#[test]
fn faults_include_the_position_and_the_cause() {
    for (text, says) in [
        ("[1 2]", "not JSON at byte 3: expected a comma or ], found '2'"),
        ("[1,", "truncated at byte 3"),
        ("[\"a", "truncated at byte 3"),
        ("[[}]", "not JSON at byte 2: expected ] or a member, found '}'"),
        ("[\u{1}]", "not JSON at byte 1: expected a value, found the byte 0x01"),
    ] {
        assert_eq!(items(text.as_bytes(), 64, 64).unwrap_err().to_string(), says, "{text}");
    }
    let deep = "[".repeat(200);
    let fault = items(deep.as_bytes(), 64, 1 << 20).unwrap_err();
    assert!(matches!(fault, Fault::TooDeep { offset: 121 }), "{fault:?}");
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[\\[\\]{},:\"\\\\ a-zé\n]{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..5).prop_map(Value::from),
            vec(("[a\"\\\\\\]}]{0,4}", inner), 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn lists_are_split_as_a_parser_splits_them(values in vec(any_json(), 0..6), buffer in 1usize..40) {
        for text in [json!(values).to_string(), serde_json::to_string_pretty(&values).unwrap()] {
            let found = items(text.as_bytes(), buffer, usize::MAX).unwrap();
            let found: Vec<Value> =
                found.iter().map(|item| serde_json::from_slice(item.as_ref().unwrap()).unwrap()).collect();
            prop_assert_eq!(&found, &values);
        }
    }

    #[test]
    fn long_items_are_skipped(values in vec(any_json(), 1..6), limit in 1usize..20) {
        let found = items(json!(values).to_string().as_bytes(), 8, limit).unwrap();
        for (item, value) in found.iter().zip(&values) {
            let text = value.to_string();
            prop_assert_eq!(item.as_deref(), (text.len() <= limit).then_some(text.as_bytes()));
        }
        prop_assert_eq!(found.len(), values.len());
    }

    #[test]
    fn broken_lists_never_panic(
        values in vec(any_json(), 0..6),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        buffer in 1usize..40,
        limit in 0usize..40,
    ) {
        let mut text = json!(values).to_string().into_bytes();
        for (at, byte) in changes {
            let at = 1 + at.index(text.len().max(2) - 1);
            if let Some(place) = text.get_mut(at) {
                *place = byte;
            }
        }
        let _ = items(&text, buffer, limit);
        let _ = lines(&text, buffer, limit);
    }

    #[test]
    fn lines_match_the_text(text in "[ab\n]{0,40}", buffer in 1usize..9, limit in 0usize..6) {
        let mut expected: Vec<&str> = text.split('\n').collect();
        if expected.last() == Some(&"") {
            expected.pop();
        }
        let expected: Vec<_> = expected
            .iter()
            .map(|line| (line.len() <= limit).then(|| line.as_bytes().to_vec()))
            .collect();
        prop_assert_eq!(lines(text.as_bytes(), buffer, limit), expected);
    }
}
