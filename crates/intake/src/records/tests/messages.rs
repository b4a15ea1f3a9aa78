use isolith_types::{Code, Failure, Hint, Metric};

use super::{check, check_leniently, check_strictly, rules};
use crate::records::{IntakeError, OnError, Rules};

fn says(content: impl AsRef<[u8]>) -> String {
    check_strictly(content).expect_err("the file is refused").to_string()
}

#[track_caller]
fn assert_says(table: &[(&str, &str)]) {
    for (content, message) in table {
        assert_eq!(says(content), *message, "for {content}");
    }
}

#[test]
fn files_without_records_are_described() {
    assert_says(&[
        ("", "the file is empty"),
        ("\u{feff}  \n ", "the file is empty"),
        ("{}", "the file contains an empty JSON object, not records"),
        ("\"text\"", "the file contains one JSON text, not records"),
        ("[1,2,3]", "the file contains a JSON list that begins with a number, not records"),
        ("[[1]]", "the file contains a JSON list that begins with a list, not records"),
        (
            r#"{"title":"x","rows":[[1,2]]}"#,
            "the file contains a JSON object with the keys title, rows, not records",
        ),
        (
            "{\"url\":1}\n{\"url\":2}\n",
            "the file contains a JSON object with the keys url, not records",
        ),
        (
            "id,text\na,b\n",
            "the file contains text that is neither a JSON object nor a JSON list, not records",
        ),
        ("PAR1\0\0", "the file contains a Parquet file, not records"),
        ("\u{1}\u{2}", "the file contains binary data, not records"),
    ]);
    assert_eq!(
        says(b"\x1F\x8B\x08\x00"),
        "the file contains gzip data (unpack it first), not records"
    );
    assert_eq!(
        says(b"\xFF\xFE{\0"),
        "the file contains UTF-16 text (convert it to UTF-8), not records"
    );
    let hint = check_strictly("{}").unwrap_err().hint().for_terminal();
    assert!(hint.contains(r#"{"ids":["a"],"embeddings":[[0.1,0.2]]"#), "{hint}");
    assert!(hint.contains(r#"{"id":"a","embedding":[0.1,0.2]"#), "{hint}");
}

#[test]
fn lists_of_the_wrong_shape_are_refused() {
    assert_says(&[
        (r#"{"ids":["a"]}"#, r#"the list "embeddings" is missing"#),
        (r#"{"ids":["a"],"embeddings":null}"#, r#"the list "embeddings" is missing"#),
        (r#"{"embeddings":[[1]]}"#, r#"the list "ids" is missing"#),
        (r#"{"chromadb_ready":{}}"#, r#"the list "ids" is missing"#),
        (
            r#"{"chromadb_ready":[1]}"#,
            r#""chromadb_ready" must be an object of lists, found a list (byte 18)"#,
        ),
        (
            r#"{"ids":{"a":1},"embeddings":[[1]]}"#,
            r#""ids" must be a list, found an object (byte 7)"#,
        ),
        (
            r#"{"ids":["a","b"],"embeddings":[[1],[2],[3]],"documents":[]}"#,
            "the lists differ in length: ids has 2, embeddings has 3, documents has 0",
        ),
        (r#"{"ids":["a"],"embeddings":[[1]],"ids":["b"]}"#, r#"duplicate key "ids" at byte 38"#),
        (
            r#"{"chromadb_ready":{},"chromadb_ready":{}}"#,
            r#"duplicate key "chromadb_ready" at byte 21"#,
        ),
    ]);
}

#[test]
fn broken_json_is_reported_with_its_position() {
    assert_says(&[
        (r#"{"ids":["a","#, "the file is truncated: it ends at byte 12 (row 2 of ids)"),
        (
            r#"{"ids":["a"],"embeddings":[[1,2"#,
            "the file is truncated: it ends at byte 31 (row 1 of embeddings)",
        ),
        (r#"{"ids":["a"],"embeddings":[[1]]"#, "the file is truncated: it ends at byte 31"),
        (
            r#"{"ids":["a" "b"]}"#,
            "the file is not JSON at byte 12 (row 2 of ids): expected a comma or ], found '\"'",
        ),
        (
            r#"{"ids":["a",]}"#,
            "the file is not JSON at byte 12 (row 2 of ids): expected a value, found ']'",
        ),
        (
            r#"{"ids":["a"],"embeddings":[[1}]}"#,
            "the file is not JSON at byte 29 (row 1 of embeddings): expected ] or a member, found '}'",
        ),
        (r#"{"x" 1}"#, "the file is not JSON at byte 5: expected a colon, found '1'"),
        ("{x:1}", "the file is not JSON at byte 1: expected a key in quotes, found 'x'"),
        (
            r#"{"ids":[],"embeddings":[]} more"#,
            "the file is not JSON at byte 27: expected the end of the file, found 'm'",
        ),
        (
            r#"{"ids":["a"],"embeddings":[[1]]}{"ids":[],"embeddings":[]}"#,
            "the file is not JSON at byte 32: expected the end of the file, found '{'",
        ),
        (r#"[{"id":"a","embedding":[1]},"#, "the file is truncated: it ends at byte 28 (row 2)"),
    ]);
    let deep = format!(r#"{{"other":{}"#, "[".repeat(1_000));
    assert_eq!(says(deep), "lists or objects are nested too deeply at byte 129");
}

/// Why a file of lists with this second row is refused.
fn reason_in_lists(id: &str, vector: &str, metadata: &str, document: &str) -> String {
    let file = format!(
        r#"{{"ids":["a",{id}],"embeddings":[[1,2],{vector}],"metadatas":[null,{metadata}],"documents":["x",{document}]}}"#
    );
    let message = says(&file);
    let reason = message.strip_prefix("1 of 2 rows cannot be used: row 2: ");
    reason.unwrap_or_else(|| panic!("{message}")).to_owned()
}

/// Why a file of lines with this second row is refused.
fn reason_in_lines(id: &str, vector: &str, metadata: &str, document: &str) -> String {
    let good = r#"{"id":"a","embedding":[1,2]}"#;
    let message = says(format!(
        "\n{good}\n\n{{\"id\":{id},\"vector\":{vector},\"metadata\":{metadata},\"text\":{document}}}\n"
    ));
    let reason = message.strip_prefix("1 of 2 rows cannot be used: row 2 (line 4): ");
    reason.unwrap_or_else(|| panic!("{message}")).to_owned()
}

#[test]
fn unusable_rows_are_reported_with_a_reason() {
    let long = format!("{:?}", "x".repeat(1_001));
    let table: &[([&str; 4], &str)] = &[
        (["7", "[1,2]", "{}", "null"], "id must be text, found the number 7: put it in quotes"),
        (["null", "[1,2]", "{}", "null"], "id must be text, found null"),
        (["[]", "[1,2]", "{}", "null"], "id must be text, found a list"),
        ([r#""""#, "[1,2]", "{}", "null"], "id is empty"),
        ([&long, "[1,2]", "{}", "null"], "id has 1001 bytes, at most 1000 are allowed"),
        ([r#""a""#, "[1,2]", "{}", "null"], r#"id "a" is already used by row 1"#),
        ([r#""\u0061""#, "[1,2]", "{}", "null"], r#"id "a" is already used by row 1"#),
        ([r#""b""#, "[1]", "{}", "null"], "embedding has 1 number, expected 2"),
        ([r#""b""#, "[]", "{}", "null"], "embedding is empty"),
        ([r#""b""#, "null", "{}", "null"], "embedding must be a list of numbers, found null"),
        ([r#""b""#, "\"x\"", "{}", "null"], "embedding must be a list of numbers, found text"),
        (
            [r#""b""#, "[0.0,-0]", "{}", "null"],
            "embedding is all zeros, for which cosine distance is undefined",
        ),
        (
            [r#""b""#, "[2e18,0]", "{}", "null"],
            "embedding is longer than 1e18, too long to compute distances",
        ),
        ([r#""b""#, "[1,NaN]", "{}", "null"], "number 2 of embedding is NaN, which is not finite"),
        (
            [r#""b""#, "[-Infinity,1]", "{}", "null"],
            "number 1 of embedding is -Infinity, which is not finite",
        ),
        (
            [r#""b""#, "[1,3.5e38]", "{}", "null"],
            "number 2 of embedding is 3.5e38, too large for a 32-bit float",
        ),
        ([r#""b""#, "[1,2]", "[1]", "null"], "metadata must be an object or null, found a list"),
        (
            [r#""b""#, "[1,2]", r#"{"k":{"l":1}}"#, "null"],
            r#"metadata key "k" must hold text, a number, a boolean, null or a list of these"#,
        ),
        (
            [r#""b""#, "[1,2]", r#"{"k":NaN}"#, "null"],
            "metadata is not JSON: expected value at line 1 column 6 (NaN and Infinity are not JSON)",
        ),
        ([r#""b""#, "[1,2]", "{}", "17"], "document must be text or null, found a number"),
        ([r#""b""#, "[1,2]", "{}", "NaN"], "document must be text or null, found NaN"),
        ([r#""b""#, "[1,2]", "{}", "true"], "document must be text or null, found true or false"),
    ];
    for ([id, vector, metadata, document], reason) in table {
        assert_eq!(reason_in_lists(id, vector, metadata, document), *reason);
        assert_eq!(reason_in_lines(id, vector, metadata, document), *reason);
    }
}

#[test]
fn reasons_include_the_byte_offset() {
    for (vector, document, reason) in [
        ("[1,x]", "null", "item 2 of embedding must be a number, found x (byte 40)"),
        ("[1,null]", "null", "item 2 of embedding must be a number, found null (byte 40)"),
        ("[1,\"2\"]", "null", "item 2 of embedding must be a number, found text (byte 40)"),
        ("[1,01]", "null", "item 2 of embedding must be a number, found 01 (byte 40)"),
        ("[1,]", "null", "item 2 of embedding must be a number, found nothing (byte 40)"),
        ("[1 2]", "null", "not JSON at byte 40: expected a comma or ], found '2'"),
        (
            "[1,2]",
            r#""a \uD800 b""#,
            "document is not a valid JSON string: unexpected end of hex escape (near byte 92)",
        ),
        ("[1,2]", r#""\q""#, "document is not a valid JSON string: invalid escape (near byte 85)"),
        (
            "[1,2]",
            "\"a\nb\"",
            "document is not a valid JSON string: control character (\\u0000-\\u001F) found while parsing a string (near byte 86)",
        ),
    ] {
        assert_eq!(reason_in_lists("\"b\"", vector, "{}", document), reason, "{vector} {document}");
    }
}

#[test]
fn invalid_utf8_is_reported_with_its_byte_offset() {
    let lists = b"{\"ids\":[\"a\"],\"embeddings\":[[1]],\"documents\":[\"ab\xFFcd\"]}";
    assert_eq!(says(lists), "1 of 1 row cannot be used: row 1: document is not UTF-8 at byte 48");
    let lists = b"{\"ids\":[\"\xC3\"],\"embeddings\":[[1]]}";
    assert_eq!(says(lists), "1 of 1 row cannot be used: row 1: id is not UTF-8 at byte 9");
    let line = b"{\"id\":\"a\",\"vector\":[1],\"metadata\":{\"k\":\"\xE2\x82\"}}";
    assert_eq!(
        says(line),
        "1 of 1 row cannot be used: row 1 (line 1): metadata is not UTF-8 at byte 40"
    );
}

#[test]
fn lines_that_are_not_records_are_reported() {
    for (line, reason) in [
        ("17", "a record must be an object, found a number"),
        ("{\"id\":\"b\",\"embedding\":[1,2", "truncated at byte 55"),
        ("{\"id\":\"b\"}", "embedding is missing, and this collection does not embed documents"),
        ("{\"embedding\":[1,2]}", "id is missing"),
        (
            r#"{"id":"b","embedding":[1,2]} 7"#,
            "not JSON at byte 58: expected the end of the record, found '7'",
        ),
        (
            r#"{"id":"b","embedding":[1,2],"vector":[1,2]}"#,
            r#"it has both "embedding" and "vector""#,
        ),
        (r#"{"id":"b","id":"c","embedding":[1,2]}"#, r#"duplicate key "id""#),
    ] {
        let message = says(format!("{{\"id\":\"a\",\"embedding\":[1,2]}}\n{line}\n"));
        assert_eq!(message, format!("1 of 2 rows cannot be used: row 2 (line 2): {reason}"));
    }
    assert_eq!(
        says("{\"id\":\"a\",\"embedding\":[1]}\n{\"isolith_export\":1}\n"),
        "another collection begins at line 2"
    );
    assert_eq!(
        says("{\"isolith_export\":nan}\n"),
        "the file contains an export whose first line cannot be read, not records"
    );
}

#[test]
fn many_bad_rows_are_counted_and_the_first_are_shown() {
    let file = r#"{"ids":["a","a","a","a","a","a","a","b"],"embeddings":[[1],[1],[1],[1],[1],[1],[1],[1]]}"#;
    let error = check_strictly(file).unwrap_err();
    let message = error.to_string();
    assert!(message.starts_with("6 of 8 rows cannot be used: row 2: id \"a\""), "{message}");
    assert!(message.ends_with("row 6: id \"a\" is already used by row 1; and 1 more"), "{message}");
    let IntakeError::BadRows { problems, .. } = &error else { panic!("{error}") };
    assert_eq!(problems.len(), 6);
    let failure = Failure::from(&error);
    assert_eq!(failure.code, Code::BadInput);
    assert_eq!(failure.hint, Some(Hint::SkipBadRecords));
}

#[test]
fn the_rules_are_applied() {
    let file = br#"{"ids":["a"],"embeddings":[[0,0]]}"#;
    let with = |dimension, metric| {
        let rules = Rules { dimension, metric, on_error: OnError::Stop };
        check(file, &rules).map(|layout| layout.dimension).map_err(|error| error.to_string())
    };
    assert_eq!(with(None, Metric::L2), Ok(Some(2)));
    assert_eq!(with(Some(2), Metric::Dot), Ok(Some(2)));
    assert_eq!(
        with(Some(3), Metric::L2),
        Err("1 of 1 row cannot be used: row 1: embedding has 2 numbers, expected 3".to_owned())
    );
    assert!(with(None, Metric::Cosine).is_err());
}

#[test]
fn a_file_without_usable_rows_is_refused_even_if_rows_may_be_skipped() {
    let error = check_leniently(r#"{"ids":[1,2],"embeddings":[[1],[1]]}"#).unwrap_err();
    assert!(error.to_string().starts_with("2 of 2 rows cannot be used: row 1: id"), "{error}");
    assert!(
        error.hint().for_terminal().starts_with("no row is left to be loaded"),
        "{}",
        error.hint().for_terminal()
    );
    let pretty = "{\n  \"id\": \"a\",\n  \"embedding\": [1]\n}\n";
    assert!(check_leniently(pretty).is_err());
}

#[test]
fn vectors_with_too_many_numbers_are_refused() {
    let vector = |count: usize| format!("[{}1]", "1,".repeat(count - 1));
    let file = |count| format!(r#"{{"ids":["a"],"embeddings":[{}]}}"#, vector(count));
    assert_eq!(check_strictly(file(65_536)).unwrap().dimension, Some(65_536));
    assert_eq!(
        says(file(65_537)),
        "1 of 1 row cannot be used: row 1: embedding has more than 65536 numbers"
    );
}

#[test]
fn every_error_has_a_code_and_a_matching_hint() {
    let lengths = check_strictly(r#"{"ids":["a"],"embeddings":[]}"#).unwrap_err();
    assert!(lengths.hint().for_terminal().contains("null"), "{}", lengths.hint().for_terminal());
    let missing = check_strictly(r#"{"ids":["a"],"embeddings":null}"#).unwrap_err();
    assert!(
        missing.hint().for_terminal().contains("include="),
        "{}",
        missing.hint().for_terminal()
    );
    assert_eq!(missing.code(), Code::BadInput);
    let io = IntakeError::Io(std::io::ErrorKind::NotFound.into());
    assert_eq!(io.code(), Code::NotFound);
    let cancelled =
        crate::records::validate("{}".as_bytes(), &rules(OnError::Stop), &mut |_, _| {
            std::ops::ControlFlow::Break(())
        });
    assert!(matches!(cancelled, Err(IntakeError::Cancelled)));
    assert!(check_leniently("{").is_err());
}
