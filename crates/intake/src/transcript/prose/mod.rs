//! Plain text and Markdown: chats with speaker labels, or sections and paragraphs.

mod speaker;
mod survey;

use std::ops::ControlFlow;

use isolith_types::LONGEST_DRAWER;

use crate::feed::{Blocks, BufferedFeed, Fault, Feed, Taken, take_line};
use crate::transcript::TranscriptOptions;
use crate::transcript::turn::{ItemOutcome, Turn};
use speaker::{Label, heading, heading_text, is_role, label};
use survey::is_fence;
pub(crate) use survey::{Style, survey};

/// The result of taking the next lines.
pub(crate) struct TakenTurn {
    /// The turn, if the lines contain one.
    pub(crate) outcome: Option<ItemOutcome>,
    /// Why the last line is unusable, if it is.
    pub(crate) problem: Option<String>,
    /// The number of lines taken.
    pub(crate) lines: u64,
    /// The number of blank lines before the turn.
    pub(crate) blank: u64,
}

/// Takes the lines of turn `number`; `None` at the end of the text.
pub(crate) fn take_turn<B: Blocks>(
    source: &mut BufferedFeed<B>,
    style: &Style,
    number: u64,
    options: &TranscriptOptions,
) -> Result<Option<TakenTurn>, Fault> {
    let mut turn = TurnBuilder::new(style);
    let mut taken_turn = TakenTurn { outcome: None, problem: None, lines: 0, blank: 0 };
    while let Some(taken) = take_line(source, LONGEST_DRAWER)? {
        let Taken::Whole(length) = taken else {
            let limit = LONGEST_DRAWER >> 20;
            taken_turn.problem = Some(format!("a line is longer than {limit} MB"));
            taken_turn.lines += 1;
            break;
        };
        let line = &source.window()[..length];
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if !turn.begun && line.trim_ascii().is_empty() {
            taken_turn.blank += 1;
        } else if turn.take(line).is_break() {
            break;
        }
        taken_turn.lines += 1;
        source.advance(length);
        if source.window().first() == Some(&b'\n') {
            source.advance(1);
        }
    }
    taken_turn.outcome = turn.begun.then(|| turn.into_outcome(number, options));
    Ok((taken_turn.lines > 0).then_some(taken_turn))
}

/// A turn being read line by line.
struct TurnBuilder<'s> {
    style: &'s Style,
    text: Vec<u8>,
    begun: bool,
    speaker: Option<String>,
    date: Option<String>,
    heading: Option<String>,
    /// Inside a code block, where labels are ignored.
    fenced: bool,
    quoted: bool,
    /// Whether a section has text besides headings.
    filled: bool,
}

impl<'s> TurnBuilder<'s> {
    fn new(style: &'s Style) -> Self {
        Self {
            style,
            text: Vec::new(),
            begun: false,
            speaker: None,
            date: None,
            heading: None,
            fenced: false,
            quoted: false,
            filled: false,
        }
    }

    /// Adds a line; breaks if it begins another turn.
    fn take(&mut self, line: &[u8]) -> ControlFlow<()> {
        // An overlong turn is split; the speaker of its second part is unknown.
        if self.begun && self.text.len() + line.len() >= LONGEST_DRAWER {
            return ControlFlow::Break(());
        }
        let shown = String::from_utf8_lossy(line);
        if is_fence(&shown) {
            self.fenced = !self.fenced;
        } else if !self.fenced {
            return self.take_unfenced(line, &shown);
        }
        self.push(line);
        ControlFlow::Continue(())
    }

    fn take_unfenced(&mut self, line: &[u8], shown: &str) -> ControlFlow<()> {
        match self.style {
            Style::Labels(names) => {
                return self.take_labelled(label(shown).filter(|it| speaks(it, names)), line);
            }
            Style::Headings(names) => {
                let found = heading(shown).map(|(_, label)| label);
                return self.take_labelled(found.filter(|it| speaks(it, names)), line);
            }
            Style::Quotes => {
                let quoted = line.first() == Some(&b'>');
                let blank = line.trim_ascii().is_empty();
                if !self.begun {
                    self.quoted = quoted;
                    self.speaker = Some(if quoted { "user" } else { "assistant" }.to_owned());
                } else if quoted != self.quoted && !blank {
                    return ControlFlow::Break(());
                }
                let line = if quoted { &line[1..] } else { line };
                self.push(if quoted { line.strip_prefix(b" ").unwrap_or(line) } else { line });
            }
            Style::Sections => {
                let found = heading_text(shown);
                if found.is_some() && self.filled {
                    return ControlFlow::Break(());
                }
                self.filled |= found.is_none() && !shown.trim().is_empty();
                if let Some((_, text)) = found {
                    self.heading = Some(text.to_owned());
                }
                self.push(line);
            }
            Style::Paragraphs => {
                if shown.trim().is_empty() {
                    return ControlFlow::Break(());
                }
                self.push(line);
            }
        }
        ControlFlow::Continue(())
    }

    fn take_labelled(&mut self, label: Option<Label<'_>>, line: &[u8]) -> ControlFlow<()> {
        match label {
            Some(_) if self.begun => return ControlFlow::Break(()),
            Some(label) => {
                self.speaker = Some(label.name.to_owned());
                self.date = label.date.map(str::to_owned);
                // Keep invalid UTF-8, so that it is reported.
                let valid = std::str::from_utf8(line).is_ok();
                self.push(if valid { label.rest.as_bytes() } else { line });
            }
            None => self.push(line),
        }
        ControlFlow::Continue(())
    }

    fn push(&mut self, line: &[u8]) {
        if self.begun {
            self.text.push(b'\n');
        }
        self.begun = true;
        self.text.extend_from_slice(line);
    }

    fn into_outcome(self, number: u64, options: &TranscriptOptions) -> ItemOutcome {
        let text = match String::from_utf8(self.text) {
            Ok(text) => text,
            Err(_) => {
                let reason = "not UTF-8: convert the file, for example with iconv -f LATIN1";
                return ItemOutcome::Problem(reason.to_owned());
            }
        };
        let is_chat = !matches!(self.style, Style::Sections | Style::Paragraphs);
        let turn = Turn {
            text: trimmed(&text, is_chat),
            speaker: self.speaker.as_deref(),
            source: format!("{}#{number}", options.name),
            date: self.date.as_deref(),
            notes: vec![("heading", self.heading.as_deref().unwrap_or(""))],
            ..Turn::default()
        };
        turn.into_outcome(options)
    }
}

fn speaks(label: &Label<'_>, names: &[String]) -> bool {
    is_role(label.name) || names.contains(&label.name.to_lowercase())
}

/// Removes surrounding blank lines and, in a chat, the horizontal rules between turns.
fn trimmed(text: &str, is_chat: bool) -> &str {
    let is_rule = |line: &str| {
        let line = line.trim();
        line.len() >= 3 && ["-", "*", "_"].iter().any(|mark| line.replace(mark, "").is_empty())
    };
    let unwanted = |line: &str| line.trim().is_empty() || is_chat && is_rule(line);
    let mut text = text;
    while let Some((first, rest)) = text.split_once('\n').filter(|(first, _)| unwanted(first)) {
        debug_assert!(first.len() < text.len(), "the text gets shorter");
        text = rest;
    }
    while let Some((rest, _)) = text.rsplit_once('\n').filter(|(_, last)| unwanted(last)) {
        text = rest;
    }
    if unwanted(text) { "" } else { text.trim_end() }
}
