use super::*;

#[test]
fn names_written_as_in_code_are_identifiers() {
    for (text, expected) in [
        ("where is RetryPolicy used", "RetryPolicy"),
        ("how does parse_header call readLine?", "parse_header readLine"),
        ("Queue", "Queue"),
        ("response", "response"),
        ("Sinatra::Base", "Sinatra Base"),
        ("  client.send() ", "client send"),
        ("Hash#fetch", "Hash fetch"),
        ("empty?", "empty"),
        ("what does `retry` do", "retry"),
        ("calls of close()", "close"),
        ("the std::vec module", "std vec"),
        ("__init__ of the package", "__init__"),
        ("MAX_RETRIES and MAX_RETRIES", "MAX_RETRIES"),
        ("HTTP server over TCP", ""),
        ("connection pooling and TCP connector", ""),
        ("WebSocket client", "WebSocket"),
        ("1_000", ""),
        ("2nd", ""),
        ("- -> ::", ""),
        ("", ""),
    ] {
        assert_eq!(CodeQuery::parse(text).identifiers().join(" "), expected, "{text}");
    }
}

#[test]
fn file_stems_match_consecutive_words() {
    let mut stemmer = Stemmer::new();
    for (text, stem, max_words, expected) in [
        ("how does the rate limiter work", "rate_limiter", 5, true),
        ("how does the rate limiter work", "RateLimiters", 5, true),
        ("how does the rate limiter work", "ratelimiter", 5, true),
        ("how does the rate limiter work", "limiter", 5, true),
        ("how does the rate limiter work", "rate_limiter", 1, false),
        ("how does the rate limiter work", "the", 5, false),
        ("how does the rate limiter work", "rate_limiter_work_queue", 5, false),
        ("restore to a point in time", "point_in_time", 5, true),
        ("restore to a point in time", "in", 5, false),
        ("errors and exceptions", "error_exception", 5, true),
        ("what FunctionK is", "functionk", 5, true),
        ("HTTP2Server settings", "http2_server", 5, true),
        ("middleware execution", "middlewares", 5, true),
        ("anything", "", 5, false),
        ("", "anything", 5, false),
    ] {
        let query = CodeQuery::parse(text);
        assert_eq!(query.matches_stem(stem, max_words, &mut stemmer), expected, "{text}: {stem}");
    }
}

#[test]
fn queries_request_file_roles() {
    for (text, expected) in [
        ("tests of the parser", &[FileRole::Test][..]),
        ("example of a custom middleware", &[FileRole::Example]),
        ("docs and benchmarks", &[FileRole::Benchmark, FileRole::Docs]),
        ("test_client", &[FileRole::Test]),
        ("TestClient", &[]),
        ("legacy vendored code", &[FileRole::Compat, FileRole::Vendored]),
        ("json documents", &[]),
    ] {
        let roles: Vec<FileRole> = CodeQuery::parse(text).requested_roles().iter().collect();
        assert_eq!(roles, expected, "{text}");
    }
}

#[test]
fn mentioned_files_are_recognized() {
    let query = CodeQuery::parse("what is in `src/Package.json`, and why (see README.md).");
    for (path, expected) in
        [("package.json", true), ("a/b/README.md", true), ("a/json", false), ("json", false)]
    {
        assert_eq!(query.mentions_file(path), expected, "{path}");
    }
}

#[test]
fn name_similarity_counts_shared_words() {
    let mut stemmer = Stemmer::new();
    let query = CodeQuery::parse("where does RetryPolicy wait between retries");
    let mut similarity = |name: &str| query.name_similarity(name, &mut stemmer);
    assert_eq!(similarity("RetryPolicy"), 3.0);
    assert_eq!(similarity("retrypolicy"), 2.0);
    assert_eq!(similarity("wait_retry"), 1.0);
    assert_eq!(similarity("retry_count"), 0.5);
    assert_eq!(similarity("between"), 0.0);
    assert_eq!(similarity(""), 0.0);
}

#[test]
fn long_queries_are_truncated() {
    let text: String = (0..100_000).map(|n| format!("someName{n} \u{e9}")).collect();
    let query = CodeQuery::parse(&text);
    assert!(query.runs.len() <= 4 * MAX_WORDS * MAX_RUN_WORDS);
    assert_eq!(query.identifiers.len(), MAX_IDENTIFIERS);
}
