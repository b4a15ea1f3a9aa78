//! Splits a query into tokens.

use std::sync::Arc;

use crate::ast::Span;
use crate::error::Detail;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    /// A name or a keyword; quoted ones are never keywords.
    Word {
        text: Arc<str>,
        quoted: bool,
    },
    /// The magnitude of an integer; its sign is a separate token.
    Integer(u64),
    Float(f64),
    Text(Arc<str>),
    Parameter(Arc<str>),
    Symbol(&'static str),
    /// Something that begins like a number but is not valid.
    InvalidNumber(Detail, String),
    End,
}

/// An error in a token and its position.
pub(super) struct TokenError {
    pub(super) detail: Detail,
    pub(super) message: String,
    pub(super) at: usize,
}

/// Longest first.
const SYMBOLS: [&str; 32] = [
    "||", "..", "<>", "<=", ">=", "=~", "+=", "(", ")", "[", "]", "{", "}", ",", ":", ";", ".",
    "|", "=", "<", ">", "+", "-", "*", "/", "%", "^", "!", "&", "?", "@", "$",
];

pub(super) fn tokenize(text: &str) -> Result<Vec<(Token, Span)>, TokenError> {
    let mut lexer = Lexer { text, at: 0 };
    let mut tokens = Vec::with_capacity(text.len() / 4 + 1);
    loop {
        lexer.skip_blank()?;
        let start = lexer.at;
        let token = lexer.next()?;
        let done = token == Token::End;
        tokens.push((token, Span { start: start as u32, end: lexer.at as u32 }));
        if done {
            return Ok(tokens);
        }
    }
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl Lexer<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn wrong<T>(
        &self,
        at: usize,
        detail: Detail,
        message: impl Into<String>,
    ) -> Result<T, TokenError> {
        Err(TokenError { detail, message: message.into(), at })
    }

    fn skip_blank(&mut self) -> Result<(), TokenError> {
        loop {
            let rest = self.rest();
            let blank = rest.len() - rest.trim_start().len();
            if blank > 0 {
                self.at += blank;
            } else if rest.starts_with("//") {
                self.at += rest.find('\n').unwrap_or(rest.len());
            } else if rest.starts_with("/*") {
                match rest.find("*/") {
                    Some(end) => self.at += end + 2,
                    None => {
                        let message = "unterminated comment";
                        return self.wrong(self.at, Detail::UnexpectedSyntax, message);
                    }
                }
            } else {
                return Ok(());
            }
        }
    }

    fn next(&mut self) -> Result<Token, TokenError> {
        let Some(first) = self.peek() else { return Ok(Token::End) };
        match first {
            '\'' | '"' => self.string(first),
            '`' => {
                let text = self.backticks()?;
                Ok(Token::Word { text, quoted: true })
            }
            '$' if !self.rest().starts_with("$(") => self.parameter(),
            '0'..='9' => Ok(self.number()),
            '.' if self.rest()[1..].starts_with(|next: char| next.is_ascii_digit()) => {
                Ok(self.number())
            }
            _ if is_word_start(first) => {
                let text = self.word();
                Ok(Token::Word { text: text.into(), quoted: false })
            }
            _ => {
                for symbol in SYMBOLS {
                    if self.rest().starts_with(symbol) {
                        self.at += symbol.len();
                        return Ok(Token::Symbol(symbol));
                    }
                }
                let detail = if first.is_ascii() {
                    Detail::UnexpectedSyntax
                } else {
                    Detail::InvalidUnicodeCharacter
                };
                self.wrong(self.at, detail, format!("unexpected character {first:?}"))
            }
        }
    }

    fn word(&mut self) -> String {
        let rest = self.rest();
        let end = rest.find(|next| !is_word_part(next)).unwrap_or(rest.len());
        let word = rest[..end].to_owned();
        self.at += end;
        word
    }

    fn backticks(&mut self) -> Result<Arc<str>, TokenError> {
        let start = self.at;
        let mut name = String::new();
        self.at += 1;
        loop {
            let rest = &self.text[self.at..];
            let Some(end) = rest.find('`') else {
                return self.wrong(start, Detail::UnexpectedSyntax, "unterminated name");
            };
            name.push_str(&rest[..end]);
            self.at += end + 1;
            if !self.rest().starts_with('`') {
                return Ok(name.into());
            }
            name.push('`');
            self.at += 1;
        }
    }

    fn parameter(&mut self) -> Result<Token, TokenError> {
        let start = self.at;
        self.at += 1;
        if self.peek() == Some('`') {
            return Ok(Token::Parameter(self.backticks()?));
        }
        let name = self.word();
        if name.is_empty() {
            return self.wrong(start, Detail::UnexpectedSyntax, "a parameter needs a name");
        }
        Ok(Token::Parameter(name.into()))
    }

    fn number(&mut self) -> Token {
        let start = self.at;
        let rest = self.rest();
        let bytes = rest.as_bytes();
        if bytes[0] == b'0' && matches!(bytes.get(1), Some(b'x' | b'X' | b'o' | b'O')) {
            let radix = if matches!(bytes[1], b'x' | b'X') { 16 } else { 8 };
            self.at += 2;
            let digits = self.word();
            return self.integer(start, &digits, radix);
        }
        let digits = |from: usize| {
            bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count() + from
        };
        let mut end = digits(0);
        let mut float = false;
        if bytes.get(end) == Some(&b'.') && bytes.get(end + 1).is_some_and(u8::is_ascii_digit) {
            float = true;
            end = digits(end + 1);
        }
        if matches!(bytes.get(end), Some(b'e' | b'E')) {
            let signed = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
            if bytes.get(end + 1 + signed).is_some_and(u8::is_ascii_digit) {
                float = true;
                end = digits(end + 1 + signed);
            }
        }
        let literal = rest[..end].to_owned();
        self.at += end;
        if self.peek().is_some_and(is_word_part) {
            let tail = self.word();
            let message = format!("{literal}{tail} is not a number");
            return Token::InvalidNumber(Detail::InvalidNumberLiteral, message);
        }
        if !float {
            return self.integer(start, &literal, 10);
        }
        match literal.parse::<f64>() {
            Ok(number) if number.is_finite() => Token::Float(number),
            _ => {
                let message = format!("{literal} is too large for a float");
                Token::InvalidNumber(Detail::FloatingPointOverflow, message)
            }
        }
    }

    fn integer(&self, start: usize, digits: &str, radix: u32) -> Token {
        let shown = &self.text[start..self.at];
        if digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(radix)) {
            let message = format!("{shown} is not a number");
            return Token::InvalidNumber(Detail::InvalidNumberLiteral, message);
        }
        match u64::from_str_radix(digits, radix) {
            Ok(number) if number <= i64::MIN.unsigned_abs() => Token::Integer(number),
            _ => {
                let message = format!("{shown} is too large for an integer");
                Token::InvalidNumber(Detail::IntegerOverflow, message)
            }
        }
    }

    fn string(&mut self, quote: char) -> Result<Token, TokenError> {
        let start = self.at;
        let mut text = String::new();
        self.at += 1;
        loop {
            let rest = &self.text[self.at..];
            let Some(end) = rest.find([quote, '\\']) else {
                return self.wrong(start, Detail::UnexpectedSyntax, "unterminated string");
            };
            text.push_str(&rest[..end]);
            self.at += end + 1;
            if rest[end..].starts_with(quote) {
                return Ok(Token::Text(text.into()));
            }
            text.push(self.escape()?);
        }
    }

    fn escape(&mut self) -> Result<char, TokenError> {
        let start = self.at - 1;
        let Some(letter) = self.peek() else {
            return self.wrong(start, Detail::UnexpectedSyntax, "unterminated string");
        };
        self.at += letter.len_utf8();
        let length = match letter {
            '\\' | '\'' | '"' | '`' => return Ok(letter),
            'b' => return Ok('\u{8}'),
            'f' => return Ok('\u{c}'),
            'n' => return Ok('\n'),
            'r' => return Ok('\r'),
            't' => return Ok('\t'),
            'u' => 4,
            'U' => 8,
            _ => {
                let message = format!("unknown escape \\{letter}; write \\\\ for a backslash");
                return self.wrong(start, Detail::UnexpectedSyntax, message);
            }
        };
        let code = self
            .rest()
            .get(..length)
            .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let character =
            code.and_then(|digits| u32::from_str_radix(digits, 16).ok()).and_then(char::from_u32);
        match character {
            Some(character) => {
                self.at += length;
                Ok(character)
            }
            None => {
                let message = format!(
                    "\\{letter} must be followed by the {length} hex digits of a character"
                );
                self.wrong(start, Detail::InvalidUnicodeLiteral, message)
            }
        }
    }
}

fn is_word_start(letter: char) -> bool {
    letter.is_alphabetic() || letter == '_'
}

fn is_word_part(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}
