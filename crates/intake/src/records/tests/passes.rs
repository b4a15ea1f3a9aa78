use std::fs::{self, File};
use std::ops::ControlFlow;

use super::{all, check_leniently, check_strictly, rules};
use crate::records::{
    Batches, Cursor, Format, IntakeError, Layout, OnError, VectorSource, validate, validate_from,
};

const LISTS: &str = r#"{"ids":["a","b","c"],"embeddings":[[1,0],[0,1],[1,1]],"metadatas":[{"k":1},null,{}],"documents":["x",null,"z"]}"#;

#[test]
fn lists_are_found_at_the_top_or_under_their_key() {
    let lists = &LISTS[1..LISTS.len() - 1];
    for file in [
        LISTS.to_owned(),
        format!("\u{feff}\n{LISTS}\n"),
        format!(r#"{{"chromadb_ready":{LISTS}}}"#),
        format!(r#"{{"id":"x","vector":[1],"chromadb_ready":{LISTS},"ids":[1,2],"documents":7}}"#),
        format!(r#"{{"ids":[1],"documents":{{}},"other":[[[{{}}]]],"chromadb_ready":{LISTS}}}"#),
        format!(r#"{{"include":["x"],"uris":null,"data":null,{lists},"included":[{{"a":"]"}}]}}"#),
    ] {
        let layout = check_strictly(&file).unwrap_or_else(|error| panic!("{error}: {file}"));
        assert_eq!((layout.format, layout.rows, layout.dimension), (Format::Lists, 3, Some(2)));
        assert_eq!(layout.bytes, file.len() as u64);
        assert_eq!(layout.hash, *blake3::hash(file.as_bytes()).as_bytes());
        let batch = all(file.as_bytes(), &layout).unwrap();
        assert_eq!(batch.ids, ["a", "b", "c"]);
        assert_eq!(batch.vectors, [1.0, 0.0, 0.0, 1.0, 1.0, 1.0]);
        assert_eq!(batch.documents, [Some("x".to_owned()), None, Some("z".to_owned())]);
        let metadatas: Vec<_> = batch.metadatas.iter().map(|metadata| metadata.as_str()).collect();
        assert_eq!(metadatas, [r#"{"k":1}"#, "{}", "{}"]);
    }
}

#[test]
fn metadatas_and_documents_are_optional() {
    for file in [
        r#"{"embeddings":[[1],[2]],"ids":["a","b"]}"#,
        r#"{"embeddings":[[1],[2]],"metadatas":null,"ids":["a","b"],"documents":null}"#,
        "{\"id\":\"a\",\"embedding\":[1]}\n{\"id\":\"b\",\"vector\":[2],\"metadata\":null}",
        r#"[{"id":"a","embedding":[1]},{"id":"b","vector":[2],"document":null}]"#,
    ] {
        let layout = check_strictly(file).unwrap();
        let batch = all(file.as_bytes(), &layout).unwrap();
        assert_eq!((batch.first_row, batch.rows_covered), (1, 2));
        assert_eq!(batch.ids, ["a", "b"]);
        assert_eq!(batch.vectors, [1.0, 2.0]);
        assert_eq!(batch.documents, [None, None]);
    }
}

#[test]
fn files_without_rows_are_valid() {
    for file in [r#"{"ids":[],"embeddings":[]}"#, "[]", "{\"isolith_export\":1}\n"] {
        let layout = check_strictly(file).unwrap();
        assert_eq!((layout.rows, layout.dimension), (0, None));
        let mut batches = Batches::open(file.as_bytes(), layout.clone(), layout.start()).unwrap();
        assert_eq!(batches.next(10, 1_000).unwrap(), None);
    }
}

#[test]
fn the_header_of_an_export_is_kept_and_skipped() {
    let header = r#"{"isolith_export":1,"collection":{"name":"n","metric":"l2"}}"#;
    let file = format!(
        "{header}\r\n\r\n{{\"id\":\"a\",\"document\":null,\"metadata\":{{}},\"vector\":[1]}}\r\n"
    );
    let layout = check_strictly(&file).unwrap();
    assert_eq!(layout.header.as_deref(), Some(header));
    assert_eq!((layout.rows, layout.start().line), (1, 1));
    assert_eq!(all(file.as_bytes(), &layout).unwrap().ids, ["a"]);
}

#[test]
fn only_exports_may_have_zero_vectors() {
    let header = "{\"isolith_export\":1}\n";
    let row = "{\"id\":\"a\",\"vector\":[0,0]}\n";
    assert!(check_strictly(row).is_err());
    assert_eq!(check_strictly(format!("{header}{row}")).unwrap().rows, 1);
}

#[test]
fn a_document_is_preferred_to_a_text() {
    let file = r#"{"id":"a","text":"no","embedding":[1],"document":"yes","x":{"y":[]}}"#;
    let layout = check_strictly(file).unwrap();
    assert_eq!(all(file.as_bytes(), &layout).unwrap().documents, [Some("yes".to_owned())]);
}

#[test]
fn bad_rows_are_skipped_if_allowed() {
    let lists = r#"{"ids":["a",7,"c","a","e","a"],"embeddings":[[1,2],[1,2],[1],[3,4],[NaN,1],[5,6]],"documents":["one","two","three","four","five",6]}"#;
    let lines = "{\"id\":\"a\",\"vector\":[1,2],\"text\":\"one\"}\n\
                 {\"id\":7,\"vector\":[1,2]}\n\n\
                 {\"id\":\"c\",\"vector\":[1]}\n\
                 {\"id\":\"a\",\"vector\":[3,4],\"text\":\"four\"}\n\
                 {\"id\":\"e\",\"vector\n\
                 {\"id\":\"a\",\"vector\":[5,6],\"text\":6}\n";
    for file in [lists, lines] {
        let layout = check_leniently(file).unwrap();
        assert_eq!((layout.rows, layout.rejected, layout.dimension), (6, 5, Some(2)));
        let rows: Vec<_> = layout.problems.iter().map(|problem| problem.row).collect();
        assert_eq!(rows, [2, 3, 4, 5, 6]);
        assert!(layout.is_rejected(2) && !layout.is_rejected(1) && !layout.is_rejected(0));
        assert_eq!(layout.problems[2].reason, r#"id "a" is already used by row 1"#);
        let batch = all(file.as_bytes(), &layout).unwrap();
        assert_eq!((batch.rows_covered, batch.ids.len()), (6, 1));
        assert_eq!(batch.documents, [Some("one".to_owned())]);
    }
}

#[test]
fn a_rejected_row_does_not_reserve_its_id() {
    let file = r#"{"ids":["a","a","a"],"embeddings":[[NaN],[1],[2]]}"#;
    let layout = check_leniently(file).unwrap();
    assert_eq!(all(file.as_bytes(), &layout).unwrap().vectors, [1.0]);
    assert_eq!(layout.problems[1].to_string(), r#"row 3: id "a" is already used by row 2"#);
}

#[test]
fn batches_respect_their_limits() {
    let layout = check_strictly(LISTS).unwrap();
    let content = LISTS.as_bytes();
    let mut batches = Batches::open(content, layout.clone(), layout.start()).unwrap();
    let mut sizes = Vec::new();
    while let Some(batch) = batches.next(2, usize::MAX).unwrap() {
        sizes.push((batch.first_row, batch.ids.len()));
    }
    assert_eq!(sizes, [(1, 2), (3, 1)]);

    // The first row has 1 + 1 + 7 + 8 bytes, the second 1 + 2 + 8, the third 1 + 1 + 2 + 8.
    for (max_bytes, expected) in
        [(0, vec![1, 1, 1]), (27, vec![1, 2]), (28, vec![2, 1]), (40, vec![3])]
    {
        let mut batches = Batches::open(content, layout.clone(), layout.start()).unwrap();
        let mut sizes = Vec::new();
        while let Some(batch) = batches.next(u64::MAX, max_bytes).unwrap() {
            sizes.push(batch.ids.len());
            assert_eq!(batch.next, batches.cursor());
        }
        assert_eq!(sizes, expected, "{max_bytes}");
    }
}

#[test]
fn changed_files_are_detected() {
    let layout = check_strictly(LISTS).unwrap();
    let open = |content: &str, cursor| {
        let content = content.as_bytes().to_vec();
        let mut batches = Batches::open(&content, layout.clone(), cursor)?;
        while batches.next(1, 1)?.is_some() {}
        Ok::<_, IntakeError>(())
    };
    let start = layout.start();
    open(LISTS, start).unwrap();
    for (content, says) in [
        (format!("{LISTS} "), "it had 111 bytes, now it has 112"),
        (LISTS.replace("[0,1]", "[0,x]"), "row 2: item 2 of embedding must be a number"),
        (LISTS.replace("[0,1]", "[100]"), "row 2: embedding has 1 number, expected 2"),
        (LISTS.replace(r#""b""#, r#"7  "#), "row 2: id must be text"),
        (LISTS.replace(r#""c"]"#, r#""c",]"#).replacen(' ', "", 1), "it had 111 bytes"),
        (LISTS.replace(r#""b","c""#, r#""b \"c""#), "row 3: truncated"),
        (LISTS.replace("[1,1]]", "[1],1]"), "row 3: embedding has 1 number"),
    ] {
        let error = open(&content, start).expect_err(&content);
        assert!(matches!(error, IntakeError::Changed { .. }), "{error}");
        assert!(error.to_string().contains(says), "{error}");
    }
    let beyond = Cursor { row: 4, ..start };
    assert!(matches!(open(LISTS, beyond), Err(IntakeError::BadCursor { row: 4, rows: 3 })));
    let far = Cursor { offsets: [u64::MAX; 4], ..start };
    assert!(matches!(open(LISTS, far), Err(IntakeError::BadCursor { .. })));
    let wrong = Cursor { row: 1, ..start };
    assert!(matches!(open(LISTS, wrong), Err(IntakeError::Changed { .. })));
    let after = Batches::open_after(LISTS.as_bytes(), layout.clone(), 4);
    assert!(matches!(after, Err(IntakeError::BadCursor { .. })));
}

#[test]
fn additional_rows_are_detected() {
    let file = "{\"id\":\"a\",\"vector\":[1]}\n                          ";
    let layout = check_strictly(file).unwrap();
    let grown = "{\"id\":\"a\",\"vector\":[1]}\n{\"id\":\"b\",\"vector\":[1]}   ";
    assert_eq!(file.len(), grown.len());
    let error = all(grown.as_bytes(), &layout).unwrap_err().to_string();
    assert!(error.ends_with("it had 1 row, now it has more"), "{error}");
}

#[test]
fn real_files_are_shared_by_several_readers() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("records.json");
    fs::write(&path, LISTS).unwrap();
    let file = File::open(&path).unwrap();
    let mut seen = Vec::new();
    let layout = validate(&file, &rules(OnError::Stop), &mut |done, total| {
        seen.push((done, total));
        ControlFlow::Continue(())
    })
    .unwrap();
    let length = LISTS.len() as u64;
    assert_eq!(seen.last(), Some(&(length, length)));
    let mut batches = Batches::open(&file, layout.clone(), layout.start()).unwrap();
    assert_eq!(batches.next(10, 1_000).unwrap().unwrap().ids, ["a", "b", "c"]);

    fs::write(&path, &LISTS[..50]).unwrap();
    assert!(matches!(
        Batches::open(&file, layout.clone(), layout.start()),
        Err(IntakeError::Changed { .. })
    ));
}

#[test]
fn layouts_and_cursors_are_plain_data() {
    let layout = check_leniently(r#"{"ids":["a",7],"embeddings":[[1],[2]]}"#).unwrap();
    let text = serde_json::to_string(&layout).unwrap();
    assert_eq!(serde_json::from_str::<crate::records::Layout>(&text).unwrap(), layout);
    let cursor = Cursor { row: 3, line: 4, offsets: [1, 2, 0, 9] };
    let text = serde_json::to_string(&cursor).unwrap();
    assert_eq!(text, r#"{"row":3,"line":4,"offsets":[1,2,0,9]}"#);
    assert_eq!(serde_json::from_str::<Cursor>(&text).unwrap(), cursor);
}

/// Checks a file whose documents may have to be embedded: those that contain a letter.
fn check_documents(content: &str, only: bool) -> Result<Layout, IntakeError> {
    let can_embed = |document: &str| document.contains(char::is_alphabetic);
    let source = match only {
        true => VectorSource::Documents(&can_embed),
        false => VectorSource::AsFirstRow(&can_embed),
    };
    let mut go_on = |_, _| ControlFlow::Continue(());
    validate_from(content.as_bytes(), &rules(OnError::Skip), source, &mut go_on)
}

#[test]
fn documents_take_the_place_of_vectors() {
    for file in [
        r#"{"ids":["a","b"],"documents":["x","y"],"metadatas":[null,{"k":1}]}"#,
        r#"{"embeddings":null,"documents":["x","y"],"ids":["a","b"]}"#,
        r#"{"documents":["x","y"],"embeddings":[null,null],"ids":["a","b"]}"#,
        "{\"id\":\"a\",\"document\":\"x\"}\n{\"id\":\"b\",\"text\":\"y\",\"vector\":null}",
        r#"[{"id":"a","document":"x"},{"id":"b","embedding":null,"document":"y"}]"#,
    ] {
        for only in [true, false] {
            let layout = check_documents(file, only).unwrap_or_else(|error| panic!("{error}"));
            assert!(layout.embedded, "{file}");
            assert_eq!((layout.rows, layout.rejected, layout.dimension), (2, 0, None));
            let batch = all(file.as_bytes(), &layout).unwrap();
            assert_eq!(batch.ids, ["a", "b"]);
            assert_eq!(batch.documents, [Some("x".to_owned()), Some("y".to_owned())]);
            assert_eq!(batch.vectors, [0.0; 0]);
        }
    }
}

#[test]
fn a_file_has_vectors_in_all_rows_or_in_none() {
    let reasons = |file: &str, only| {
        let layout = check_documents(file, only).unwrap();
        let problems: Vec<_> =
            layout.problems.iter().map(|it| (it.row, it.reason.clone())).collect();
        (layout.embedded, problems)
    };
    let mixed = "it has an embedding; either all rows have one or none";
    let own = "it has an embedding, but this collection embeds its documents itself";
    let nothing = "document is missing, so there is nothing to embed";
    let wordless = "document has no words to embed";
    for file in [
        r#"{"ids":["a","b","c","d"],"embeddings":[null,[1],null,null],"documents":["x","y",null,"7"]}"#,
        r#"{"documents":["x","y",null,"7"],"ids":["a","b","c","d"],"embeddings":[null,[1],null,null]}"#,
        r#"[{"id":"a","document":"x"},{"id":"b","document":"y","vector":[1]},{"id":"c"},{"id":"d","document":"7"}]"#,
    ] {
        for (only, unwanted) in [(false, mixed), (true, own)] {
            let (embedded, problems) = reasons(file, only);
            assert!(embedded, "{file}");
            let expected = [(2, unwanted), (3, nothing), (4, wordless)];
            assert_eq!(problems, expected.map(|(row, reason)| (row, reason.to_owned())), "{file}");
        }
    }
    let missing = "embedding is missing; either all rows have one or none";
    for file in [
        r#"{"documents":["7","y"],"ids":["a","b"],"embeddings":[[1],null]}"#,
        r#"[{"id":"a","document":"7","vector":[1]},{"id":"b","document":"y"}]"#,
    ] {
        let (embedded, problems) = reasons(file, false);
        assert_eq!((embedded, problems), (false, vec![(2, missing.to_owned())]), "{file}");
    }
    let error = check_documents(r#"{"ids":["a"]}"#, false).unwrap_err().to_string();
    assert_eq!(error, r#"the list "embeddings" is missing"#);
    let error = check_documents(r#"{"ids":["a"],"embeddings":[[1]]}"#, true).unwrap_err();
    assert_eq!(error.to_string(), r#"the list "documents" is missing"#);
}

#[test]
fn all_problems_of_many_rows_are_counted() {
    let rows = 3_000;
    let ids: Vec<String> = (0..rows).map(|row| format!("\"{}\"", row.max(1))).collect();
    let documents = vec!["\"7\""; rows - 1].join(",");
    let file = format!(r#"{{"ids":[{}],"documents":["x",{documents}]}}"#, ids.join(","));
    let layout = check_documents(&file, true).unwrap();
    assert_eq!((layout.rejected, layout.problems.len()), (rows as u64 - 1, 1_000));
    assert!(layout.problems.iter().all(|problem| problem.reason.contains("no words")));
}
