//! Tells regular expressions that are meant to match across lines.

use isolith_protocol::StoreError;
use regex_syntax::ast::parse::ParserBuilder;
use regex_syntax::ast::{
    Ast, ClassBracketed, ClassSet, ClassSetItem, Flag, Flags, GroupKind, Visitor, visit,
};

use super::matcher::MAX_NESTING;

/// Parses a regular expression.
///
/// # Errors
/// [`StoreError::BadPattern`] with the problem and its position.
pub(super) fn parse(regex: &str) -> Result<Ast, StoreError> {
    ParserBuilder::new().nest_limit(MAX_NESTING).build().parse(regex).map_err(|error| {
        let (at, what) = (error.span().start, error.kind());
        let reason = match at.line {
            1 => format!("{what} (at character {})", at.column),
            line => format!("{what} (at line {line}, character {})", at.column),
        };
        StoreError::BadPattern { reason }
    })
}

/// Whether it names a line end, or lets `.` match one.
pub(super) fn spans_lines(regex: &Ast) -> bool {
    visit(regex, Search { found: false }).unwrap_or(false)
}

struct Search {
    found: bool,
}

impl Visitor for Search {
    type Output = bool;
    type Err = std::convert::Infallible;

    fn finish(self) -> Result<bool, Self::Err> {
        Ok(self.found)
    }

    fn visit_pre(&mut self, ast: &Ast) -> Result<(), Self::Err> {
        self.found |= match ast {
            Ast::Literal(literal) => literal.c == '\n',
            Ast::Flags(flags) => dot_matches_all(&flags.flags),
            Ast::Group(group) => match &group.kind {
                GroupKind::NonCapturing(flags) => dot_matches_all(flags),
                GroupKind::CaptureIndex(_) | GroupKind::CaptureName { .. } => false,
            },
            Ast::ClassBracketed(class) => has_line_end(class),
            Ast::Empty(_)
            | Ast::Dot(_)
            | Ast::Assertion(_)
            | Ast::ClassUnicode(_)
            | Ast::ClassPerl(_)
            | Ast::Repetition(_)
            | Ast::Alternation(_)
            | Ast::Concat(_) => false,
        };
        Ok(())
    }
}

fn dot_matches_all(flags: &Flags) -> bool {
    flags.flag_state(Flag::DotMatchesNewLine) == Some(true)
}

/// Whether a set such as `[;\n]` names a line end; `[^\n]` excludes it.
fn has_line_end(class: &ClassBracketed) -> bool {
    let is_line_end = |item: &ClassSetItem| match item {
        ClassSetItem::Literal(literal) => literal.c == '\n',
        _ => false,
    };
    !class.negated
        && match &class.kind {
            ClassSet::Item(ClassSetItem::Union(union)) => union.items.iter().any(is_line_end),
            ClassSet::Item(item) => is_line_end(item),
            ClassSet::BinaryOp(_) => false,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_ends_and_dots_that_match_them_span_lines() {
        for (regex, expected) in [
            (r"fn \w+\(", false),
            (r"a\s+b", false),
            (r"[^\n]*x", false),
            (r"(?-s)a.b", false),
            (r"(?i)a", false),
            (r"a\nb", true),
            ("a\nb", true),
            (r"a\x0Ab", true),
            (r"[;\n]", true),
            (r"(?s)a.*b", true),
            (r"a(?s:.*)b", true),
            (r"(a(?is).)", true),
        ] {
            assert_eq!(spans_lines(&parse(regex).unwrap()), expected, "{regex}");
        }
    }

    #[test]
    fn errors_name_the_position() {
        for (regex, expected) in [
            ("a(b", "unclosed group (at character 2)"),
            ("a)(b", "unopened group (at character 2)"),
            ("x\n[", "unclosed character class (at line 2, character 1)"),
            ("+", "repetition operator missing expression (at character 1)"),
        ] {
            let error = parse(regex).unwrap_err();
            assert_eq!(error, StoreError::BadPattern { reason: expected.to_owned() }, "{regex}");
        }
    }
}
