//! Tests of the files that are served, and of signing in.

use axum::http::Request;

use super::sign_in::{LINK_LIFE, MAX_SESSIONS, SESSION_LIFE};
use super::*;
use crate::http::Token;

const TOKEN: &str = "0123456789abcdef";

/// The quoted texts after each occurrence of a word.
fn quoted<'t>(text: &'t str, word: &'t str) -> impl Iterator<Item = &'t str> {
    text.split(word).skip(1).filter_map(|rest| rest.strip_prefix('"')?.split('"').next())
}

/// The pages' own tests are in web/: here they may be missing.
#[test]
fn what_the_page_loads_exists_and_nothing_is_inline() {
    let Some(page) = assets::find("/") else { return };
    let page = String::from_utf8(page.unpacked().to_vec()).unwrap();
    let loaded: Vec<&str> = quoted(&page, "href=").chain(quoted(&page, "src=")).collect();
    for path in loaded.iter().filter(|path| path.starts_with('/')) {
        let asset = assets::find(path).unwrap_or_else(|| panic!("{path}"));
        assert!(asset.is_immutable() && !asset.unpacked().is_empty(), "{path}");
    }
    assert!(loaded.iter().any(|path| path.ends_with(".js")), "{page}");
    for bad in ["<script>", "<style", " style=", "javascript:", "https://"] {
        assert!(!page.contains(bad), "{bad}");
    }
}

#[test]
fn without_the_pages_a_page_says_how_to_get_them() {
    for expected in ["cargo xtask web", "isolith status", "<title>Isolith</title>"] {
        assert!(NO_PAGES.contains(expected), "{expected}");
    }
    for bad in ["<script", "<style", " style=", "src=", "://"] {
        assert!(!NO_PAGES.contains(bad), "{bad}");
    }
}

#[test]
fn gzip_is_sent_to_those_who_accept_it() {
    for (element, accepted) in [
        ("gzip", true),
        (" gzip;q=0.5", true),
        ("gzip;q=0", false),
        ("gzip; q=0.0", false),
        ("br", false),
        ("", false),
    ] {
        assert_eq!(accepts_gzip(element), accepted, "{element}");
    }
}

type Headers<'h> = &'h [(&'h str, &'h str)];

fn parts(method: &str, path: &str, headers: Headers<'_>) -> Parts {
    let mut request = Request::builder().method(method).uri(path).header("Host", "localhost:7411");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(()).unwrap().into_parts().0
}

#[test]
fn only_known_files_are_public() {
    for (method, path, public) in [
        ("GET", "/", true),
        ("HEAD", "/", true),
        ("GET", "/?v=1", true),
        ("POST", "/", false),
        ("GET", "/ui/", false),
        ("GET", "/ui/other.js", false),
        ("GET", "/ui/../v1/status", false),
        ("GET", "/v1/status", false),
        ("GET", "/ui/session", false),
    ] {
        assert_eq!(is_asset(&parts(method, path, &[])), public, "{method} {path}");
    }
}

#[test]
fn a_link_works_once_and_not_for_long() {
    let sign_in = SignIn::new(Some(Token::new(TOKEN).unwrap()));
    let now = Instant::now();
    let link = sign_in.new_link(now).unwrap().unwrap();
    assert!(sign_in.by_link("0".repeat(64).as_str(), now).is_none());
    assert!(sign_in.by_link(TOKEN, now).is_none(), "the token is not a link");
    assert!(sign_in.by_link(&link, now).is_some());
    assert!(sign_in.by_link(&link, now).is_none(), "used");
    let link = sign_in.new_link(now).unwrap().unwrap();
    assert!(sign_in.by_link(&link, now + LINK_LIFE).is_none(), "expired");
    assert!(sign_in.by_token("0123456789abcdeX", now).is_none());
    assert!(sign_in.by_token(&link, now).is_none(), "a link is not the token");
    let open = SignIn::new(None);
    assert!(open.new_link(now).unwrap().is_none() && open.by_token(TOKEN, now).is_none());
}

#[test]
fn a_cookie_counts_only_with_the_key_and_for_the_api() {
    let sign_in = SignIn::new(Some(Token::new(TOKEN).unwrap()));
    let now = Instant::now();
    let session = sign_in.by_token(TOKEN, now).unwrap();
    let cookie = format!("other=1; isolith-session-7411={}", session.cookie);
    let (cookie, key) = (("Cookie", cookie.as_str()), ("X-Isolith-UI", session.key.as_str()));
    let wrong = session.key.replace(|letter: char| letter != 'f', "f");
    let table: &[(&str, Headers<'_>, Passage)] = &[
        ("/v1/status", &[cookie, key], Passage::Granted),
        ("/v1/status", &[cookie, key, ("Sec-Fetch-Site", "same-origin")], Passage::Granted),
        ("/v1/status", &[cookie, key, ("Origin", "http://localhost:7411")], Passage::Granted),
        // A page of another server on this machine, to which browsers send the cookie as well.
        ("/v1/status", &[cookie, key, ("Sec-Fetch-Site", "same-site")], Passage::Foreign),
        ("/v1/status", &[cookie, key, ("Sec-Fetch-Site", "none")], Passage::Foreign),
        ("/v1/status", &[cookie, key, ("Origin", "http://localhost:9999")], Passage::Foreign),
        ("/v1/status", &[cookie, key, ("Origin", "null")], Passage::Foreign),
        ("/v1/status", &[cookie], Passage::Refused),
        ("/v1/status", &[cookie, ("X-Isolith-UI", "1")], Passage::Refused),
        ("/v1/status", &[cookie, ("X-Isolith-UI", &wrong)], Passage::Refused),
        ("/v1/status", &[key], Passage::Refused),
        ("/v1/status", &[], Passage::Refused),
        ("/mcp", &[cookie, key], Passage::Refused),
        ("/api/v2/tenants", &[cookie, key], Passage::Refused),
        ("/metrics", &[cookie, key], Passage::Refused),
        ("/v1/status", &[("Authorization", "Bearer 0123456789abcdef")], Passage::Granted),
        ("/mcp", &[("Authorization", "Bearer 0123456789abcdef")], Passage::Granted),
    ];
    for (path, headers, expected) in table {
        let found = sign_in.check(&parts("POST", path, headers), now);
        assert_eq!(found, *expected, "{path} {headers:?}");
    }
    let good = parts("GET", "/v1/status", &[cookie, key]);
    let later = now + SESSION_LIFE / 2;
    assert_eq!(sign_in.check(&good, later), Passage::Granted);
    assert_eq!(sign_in.check(&good, later + SESSION_LIFE / 2), Passage::Granted, "it is in use");
    assert_eq!(sign_in.check(&good, later + SESSION_LIFE * 2), Passage::Refused);
    assert_eq!(SignIn::new(None).check(&parts("GET", "/v1/status", &[]), now), Passage::Open);
}

#[test]
fn sessions_end_on_request_and_when_there_are_too_many() {
    let sign_in = SignIn::new(Some(Token::new(TOKEN).unwrap()));
    let now = Instant::now();
    let request = |session: &sign_in::Begun, key: &str| {
        let cookie = format!("isolith-session-7411={}", session.cookie);
        parts("GET", "/v1/status", &[("Cookie", &cookie), ("X-Isolith-UI", key)])
    };
    let first = sign_in.by_token(TOKEN, now).unwrap();
    let known = request(&first, &first.key);
    sign_in.end(&request(&first, "other").headers);
    assert_eq!(sign_in.check(&known, now), Passage::Granted, "only its owner ends it");
    sign_in.end(&known.headers);
    assert_eq!(sign_in.check(&known, now), Passage::Refused);
    let first = sign_in.by_token(TOKEN, now).unwrap();
    for _ in 0..MAX_SESSIONS {
        assert!(sign_in.by_token(TOKEN, now).is_some());
    }
    assert_eq!(sign_in.check(&request(&first, &first.key), now), Passage::Refused);
}
