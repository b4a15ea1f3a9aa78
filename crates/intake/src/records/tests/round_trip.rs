use std::ops::ControlFlow;

use isolith_types::{Metadata, Metric};
use proptest::prelude::*;
use serde_json::{Value as Json, json};

use crate::records::validate::{VectorSource, validate_with};
use crate::records::{Batches, Cursor, OnError, Rules};

#[derive(Debug, Clone)]
struct Row {
    id: String,
    vector: Vec<f32>,
    metadata: Option<Json>,
    document: Option<String>,
}

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[a-z ]{0,200}",
        Just("\u{1F980} \" \\ \u{0} ] } , [ {".to_owned())
    ]
}

fn any_row(dimension: usize) -> impl Strategy<Value = Row> {
    let finite = any::<f32>().prop_filter("not too large", |value| value.abs() < 1e17);
    let number = prop_oneof![finite, -1.0f32..1.0];
    let scalar = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        (-1e9f64..1e9).prop_map(Json::from),
        any_text().prop_map(Json::from),
    ];
    let value =
        prop_oneof![scalar.clone(), prop::collection::vec(scalar, 0..3).prop_map(Json::from)];
    let metadata = prop::collection::hash_map(any_text(), value, 0..4)
        .prop_map(|map| Json::Object(map.into_iter().collect()));
    (
        "[^\"\\\\]{1,20}",
        prop::collection::vec(number, dimension),
        prop::option::of(metadata),
        prop::option::of(any_text()),
    )
        .prop_map(|(id, vector, metadata, document)| Row { id, vector, metadata, document })
}

fn any_rows() -> impl Strategy<Value = Vec<Row>> {
    (1usize..12)
        .prop_flat_map(|dimension| prop::collection::vec(any_row(dimension), 1..25))
        .prop_map(|mut rows| {
            for (number, row) in rows.iter_mut().enumerate() {
                row.id = format!("{}{number}", row.id);
            }
            rows
        })
}

/// The formatting of a file, none of which may affect the result.
#[derive(Debug, Clone)]
struct Style {
    form: u8,
    pretty: bool,
    mark: bool,
    order: Vec<usize>,
    buffer: usize,
    max_rows: u64,
    max_bytes: usize,
}

fn any_style() -> impl Strategy<Value = Style> {
    (
        0u8..4,
        any::<bool>(),
        any::<bool>(),
        Just(vec![0, 1, 2, 3, 4]).prop_shuffle(),
        prop_oneof![1usize..40, 40usize..2_000],
        1u64..30,
        0usize..3_000,
    )
        .prop_map(|(form, pretty, mark, order, buffer, max_rows, max_bytes)| Style {
            form,
            pretty,
            mark,
            order,
            buffer,
            max_rows,
            max_bytes,
        })
}

fn write(value: &Json, pretty: bool) -> String {
    if pretty { serde_json::to_string_pretty(value) } else { serde_json::to_string(value) }.unwrap()
}

/// An object with its keys in a given order.
fn object(members: [(&str, String); 5], order: &[usize]) -> String {
    let members: Vec<_> = order
        .iter()
        .map(|place| format!("{:?}: {}", members[*place].0, members[*place].1))
        .collect();
    format!("{{{}}}", members.join(","))
}

fn record(row: &Row, style: &Style, pretty: bool) -> String {
    object(
        [
            ("id", write(&json!(row.id), pretty)),
            ("embedding", write(&json!(row.vector), pretty)),
            ("metadata", write(&json!(row.metadata), pretty)),
            ("document", write(&json!(row.document), pretty)),
            ("other", write(&json!({"x": ["]", {"id": 1}]}), pretty)),
        ],
        &style.order,
    )
}

fn file(rows: &[Row], style: &Style) -> String {
    let column = |part: fn(&Row) -> Json| {
        write(&Json::from(rows.iter().map(part).collect::<Vec<_>>()), style.pretty)
    };
    let lists = || {
        object(
            [
                ("ids", column(|row| json!(row.id))),
                ("embeddings", column(|row| json!(row.vector))),
                ("metadatas", column(|row| json!(row.metadata))),
                ("documents", column(|row| json!(row.document))),
                ("included", write(&json!([["ids"], {"a": "}"}, null, 1.5]), style.pretty)),
            ],
            &style.order,
        )
    };
    let records = |pretty| rows.iter().map(move |row| record(row, style, pretty));
    let text = match style.form {
        0 => lists(),
        1 => format!(r#"{{"documents": 3, "chromadb_ready": {}, "ids": null}}"#, lists()),
        2 => records(false).collect::<Vec<_>>().join(if style.pretty { "\r\n \n" } else { "\n" }),
        _ => format!("[{}]", records(style.pretty).collect::<Vec<_>>().join(" , ")),
    };
    if style.mark { format!("\u{feff}{text}") } else { text }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn written_records_are_read_back(rows in any_rows(), style in any_style(), resume in any::<prop::sample::Index>()) {
        let file = file(&rows, &style);
        let rules = Rules {
            dimension: None,
            metric: Metric::Dot,
            on_error: OnError::Stop,
        };
        let mut go_on = |_, _| ControlFlow::Continue(());
        let layout = validate_with(file.as_bytes(), &rules, VectorSource::Rows, &mut go_on, style.buffer).unwrap();
        prop_assert_eq!(layout.rows, rows.len() as u64);
        prop_assert_eq!(layout.dimension, Some(rows[0].vector.len() as u32));
        prop_assert_eq!(layout.hash, *blake3::hash(file.as_bytes()).as_bytes());

        let read_from = |cursor: Cursor| {
            let mut batches =
                Batches::open_with(file.as_bytes(), layout.clone(), cursor, style.buffer).unwrap();
            let mut cursors = vec![cursor];
            let mut row = cursor.row as usize;
            while let Some(batch) = batches.next(style.max_rows, style.max_bytes).unwrap() {
                assert_eq!(batch.first_row, row as u64 + 1);
                assert!(batch.rows_covered <= style.max_rows);
                let dimension = rows[0].vector.len();
                for (place, id) in batch.ids.iter().enumerate() {
                    let expected = &rows[row + place];
                    assert_eq!(id, &expected.id);
                    assert_eq!(&batch.documents[place], &expected.document);
                    let metadata = expected.metadata.clone().unwrap_or(Json::Null);
                    assert_eq!(batch.metadatas[place], Metadata::from_json(metadata).unwrap());
                    let vector = &batch.vectors[place * dimension..][..dimension];
                    let bits = |vector: &[f32]| vector.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
                    assert_eq!(bits(vector), bits(&expected.vector));
                }
                row += batch.ids.len();
                assert_eq!(batch.next.row, row as u64);
                cursors.push(batch.next);
            }
            assert_eq!(row, rows.len());
            cursors
        };
        let cursors = read_from(layout.start());
        read_from(cursors[resume.index(cursors.len())]);
        let done = resume.index(rows.len() + 1) as u64;
        let after = Batches::open_after(file.as_bytes(), layout.clone(), done).unwrap();
        read_from(after.cursor());
    }
}
