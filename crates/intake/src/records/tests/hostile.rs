use std::ops::ControlFlow;

use isolith_types::Metric;
use proptest::prelude::*;

use crate::records::validate::{VectorSource, validate_with};
use crate::records::{Batches, Cursor, IntakeError, OnError, Rules};

const SEEDS: [&str; 4] = [
    r#"{"x":[{"y":"\u00e9"}],"chromadb_ready":{"ids":["a","b"],"embeddings":[[1.5,-2e-3],[0.25,3]],"metadatas":[{"k":[1,"z"]},null],"documents":["\ud83e\udd80 \"q\"",null]}}"#,
    "{\"ids\":[\"a\",\"b\"],\"documents\":null,\"embeddings\":[[1.5,-2e-3],[0.25,3]]}\n",
    "{\"isolith_export\":1}\n{\"id\":\"a\",\"vector\":[1,2],\"text\":\"x\"}\n\n{\"id\":\"b\",\"embedding\":[3,4],\"metadata\":{\"k\":true}}\n",
    r#"[{"id":"a","vector":[1,2]}, {"id":"b","embedding":[3,4],"document":"\n"}]"#,
];

/// Asserts that both passes end without a panic and agree.
fn survive(content: &[u8], on_error: OnError, buffer: usize) {
    let rules = Rules { dimension: None, metric: Metric::Cosine, on_error };
    let mut blocks = 0;
    let mut count = |_, _| {
        blocks += 1;
        ControlFlow::Continue(())
    };
    let layout = match validate_with(content, &rules, VectorSource::Rows, &mut count, buffer) {
        Ok(layout) => layout,
        Err(error) => {
            assert!(!matches!(error, IntakeError::Changed { .. } | IntakeError::Io(_)), "{error}");
            assert!(!error.to_string().is_empty());
            error.hint();
            return;
        }
    };
    assert!(blocks <= 4 * content.len() + 16, "{blocks} blocks");
    assert_eq!(layout.rejected, layout.problems.len() as u64);
    let mut batches = Batches::open_with(content, layout.clone(), layout.start(), buffer).unwrap();
    let (mut rows, mut records) = (0, 0);
    while let Some(batch) = batches.next(3, 100).unwrap() {
        assert!(batch.rows_covered > 0);
        rows += batch.rows_covered;
        records += batch.ids.len() as u64;
        assert_eq!(batch.vectors.len(), batch.ids.len() * layout.dimension.unwrap_or(0) as usize);
    }
    assert_eq!((rows, records), (layout.rows, layout.rows - layout.rejected));
}

/// Bytes that are significant to the reader are more frequent.
fn any_byte() -> impl Strategy<Value = u8> {
    prop_oneof![prop::sample::select(b"[]{},:\"\\\n -0.1eNInu".to_vec()), any::<u8>()]
}

fn any_policy() -> impl Strategy<Value = OnError> {
    prop_oneof![Just(OnError::Stop), Just(OnError::Skip)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn arbitrary_bytes_do_not_panic(content in prop::collection::vec(any_byte(), 0..300), policy in any_policy(), buffer in 1usize..50) {
        survive(&content, policy, buffer);
    }

    #[test]
    fn damaged_files_do_not_panic(
        seed in prop::sample::select(SEEDS.to_vec()),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any_byte(), 0u8..3), 1..6),
        policy in any_policy(),
        buffer in 1usize..80,
    ) {
        let mut content = seed.as_bytes().to_vec();
        for (place, byte, kind) in edits {
            let at = place.index(content.len() + 1);
            match kind {
                0 => content.insert(at, byte),
                1 if at < content.len() => content[at] = byte,
                _ if at < content.len() => drop(content.remove(at)),
                _ => {}
            }
        }
        survive(&content, policy, buffer);
    }

    #[test]
    fn truncated_files_do_not_panic(seed in prop::sample::select(SEEDS.to_vec()), at in any::<prop::sample::Index>(), policy in any_policy()) {
        survive(&seed.as_bytes()[..at.index(seed.len())], policy, 16);
    }

    #[test]
    fn arbitrary_cursors_do_not_panic(
        seed in prop::sample::select(SEEDS.to_vec()),
        row in 0u64..4,
        offsets in prop::array::uniform4(0u64..200),
    ) {
        let rules = Rules { dimension: None, metric: Metric::Dot, on_error: OnError::Stop };
        let mut go_on = |_, _| ControlFlow::Continue(());
        let layout = validate_with(seed.as_bytes(), &rules, VectorSource::Rows, &mut go_on, 64).unwrap();
        let cursor = Cursor { row, line: 0, offsets };
        if let Ok(mut batches) = Batches::open(seed.as_bytes(), layout, cursor) {
            while let Ok(Some(_)) = batches.next(1, 1) {}
        }
    }
}
