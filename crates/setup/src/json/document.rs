use std::iter;
use std::ops::Range;

use jsonc_parser::ast::{Array, Object, ObjectProp, Value as JsonValue};
use jsonc_parser::common::Ranged;
use jsonc_parser::tokens::{Token, TokenAndRange};
use jsonc_parser::{CollectOptions, CommentCollectionStrategy, ParseOptions, parse_to_ast};

use super::layout::Layout;
use crate::EditError;
use crate::splice::{newline_of, splice};

/// A parsed text with the positions of its parts.
pub(super) struct Document<'a> {
    text: &'a str,
    pub(super) root: Object<'a>,
    /// All tokens including comments, in order.
    tokens: Vec<TokenAndRange<'a>>,
}

impl<'a> Document<'a> {
    /// Parses a text; `None` if it contains no value.
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
            Some(JsonValue::Object(root)) => Ok(Some(Self { text, root, tokens })),
            Some(other) => Err(wrong_type("the file", &other)),
        }
    }

    /// The object under a key of the root.
    pub(super) fn object(&self, key: &str) -> Result<Option<&Object<'a>>, EditError> {
        match member(&self.root, key)?.map(|member| &member.value) {
            None => Ok(None),
            Some(JsonValue::Object(object)) => Ok(Some(object)),
            Some(other) => Err(wrong_type(&format!("{key:?}"), other)),
        }
    }

    pub(super) fn layout(&self) -> Layout<'a> {
        let first = self.root.properties.first().map(Ranged::start);
        let gap = first.map_or("", |first| &self.text[self.root.start() + 1..first]);
        let indent_unit = gap.rsplit_once('\n').map_or("", |(_, indent_unit)| indent_unit);
        let is_usable =
            !indent_unit.is_empty() && indent_unit.trim_start_matches([' ', '\t']).is_empty();
        Layout {
            newline: newline_of(self.text),
            indent_unit: if is_usable { indent_unit } else { "  " },
            multiline: first.is_none() || self.text.trim().contains('\n'),
        }
    }

    /// The text with a new member after the opening brace of an object. `value` gets the
    /// indentation of the line on which the member begins.
    pub(super) fn insert(
        &self,
        object: &Object<'_>,
        key: &str,
        value: impl FnOnce(&str) -> String,
    ) -> String {
        let member = |indent: &str| format!("\"{key}\": {}", value(indent));
        self.insert_first(object, object.properties.is_empty(), member)
    }

    /// The text with a new element after the opening bracket of an array.
    pub(super) fn insert_element(
        &self,
        array: &Array<'_>,
        value: impl FnOnce(&str) -> String,
    ) -> String {
        self.insert_first(array, array.elements.is_empty(), value)
    }

    /// The text with a new first part of an object or array.
    fn insert_first(
        &self,
        container: &impl Ranged,
        is_empty: bool,
        part: impl FnOnce(&str) -> String,
    ) -> String {
        let layout = self.layout();
        let at = self.insertion_point(container);
        let next = self.next_token(at);
        let is_bare = self.next_token(container.start() + 1).end() == container.end();
        let gap = if is_bare { "" } else { &self.text[at..next.start()] };
        let (lead, indent) = match gap.rsplit_once('\n') {
            None => (gap.to_owned(), self.indentation(at).to_owned()),
            Some((_, indent)) => {
                let deeper = if next.end() == container.end() { layout.indent_unit } else { "" };
                let indent = format!("{indent}{deeper}");
                (format!("{}{indent}", layout.newline), indent)
            }
        };
        let comma = if is_empty { "" } else { "," };
        splice(self.text, vec![(at..at, format!("{lead}{}{comma}", part(&indent)))])
    }

    /// The position for a new first member: after the opening brace, and after comments that end
    /// the line of the brace.
    fn insertion_point(&self, container: &impl Ranged) -> usize {
        let open = container.start() + 1;
        let mut end = open;
        loop {
            let next = self.next_token(end);
            if self.text[end..next.start()].contains('\n') {
                return end;
            }
            if !is_comment(next) {
                return open;
            }
            end = next.end();
        }
    }

    /// The text without a member, the white space before it, and its comma: the one after it, or
    /// for the last member the one before it.
    pub(super) fn remove(&self, member: &ObjectProp<'_>) -> String {
        self.remove_part(member)
    }

    /// As [`Self::remove`], for a member or an element.
    pub(super) fn remove_part(&self, member: &impl Ranged) -> String {
        let is_comma = |token: &&TokenAndRange<'_>| token.token == Token::Comma;
        let (before, after) = self.tokens_around(member);
        let next_comma = after.iter().find(|token| !is_comment(token)).filter(is_comma);
        let previous_comma = before.iter().rfind(|token| !is_comment(token)).filter(is_comma);
        let comma = next_comma.or(previous_comma).map(span);

        let previous = self.previous_token(member);
        let kept = after.iter().find(|token| Some(span(*token)) != comma);
        let kept = kept.map_or(self.text.len(), Ranged::start);
        // The text that follows must not become part of a line comment.
        let keeps_line = matches!(previous.token, Token::CommentLine(_))
            && !self.text[member.end()..kept].contains('\n');
        let start = if keeps_line { member.start() } else { previous.end() };
        let ranges = comma.into_iter().chain(iter::once(start..member.end()));
        splice(self.text, ranges.map(|range| (range, String::new())).collect())
    }

    /// Whether an object has only this member and is formatted as setup would have created it.
    pub(super) fn was_created_for(&self, object: &Object<'_>, member: &ObjectProp<'_>) -> bool {
        self.surrounds_only(object, member)
    }

    /// Whether an object or array has only this part, after white space.
    pub(super) fn surrounds_only(&self, container: &impl Ranged, part: &impl Ranged) -> bool {
        let before = self.previous_token(part).end();
        before == container.start() + 1
            && before < part.start()
            && self.next_token(part.end()).end() == container.end()
    }

    pub(super) fn has_comments_outside(&self) -> bool {
        let ends = [self.tokens.first(), self.tokens.last()];
        ends.into_iter().flatten().any(is_comment)
    }

    /// The indentation of the line that contains a position.
    pub(super) fn indentation(&self, at: usize) -> &'a str {
        let start = self.text[..at].rfind('\n').map_or(0, |newline| newline + 1);
        let line = &self.text[start..at];
        &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
    }

    /// The first token at or after a position inside an object.
    fn next_token(&self, at: usize) -> &TokenAndRange<'a> {
        let index = self.tokens.partition_point(|token| token.start() < at);
        self.tokens.get(index).expect("an object ends with a brace")
    }

    fn previous_token(&self, member: &impl Ranged) -> &TokenAndRange<'a> {
        self.tokens_around(member).0.last().expect("an object begins with a brace")
    }

    /// The tokens before a member, and those after it.
    fn tokens_around(&self, member: &impl Ranged) -> (&[TokenAndRange<'a>], &[TokenAndRange<'a>]) {
        let before = self.tokens.partition_point(|token| token.end() <= member.start());
        let after = self.tokens.partition_point(|token| token.start() < member.end());
        (&self.tokens[..before], &self.tokens[after..])
    }
}

/// The member with this key; an error if the key occurs twice.
pub(super) fn member<'o, 'a>(
    object: &'o Object<'a>,
    key: &str,
) -> Result<Option<&'o ObjectProp<'a>>, EditError> {
    let mut members = object.properties.iter().filter(|member| member.name.as_str() == key);
    match (members.next(), members.next()) {
        (found, None) => Ok(found),
        _ => Err(EditError::DuplicateKey { key: key.to_owned() }),
    }
}

pub(super) fn span(part: &impl Ranged) -> Range<usize> {
    part.start()..part.end()
}

fn is_comment(token: &TokenAndRange<'_>) -> bool {
    matches!(token.token, Token::CommentLine(_) | Token::CommentBlock(_))
}

fn wrong_type(location: &str, value: &JsonValue<'_>) -> EditError {
    let found = match value {
        JsonValue::StringLit(_) => "a string",
        JsonValue::NumberLit(_) => "a number",
        JsonValue::BooleanLit(_) => "a boolean",
        JsonValue::Object(_) => "an object",
        JsonValue::Array(_) => "an array",
        JsonValue::NullKeyword(_) => "null",
    };
    EditError::WrongType { location: location.to_owned(), expected: "an object", found }
}
