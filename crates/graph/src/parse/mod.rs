//! From text to [`crate::ast`]. The parser goes down by hand, with a bound on depth, and
//! never tries the same tokens twice: a pattern in parentheses is told from an expression by
//! looking ahead, with the partners of all brackets known.

mod clauses;
mod expressions;
mod lexer;
mod patterns;

use std::sync::Arc;

use crate::ast::{Name, Span, Statement};
use crate::error::{Class, Detail, Error, Phase, Place, Problem, Result};
use lexer::Token;

/// Brackets nest so deep and no deeper.
pub(crate) const DEPTH: u16 = 60;

/// Expressions are so high and no higher: a sum of many terms is high without a bracket.
pub(crate) const HEIGHT: u16 = 300;

/// Reads a query.
pub(crate) fn parse(text: &str) -> Result<Statement> {
    if text.len() > MAX_TEXT {
        let size = text.len() >> 20;
        return Err(Error::TooLarge(format!("a query of {size} MiB is too long")));
    }
    let tokens = lexer::tokenize(text)
        .map_err(|wrong| problem(text, wrong.at, wrong.detail, wrong.message))?;
    let partners = partners(&tokens);
    let mut parser = Parser { text, tokens, partners, at: 0, depth: 0 };
    let statement = parser.statement()?;
    Ok(statement)
}

const MAX_TEXT: usize = 16 << 20;

/// An error in the text.
pub(crate) fn problem(text: &str, at: usize, detail: Detail, message: impl Into<String>) -> Error {
    Error::Query(Box::new(Problem {
        class: Class::SyntaxError,
        detail,
        phase: Phase::Compile,
        message: message.into(),
        place: Some(Place::of(text, at)),
    }))
}

/// For every bracket that opens, where it closes.
fn partners(tokens: &[(Token, Span)]) -> Vec<u32> {
    let mut partners = vec![u32::MAX; tokens.len()];
    let mut open = Vec::new();
    for (at, (token, _)) in tokens.iter().enumerate() {
        match token {
            Token::Symbol("(" | "[" | "{") => open.push(at),
            Token::Symbol(")" | "]" | "}") => {
                if let Some(start) = open.pop() {
                    partners[start] = at as u32;
                }
            }
            _ => {}
        }
    }
    partners
}

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<(Token, Span)>,
    partners: Vec<u32>,
    at: usize,
    depth: u16,
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

    /// The span from there to the token before this one.
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
        let place = Some(Place::of(self.text, span.start as usize));
        Err(Error::Unsupported { what: what.to_owned(), place })
    }

    fn unexpected<T>(&self, wanted: &str) -> Result<T> {
        let found = match self.token() {
            Token::End => "the query ends".to_owned(),
            _ => {
                let span = self.span();
                let text = &self.text[span.start as usize..span.end as usize];
                let shown: String = text.chars().take(40).collect();
                format!("there is '{shown}'")
            }
        };
        let message = format!("{found} where {wanted} was expected");
        self.error(self.span(), Detail::UnexpectedSyntax, message)
    }

    /// A name of a label, type, property or function: any word.
    fn any_name(&mut self, wanted: &str) -> Result<Name> {
        if matches!(self.token(), Token::Word { text, .. } if text.is_empty()) {
            let message = format!("{wanted} cannot be empty");
            return self.error(self.span(), Detail::UnexpectedSyntax, message);
        }
        self.word_or_nothing(wanted)
    }

    /// The same; two backticks with nothing between them are a name, too.
    fn word_or_nothing(&mut self, wanted: &str) -> Result<Name> {
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

    /// A name in a map, which can be any text.
    fn map_key(&mut self) -> Result<Arc<str>> {
        Ok(self.word_or_nothing("a name")?.text)
    }

    /// Goes one level down, and back up after `inner`.
    fn deeper<T>(&mut self, inner: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= DEPTH {
            return self.too_deep(self.span());
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    fn too_deep<T>(&self, span: Span) -> Result<T> {
        let message = "this is nested too deeply";
        self.error(span, Detail::UnexpectedSyntax, message)
    }
}

/// Words that name nothing unless they are quoted.
fn is_reserved(word: &str) -> bool {
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
