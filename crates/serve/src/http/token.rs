//! The token that clients must send.

use axum::http::{HeaderMap, HeaderValue, header};
use isolith_types::{Code, Failure};

/// The header in which clients of Chroma may send the token.
const CHROMA_TOKEN: &str = "x-chroma-token";

const MIN_LENGTH: usize = 16;

/// A token, stored as a hash.
#[derive(Clone)]
pub struct Token(blake3::Hash);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(…)")
    }
}

impl Token {
    /// Checks and hashes a token.
    ///
    /// # Errors
    /// `usage` if it is shorter than 16 characters or not printable ASCII without spaces.
    pub fn new(text: &str) -> Result<Self, Failure> {
        if text.len() < MIN_LENGTH || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            let message = format!(
                "a token needs at least {MIN_LENGTH} characters: ASCII letters, digits or punctuation"
            );
            return Err(Failure::new(Code::Usage, message)
                .with_hint("`openssl rand -hex 32` generates one"));
        }
        Ok(Self(blake3::hash(text.as_bytes())))
    }

    /// Whether this is the token. Hashes are compared in constant time.
    pub(crate) fn is(&self, token: &str) -> bool {
        blake3::hash(token.trim().as_bytes()) == self.0
    }

    /// Whether a request has the token.
    pub(crate) fn matches(&self, headers: &HeaderMap) -> bool {
        let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
        let bearer = |value: &'_ str| match value.trim().split_once(' ') {
            Some((scheme, token)) => scheme.eq_ignore_ascii_case("bearer") && self.is(token),
            None => false,
        };
        text(header::AUTHORIZATION.as_str()).is_some_and(bearer)
            || text(CHROMA_TOKEN).is_some_and(|value| self.is(value) || bearer(value))
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn authorization(value: &str) -> HeaderMap {
        let value = HeaderValue::from_str(value).unwrap();
        HeaderMap::from_iter([(header::AUTHORIZATION, value)])
    }

    #[test]
    fn clients_of_chroma_may_use_their_own_header() {
        let token = Token::new("0123456789abcdef").unwrap();
        for (value, expected) in [
            ("0123456789abcdef", true),
            ("Bearer 0123456789abcdef", true),
            ("0123456789abcdeg", false),
            ("", false),
        ] {
            let value = HeaderValue::from_str(value).unwrap();
            let headers = HeaderMap::from_iter([(CHROMA_TOKEN.parse().unwrap(), value)]);
            assert_eq!(token.matches(&headers), expected, "{headers:?}");
        }
    }

    #[test]
    fn only_the_exact_token_matches() {
        let token = Token::new("0123456789abcdef").unwrap();
        assert_eq!(format!("{token:?}"), "Token(…)");
        for (value, expected) in [
            ("Bearer 0123456789abcdef", true),
            ("bearer  0123456789abcdef", true),
            ("Bearer 0123456789abcdeg", false),
            ("Bearer 0123456789abcde", false),
            ("Bearer ", false),
            ("Basic 0123456789abcdef", false),
            ("0123456789abcdef", false),
        ] {
            assert_eq!(token.matches(&authorization(value)), expected, "{value}");
        }
        assert!(!token.matches(&HeaderMap::new()));
        for bad in ["", "short", "with spaces in the middle", "0123456789abcdeé"] {
            assert_eq!(Token::new(bad).unwrap_err().code, Code::Usage, "{bad}");
        }
    }
}
