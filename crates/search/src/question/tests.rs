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
        assert_eq!(Question::of(text).identifiers().join(" "), expected, "{text}");
    }
}

#[test]
fn files_are_named_like_words_in_a_row() {
    let mut stemmer = Stemmer::new();
    for (text, stem, most, expected) in [
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
        let question = Question::of(text);
        assert_eq!(question.has_run(stem, most, &mut stemmer), expected, "{text}: {stem}");
    }
}

#[test]
fn questions_ask_for_kinds_of_files() {
    for (text, expected) in [
        ("tests of the parser", &[Role::Test][..]),
        ("example of a custom middleware", &[Role::Example]),
        ("docs and benchmarks", &[Role::Benchmark, Role::Docs]),
        ("test_client", &[Role::Test]),
        ("TestClient", &[]),
        ("legacy vendored code", &[Role::Compat, Role::Vendored]),
        ("json documents", &[]),
    ] {
        let asked: Vec<Role> = Question::of(text).asked().iter().collect();
        assert_eq!(asked, expected, "{text}");
    }
}

#[test]
fn files_are_asked_for_by_name() {
    let question = Question::of("what is in `src/Package.json`, and why (see README.md).");
    for (path, expected) in
        [("package.json", true), ("a/b/README.md", true), ("a/json", false), ("json", false)]
    {
        assert_eq!(question.names_file(path), expected, "{path}");
    }
}

#[test]
fn names_are_more_or_less_like_the_question() {
    let mut stemmer = Stemmer::new();
    let question = Question::of("where does RetryPolicy wait between retries");
    let mut likeness = |name: &str| question.likeness(name, &mut stemmer);
    assert_eq!(likeness("RetryPolicy"), 3.0);
    assert_eq!(likeness("retrypolicy"), 2.0);
    assert_eq!(likeness("wait_retry"), 1.0);
    assert_eq!(likeness("retry_count"), 0.5);
    assert_eq!(likeness("between"), 0.0);
    assert_eq!(likeness(""), 0.0);
}

#[test]
fn a_book_is_a_question_of_limited_size() {
    let book: String = (0..100_000).map(|n| format!("someName{n} \u{e9}")).collect();
    let question = Question::of(&book);
    assert!(question.runs.len() <= 4 * MAX_WORDS * LONGEST_RUN);
    assert_eq!(question.identifiers.len(), MAX_IDENTIFIERS);
}
