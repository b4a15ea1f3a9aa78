use std::iter;
use std::ops::Range;

use jsonc_parser::ast::{Object, ObjectProp, Value as Found};
use jsonc_parser::common::Ranged;
use jsonc_parser::tokens::{Token, TokenAndRange};
use jsonc_parser::{CollectOptions, CommentCollectionStrategy, ParseOptions, parse_to_ast};

use super::layout::Layout;
use crate::EditError;
use crate::text::{newline_of, splice};

/// A text, and where everything is in it.
pub(super) struct Document<'a> {
    text: &'a str,
    pub(super) root: Object<'a>,
    /// All of them, comments too, in their order.
    tokens: Vec<TokenAndRange<'a>>,
}

impl<'a> Document<'a> {
    /// `None` if there is no value in the text.
    pub(super) fn parse(text: &'a str) -> Result<Option<Self>, EditError> {
        let comments = CommentCollectionStrategy::AsTokens;
        let collect = CollectOptions { comments, tokens: true };
        let options = ParseOptions {
            allow_comments: true,
            allow_trailing_commas: true,
            allow_loose_object_property_names: false,
            allow_missing_commas: false,
            allow_single_quoted_strings: false,
            allow_hexadecimal_numbers: false,
            allow_unary_plus_numbers: false,
            allow_bare_decimal_point_numbers: false,
            allow_non_finite_numbers: false,
            allow_extended_string_escapes: false,
        };
        let parsed = parse_to_ast(text, &collect, &options)
            .map_err(|error| EditError::Syntax { language: "JSON", reason: error.to_string() })?;
        let tokens = parsed.tokens.unwrap_or_default();
        match parsed.value {
            None => Ok(None),
            Some(Found::Object(root)) => Ok(Some(Self { text, root, tokens })),
            Some(other) => Err(wrong_kind("the whole file", &other)),
        }
    }

    /// The object under a key of the root.
    pub(super) fn object(&self, key: &str) -> Result<Option<&Object<'a>>, EditError> {
        match member(&self.root, key)?.map(|member| &member.value) {
            None => Ok(None),
            Some(Found::Object(object)) => Ok(Some(object)),
            Some(other) => Err(wrong_kind(&format!("{key:?}"), other)),
        }
    }

    pub(super) fn layout(&self) -> Layout<'a> {
        let first = self.root.properties.first().map(Ranged::start);
        let gap = first.map_or("", |first| &self.text[self.root.start() + 1..first]);
        let unit = gap.rsplit_once('\n').map_or("", |(_, unit)| unit);
        let is_usable = !unit.is_empty() && unit.trim_start_matches([' ', '\t']).is_empty();
        Layout {
            newline: newline_of(self.text),
            unit: if is_usable { unit } else { "  " },
            spread: first.is_none() || self.text.trim().contains('\n'),
        }
    }

    /// The text with one member more, right behind the brace of its object. The value is
    /// asked for by the indentation of the line on which it begins.
    pub(super) fn insert(
        &self,
        object: &Object<'_>,
        key: &str,
        value: impl FnOnce(&str) -> String,
    ) -> String {
        let layout = self.layout();
        let at = self.head(object);
        let next = self.next(at);
        let is_bare = self.next(object.start() + 1).end() == object.end();
        let gap = if is_bare { "" } else { &self.text[at..next.start()] };
        let (lead, base) = match gap.rsplit_once('\n') {
            None => (gap.to_owned(), self.indentation(at).to_owned()),
            Some((_, base)) => {
                let deeper = if next.end() == object.end() { layout.unit } else { "" };
                let base = format!("{base}{deeper}");
                (format!("{}{base}", layout.newline), base)
            }
        };
        let comma = if object.properties.is_empty() { "" } else { "," };
        let member = format!("{lead}\"{key}\": {}{comma}", value(&base));
        splice(self.text, vec![(at..at, member)])
    }

    /// Where the members of an object begin. Comments that end the line of its brace come
    /// before them.
    fn head(&self, object: &Object<'_>) -> usize {
        let open = object.start() + 1;
        let mut end = open;
        loop {
            let next = self.next(end);
            if self.text[end..next.start()].contains('\n') {
                return end;
            }
            if !is_comment(next) {
                return open;
            }
            end = next.end();
        }
    }

    /// The text without a member, the white space before it, and its comma: the one behind
    /// it, or if it is the last the one before it.
    pub(super) fn remove(&self, member: &ObjectProp<'_>) -> String {
        let is_comma = |token: &&TokenAndRange<'_>| token.token == Token::Comma;
        let (before, after) = self.around(member);
        let behind = after.iter().find(|token| !is_comment(token)).filter(is_comma);
        let ahead = before.iter().rfind(|token| !is_comment(token)).filter(is_comma);
        let comma = behind.or(ahead).map(span);

        let previous = self.previous(member);
        let kept = after.iter().find(|token| Some(span(*token)) != comma);
        let kept = kept.map_or(self.text.len(), Ranged::start);
        // What follows must not become part of a comment that ends with its line.
        let keeps_line = matches!(previous.token, Token::CommentLine(_))
            && !self.text[member.end()..kept].contains('\n');
        let start = if keeps_line { member.start() } else { previous.end() };
        let pieces = comma.into_iter().chain(iter::once(start..member.end()));
        splice(self.text, pieces.map(|piece| (piece, String::new())).collect())
    }

    /// Whether an object has nothing but this member, and looks as one that setup made for
    /// it.
    pub(super) fn is_made_for(&self, object: &Object<'_>, member: &ObjectProp<'_>) -> bool {
        let before = self.previous(member).end();
        before == object.start() + 1
            && before < member.start()
            && self.next(member.end()).end() == object.end()
    }

    pub(super) fn has_comments_outside(&self) -> bool {
        let ends = [self.tokens.first(), self.tokens.last()];
        ends.into_iter().flatten().any(is_comment)
    }

    /// With what the line begins in which this is.
    pub(super) fn indentation(&self, at: usize) -> &'a str {
        let start = self.text[..at].rfind('\n').map_or(0, |newline| newline + 1);
        let line = &self.text[start..at];
        &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
    }

    /// The first token from here on.
    fn next(&self, at: usize) -> &TokenAndRange<'a> {
        let index = self.tokens.partition_point(|token| token.start() < at);
        self.tokens.get(index).expect("inside of an object its brace is still to come")
    }

    fn previous(&self, member: &ObjectProp<'_>) -> &TokenAndRange<'a> {
        self.around(member).0.last().expect("a member has the brace of its object before it")
    }

    /// The tokens before and after a member.
    fn around(&self, member: &ObjectProp<'_>) -> (&[TokenAndRange<'a>], &[TokenAndRange<'a>]) {
        let before = self.tokens.partition_point(|token| token.end() <= member.start());
        let after = self.tokens.partition_point(|token| token.start() < member.end());
        (&self.tokens[..before], &self.tokens[after..])
    }
}

/// The member of an object that has this name.
pub(super) fn member<'o, 'a>(
    object: &'o Object<'a>,
    key: &str,
) -> Result<Option<&'o ObjectProp<'a>>, EditError> {
    let mut members = object.properties.iter().filter(|member| member.name.as_str() == key);
    match (members.next(), members.next()) {
        (found, None) => Ok(found),
        _ => Err(EditError::Repeated { key: key.to_owned() }),
    }
}

pub(super) fn span(part: &impl Ranged) -> Range<usize> {
    part.start()..part.end()
}

fn is_comment(token: &TokenAndRange<'_>) -> bool {
    matches!(token.token, Token::CommentLine(_) | Token::CommentBlock(_))
}

fn wrong_kind(place: &str, found: &Found<'_>) -> EditError {
    let found = match found {
        Found::StringLit(_) => "a text",
        Found::NumberLit(_) => "a number",
        Found::BooleanLit(_) => "true or false",
        Found::Object(_) => "an object",
        Found::Array(_) => "a list",
        Found::NullKeyword(_) => "null",
    };
    EditError::WrongKind { place: place.to_owned(), expected: "an object", found }
}
