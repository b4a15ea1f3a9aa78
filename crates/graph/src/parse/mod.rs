//! Parses text into [`crate::ast`]. A recursive-descent parser with a depth limit and no
//! backtracking: it tells a pattern in parentheses from an expression by looking ahead, using
//! precomputed pairs of brackets.

mod clauses;
mod constraints;
mod expressions;
mod labels;
mod lexer;
mod patterns;

use std::sync::Arc;

use crate::ast::{Name, Span, Statement};
use crate::error::{Class, Detail, Error, Phase, Problem, QueryPosition, Result};
use lexer::Token;

/// The maximum nesting of brackets.
pub(crate) const MAX_NESTING: u16 = 60;

/// The maximum height of an expression's tree. A sum of many terms is high without brackets.
pub(crate) const MAX_HEIGHT: u16 = 300;

/// Parses a query.
pub(crate) fn parse(text: &str) -> Result<Statement> {
    if text.len() > MAX_TEXT {
        let size = text.len() >> 20;
        return Err(Error::TooLarge(format!("the query is too long: {size} MiB")));
    }
    let tokens = lexer::tokenize(text)
        .map_err(|wrong| problem(text, wrong.at, wrong.detail, wrong.message))?;
    let matching_brackets = matching_brackets(&tokens);
    let mut parser = Parser { text, tokens, matching_brackets, at: 0, depth: 0, bar_ends: false };
    let statement = parser.statement()?;
    Ok(statement)
}

const MAX_TEXT: usize = 16 << 20;

/// An error at a byte offset of the text.
pub(crate) fn problem(text: &str, at: usize, detail: Detail, message: impl Into<String>) -> Error {
    Error::Query(Box::new(Problem {
        class: Class::SyntaxError,
        detail,
        phase: Phase::Compile,
        message: message.into(),
        position: Some(QueryPosition::of(text, at)),
        entity: None,
    }))
}

/// For every opening bracket, the index of the closing one.
fn matching_brackets(tokens: &[(Token, Span)]) -> Vec<u32> {
    let mut matching_brackets = vec![u32::MAX; tokens.len()];
    let mut open = Vec::new();
    for (at, (token, _)) in tokens.iter().enumerate() {
        match token {
            Token::Symbol("(" | "[" | "{") => open.push(at),
            Token::Symbol(")" | "]" | "}") => {
                if let Some(start) = open.pop() {
                    matching_brackets[start] = at as u32;
                }
            }
            _ => {}
        }
    }
    matching_brackets
}

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<(Token, Span)>,
    matching_brackets: Vec<u32>,
    at: usize,
    depth: u16,
    /// Whether `|` ends the current expression, as in a list comprehension.
    bar_ends: bool,
}

impl Parser<'_> {
    fn token(&self) -> &Token {
        &self.tokens[self.at].0
    }

    fn ahead(&self, by: usize) -> &Token {
        &self.tokens[(self.at + by).min(self.tokens.len() - 1)].0
    }

    fn span(&self) -> Span {
        self.tokens[self.at].1
    }

    /// The span from `start` to the previous token.
    fn since(&self, start: Span) -> Span {
        start.to(self.tokens[self.at.saturating_sub(1)].1)
    }

    fn advance(&mut self) {
        if self.at + 1 < self.tokens.len() {
            self.at += 1;
        }
    }

    fn is(&self, symbol: &str) -> bool {
        matches!(self.token(), Token::Symbol(it) if *it == symbol)
    }

    fn eat(&mut self, symbol: &str) -> bool {
        let is = self.is(symbol);
        if is {
            self.advance();
        }
        is
    }

    fn expect(&mut self, symbol: &str) -> Result<()> {
        if self.eat(symbol) { Ok(()) } else { self.unexpected(&format!("'{symbol}'")) }
    }

    fn is_word_at(&self, by: usize, keyword: &str) -> bool {
        matches!(self.ahead(by), Token::Word { text, quoted: false } if text.eq_ignore_ascii_case(keyword))
    }

    fn is_word(&self, keyword: &str) -> bool {
        self.is_word_at(0, keyword)
    }

    fn eat_word(&mut self, keyword: &str) -> bool {
        let is = self.is_word(keyword);
        if is {
            self.advance();
        }
        is
    }

    fn expect_word(&mut self, keyword: &str) -> Result<()> {
        if self.eat_word(keyword) { Ok(()) } else { self.unexpected(keyword) }
    }

    fn error<T>(&self, span: Span, detail: Detail, message: impl Into<String>) -> Result<T> {
        Err(problem(self.text, span.start as usize, detail, message))
    }

    fn unsupported<T>(&self, span: Span, what: &str) -> Result<T> {
        let position = Some(QueryPosition::of(self.text, span.start as usize));
        Err(Error::Unsupported { what: what.to_owned(), position })
    }

    fn unexpected<T>(&self, wanted: &str) -> Result<T> {
        let found = match self.token() {
            Token::End => "the end of the query".to_owned(),
            _ => {
                let span = self.span();
                let text = &self.text[span.start as usize..span.end as usize];
                let shown: String = text.chars().take(40).collect();
                format!("'{shown}'")
            }
        };
        let message = format!("expected {wanted}, found {found}");
        self.error(self.span(), Detail::UnexpectedSyntax, message)
    }

    /// The name of a label, type, property or function: any non-empty word.
    fn any_name(&mut self, wanted: &str) -> Result<Name> {
        if matches!(self.token(), Token::Word { text, .. } if text.is_empty()) {
            let message = format!("{wanted} cannot be empty");
            return self.error(self.span(), Detail::UnexpectedSyntax, message);
        }
        self.word_or_empty(wanted)
    }

    /// Like `any_name`, but accepts the empty name written as two backticks.
    fn word_or_empty(&mut self, wanted: &str) -> Result<Name> {
        match self.token() {
            Token::Word { text, .. } => {
                let name = Name { text: text.clone(), span: self.span() };
                self.advance();
                Ok(name)
            }
            _ => self.unexpected(wanted),
        }
    }

    fn is_variable(&self) -> bool {
        match self.token() {
            Token::Word { text, quoted } => *quoted || !is_reserved(text),
            _ => false,
        }
    }

    fn variable(&mut self) -> Result<Name> {
        if self.is_variable() { self.any_name("a variable") } else { self.unexpected("a variable") }
    }

    fn key(&mut self) -> Result<Arc<str>> {
        Ok(self.any_name("the name of a property")?.text)
    }

    /// A key in a map, which can be any text.
    fn map_key(&mut self) -> Result<Arc<str>> {
        Ok(self.word_or_empty("a name")?.text)
    }

    /// Runs `inner` one nesting level deeper; fails at the limit.
    fn deeper<T>(&mut self, inner: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= MAX_NESTING {
            return self.too_deep(self.span());
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    fn too_deep<T>(&self, span: Span) -> Result<T> {
        let message = "nested too deeply";
        self.error(span, Detail::UnexpectedSyntax, message)
    }
}

/// Whether a word must be quoted to be used as a name.
pub(crate) fn is_reserved(word: &str) -> bool {
    const RESERVED: [&str; 42] = [
        "all",
        "and",
        "as",
        "asc",
        "ascending",
        "by",
        "case",
        "contains",
        "create",
        "delete",
        "desc",
        "descending",
        "detach",
        "distinct",
        "else",
        "ends",
        "exists",
        "false",
        "in",
        "is",
        "limit",
        "match",
        "merge",
        "not",
        "null",
        "on",
        "optional",
        "or",
        "order",
        "remove",
        "return",
        "set",
        "skip",
        "starts",
        "then",
        "true",
        "union",
        "unwind",
        "when",
        "where",
        "with",
        "xor",
    ];
    word.len() <= 10 && RESERVED.iter().any(|reserved| word.eq_ignore_ascii_case(reserved))
}
