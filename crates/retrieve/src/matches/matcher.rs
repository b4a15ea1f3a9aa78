//! Finds the matches of a pattern in a text.

use std::ops::{ControlFlow, Range};

use grep_matcher::{LineMatchKind, Matcher as _};
use grep_regex::{Error, ErrorKind, RegexMatcher, RegexMatcherBuilder};
use isolith_protocol::{Pattern, PatternSyntax, StoreError};
use memchr::{memchr, memrchr};

use super::multi_line::{parse, spans_lines};

/// Maximum size of a compiled regular expression, in bytes.
const MAX_REGEX_BYTES: usize = 10 << 20;

/// Maximum size of what its engine computes while it searches.
const MAX_CACHE_BYTES: usize = 64 << 20;

/// Maximum nesting of groups.
pub(super) const MAX_NESTING: u32 = 250;

/// A compiled pattern. Matching takes time linear in the text, whatever the pattern.
#[derive(Debug)]
pub(super) struct Matcher {
    regex: RegexMatcher,
    reach: Reach,
}

/// How far a match can reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// Within a line.
    Line,
    /// Within a line, whose ends are the ends of the text for `\A` and `\z`.
    LineAlone,
    /// Across lines.
    Lines,
}

/// A match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Match {
    /// The line on which it begins, without its end.
    pub(super) line: Range<usize>,
    /// The match itself, which may go on after the line.
    pub(super) span: Range<usize>,
}

impl Matcher {
    /// # Errors
    /// If it is empty, invalid or too large.
    pub(super) fn new(pattern: &Pattern) -> Result<Self, StoreError> {
        if pattern.text.is_empty() {
            return Err(StoreError::Invalid("the pattern is empty".to_owned()));
        }
        let within_line = match pattern.syntax {
            PatternSyntax::Literal => true,
            PatternSyntax::Regex => !spans_lines(&parse(&pattern.text)?),
        };
        if within_line {
            match build(pattern, Reach::Line) {
                Ok(regex) => {
                    let alone = regex.line_terminator().is_none();
                    let reach = if alone { Reach::LineAlone } else { Reach::Line };
                    return Ok(Self { regex, reach });
                }
                // It has a line end in it.
                Err(error) if matches!(error.kind(), ErrorKind::NotAllowed(_)) => {}
                Err(error) => return Err(refused(&error)),
            }
        }
        let regex = build(pattern, Reach::Lines).map_err(|error| refused(&error))?;
        Ok(Self { regex, reach: Reach::Lines })
    }

    /// Calls `each` with all matches in a text, in order, until it breaks.
    pub(super) fn for_each(
        &self,
        text: &[u8],
        each: &mut impl FnMut(Match) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        match self.reach {
            Reach::Line => self.in_candidate_lines(text, each),
            Reach::LineAlone => self.in_all_lines(text, each),
            Reach::Lines => self.in_whole_text(text, each),
        }
    }

    /// Looks only at lines that the engine's fastest search finds.
    fn in_candidate_lines(
        &self,
        text: &[u8],
        each: &mut impl FnMut(Match) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let mut from = 0;
        while from < text.len() {
            let Ok(Some(found)) = self.regex.find_candidate_line(&text[from..]) else { break };
            let (LineMatchKind::Confirmed(at) | LineMatchKind::Candidate(at)) = found;
            let start = memrchr(b'\n', &text[from..from + at]).map_or(from, |end| from + end + 1);
            if start == text.len() {
                break;
            }
            let (line, next) = line_at(text, start);
            self.in_line(text, line, each)?;
            from = next;
        }
        ControlFlow::Continue(())
    }

    fn in_all_lines(
        &self,
        text: &[u8],
        each: &mut impl FnMut(Match) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let mut from = 0;
        while from < text.len() {
            let (line, next) = line_at(text, from);
            self.in_line(text, line, each)?;
            from = next;
        }
        ControlFlow::Continue(())
    }

    fn in_line(
        &self,
        text: &[u8],
        line: Range<usize>,
        each: &mut impl FnMut(Match) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.spans(&text[line.clone()], |span| {
            let span = line.start + span.start..line.start + span.end;
            each(Match { line: line.clone(), span })
        })
    }

    fn in_whole_text(
        &self,
        text: &[u8],
        each: &mut impl FnMut(Match) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        // The line at which the last match began, and where the next one starts.
        let (mut line, mut next) = (0..0, 0);
        self.spans(text, |span| {
            // After the last line end there is no line.
            let beyond = span.start == text.len() && text.last().is_none_or(|last| *last == b'\n');
            if beyond {
                return ControlFlow::Break(());
            }
            if span.start >= next {
                let start =
                    memrchr(b'\n', &text[next..span.start]).map_or(next, |at| next + at + 1);
                (line, next) = line_at(text, start);
            }
            each(Match { line: line.clone(), span })
        })
    }

    /// Calls `each` with all matches of the regular expression.
    fn spans(
        &self,
        text: &[u8],
        mut each: impl FnMut(Range<usize>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let mut flow = ControlFlow::Continue(());
        // It never fails: the error has no values.
        let _ = self.regex.find_iter(text, |found| {
            // An empty match between the bytes of a character is none.
            if found.is_empty() && is_inside_character(text, found.start()) {
                return true;
            }
            flow = each(found.start()..found.end());
            flow.is_continue()
        });
        flow
    }
}

/// A line by its start, without its end, and where the next one starts.
fn line_at(text: &[u8], start: usize) -> (Range<usize>, usize) {
    let (end, next) = match memchr(b'\n', &text[start..]) {
        Some(at) => (start + at, start + at + 1),
        None => (text.len(), text.len()),
    };
    let cr = text[start..end].last() == Some(&b'\r');
    (start..end - usize::from(cr), next)
}

fn is_inside_character(text: &[u8], at: usize) -> bool {
    text.get(at).is_some_and(|byte| byte & 0xC0 == 0x80)
}

fn build(pattern: &Pattern, reach: Reach) -> Result<RegexMatcher, Error> {
    let mut builder = RegexMatcherBuilder::new();
    // Lines may end with CR and LF: `$` is before both, and no match within a line has either.
    builder.multi_line(true).crlf(true).case_insensitive(pattern.ignore_case);
    builder.size_limit(MAX_REGEX_BYTES).dfa_size_limit(MAX_CACHE_BYTES).nest_limit(MAX_NESTING);
    if reach == Reach::Lines {
        builder.line_terminator(None);
    }
    match (pattern.syntax, reach) {
        (PatternSyntax::Literal, Reach::Lines) => {
            builder.build(&regex_syntax::escape(&pattern.text).replace('\n', r"\r?\n"))
        }
        (PatternSyntax::Literal, Reach::Line | Reach::LineAlone) => {
            builder.fixed_strings(true).build(&pattern.text)
        }
        (PatternSyntax::Regex, _) => builder.build(&pattern.text),
    }
}

fn refused(error: &Error) -> StoreError {
    let reason = error.to_string();
    let reason = reason.lines().last().unwrap_or_default();
    let reason = reason.strip_prefix("error: ").unwrap_or(reason).to_owned();
    StoreError::BadPattern { reason }
}

#[cfg(test)]
mod tests;
