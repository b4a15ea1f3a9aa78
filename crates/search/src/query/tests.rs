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

#[test]
fn a_query_may_be_a_qualified_name() {
    for (text, name, path, qualified, expected) in [
        ("Model.save", "save", "django/db/models/base.py", "Model.save", 1.0),
        ("Model.save", "save", "django/forms/models.py", "BaseModelForm.save", 0.0),
        ("django.db.models.Model", "Model", "django/db/models/base.py", "Model", 1.0),
        ("django.db.models.Model", "Model", "tests/models.py", "Model", 1.0 / 3.0),
        ("foo::bar", "bar", "src/foo.rs", "bar", 1.0),
        ("foo::bar", "bar", "src/foo.rs", "Builder.bar", 0.8),
        ("Client.get", "get", "test/client.py", "Client.get", 1.0),
        ("Client.get", "get", "test/client.py", "AsyncClient.get", 0.8),
        ("foo::bar", "bar", "src/foo/mod.rs", "bar", 1.0),
        ("Foo#bar()", "bar", "lib/x.rb", "A.Foo.bar", 1.0),
        ("pkg.Func", "Func", "pkg/server.go", "Func", 1.0),
        ("a.b.c", "c", "x/b/a.rs", "c", 0.5),
        ("x.get", "get", "a.b/x", "get", 1.0),
        ("x.get", "get", "", "", 0.0),
        ("get", "get", "x.py", "X.get", 0.0),
    ] {
        let query = CodeQuery::parse(text);
        assert_eq!(query.symbol_name(), Some(name), "{text}");
        assert_eq!(query.is_qualified(), text != name, "{text}");
        assert_eq!(query.qualification(path, qualified), expected, "{text} {path} {qualified}");
    }
    assert_eq!(CodeQuery::parse("where is Model.save called").symbol_name(), None);
}

#[test]
fn some_identifiers_may_be_completed() {
    for (text, expected) in [
        ("prefetch_rel", "prefetch_rel"),
        ("where does prefetch_rel load rows", "prefetch_rel"),
        ("Model.prefetch", "prefetch"),
        ("semaphroe", "semaphroe"),
        ("what does `semaphroe` do", ""),
        ("a semaphore", ""),
        ("get", ""),
        ("Cargo.toml", ""),
        ("toml", "toml"),
        ("", ""),
    ] {
        let query = CodeQuery::parse(text);
        assert_eq!(query.completable().collect::<Vec<_>>().join(" "), expected, "{text}");
    }
}

#[test]
fn similar_names_replace_those_asked_for() {
    let similar = |asked: &str, names: &[&str]| SimilarNames {
        asked: asked.to_owned(),
        names: names.iter().map(|name| (*name).to_owned()).collect(),
    };
    let found = [similar("prefetch_rel", &["prefetch_related", "prefetch_related_objects"])];
    let (text, query) = CodeQuery::parse_with("QuerySet.prefetch_rel()", &found);
    assert_eq!(text, "QuerySet.prefetch_related()");
    assert_eq!(query.identifiers(), ["QuerySet", "prefetch_related", "prefetch_related_objects"]);
    assert!(query.is_named("prefetch_related") && query.is_named("prefetch_related_objects"));
    assert!(query.is_similar("prefetch_related") && !query.is_similar("QuerySet"));
    let (text, query) = CodeQuery::parse_with("é prefetch_rel x_prefetch_rel?", &found);
    assert_eq!(text, "é prefetch_related x_prefetch_rel?");
    assert!(!query.is_named("prefetch_related"));
}
