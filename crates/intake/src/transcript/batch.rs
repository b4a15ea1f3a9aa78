use std::ops::ControlFlow;

use isolith_types::NewDrawer;
use serde::{Deserialize, Serialize};

use crate::feed::{Content, Fault, Feed, Source, Taken, next_member, take_line, take_value};
use crate::transcript::claude_code::Session;
use crate::transcript::conversation::Conversation;
use crate::transcript::error::of_file;
use crate::transcript::json::Json;
use crate::transcript::prose::take_turn;
use crate::transcript::recognize::{Form, recognize};
use crate::transcript::turn::Part;
use crate::transcript::{Format, MAX_PART_BYTES, Plan, TranscriptError, claude_code, drawers};

/// A file of conversations or drawers, open at some place.
pub struct Transcript<C> {
    plan: Plan,
    source: Source<C>,
    place: Place,
    /// The conversation that the window begins with, if it was begun.
    open: Option<Conversation>,
}

/// A place between two turns of a file, from which reading can go on. It belongs to the
/// file and the plan that it was made with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    format: Format,
    form: Form,
    /// Where the line, the conversation or the turn begins that comes next.
    offset: u64,
    /// How many lines or conversations are before it.
    row: u64,
    /// How many messages of the conversation, or turns of the text, are before it.
    part: usize,
    /// How much of the next message is before it: what it says, its attachments.
    of_part: usize,
    session: Session,
    ended: bool,
}

/// Some drawers of a file, in its order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Batch {
    /// The drawers; there may be none.
    pub drawers: Vec<NewDrawer>,
    /// For each drawer its line or, in an export, the number of its conversation.
    pub rows: Vec<u64>,
    /// What cannot be used.
    pub problems: Vec<Problem>,
    /// How many parts are nothing that anybody said.
    pub skipped: u64,
}

/// Why a part of a file cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// Its line or, in an export, the number of its conversation; counted from 1.
    pub row: u64,
    /// What is wrong with it.
    pub reason: String,
}

impl Place {
    /// The format of the file.
    pub fn format(&self) -> Format {
        self.format
    }

    /// How many bytes are read for good.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Whether nothing follows.
    pub fn is_end(&self) -> bool {
        self.ended
    }
}

const BUFFER_BYTES: usize = 256 << 10;

/// After this many bytes a batch is handed out, whatever is in it.
const READ_AT_ONCE: u64 = 64 << 20;

impl<C: Content> Transcript<C> {
    /// Looks at a file and stands before its first turn.
    ///
    /// # Errors
    /// A [`TranscriptError`] says why nothing of it can be read.
    pub fn open(content: C, plan: Plan) -> Result<Self, TranscriptError> {
        let found = recognize(&content, &plan)?;
        let place = Place {
            format: found.format,
            form: found.form,
            offset: found.start,
            row: 0,
            part: 0,
            of_part: 0,
            session: Session::default(),
            ended: false,
        };
        Self::resume(content, plan, place)
    }

    /// Goes on at a place.
    ///
    /// # Errors
    /// [`TranscriptError::Changed`] if it is not in the file.
    pub fn resume(content: C, plan: Plan, place: Place) -> Result<Self, TranscriptError> {
        let size = content.size().map_err(TranscriptError::Io)?;
        if size < place.offset {
            return Err(TranscriptError::Changed { size });
        }
        let source = Source::new(content, place.offset, BUFFER_BYTES);
        Ok(Self { plan, source, place, open: None })
    }

    /// Where it stands.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Reads on until there are this many drawers and problems, or about so many bytes of
    /// them; nothing at the end.
    ///
    /// # Errors
    /// [`TranscriptError::Io`]: all else that is wrong is in the batch.
    pub fn next(&mut self, rows: usize, bytes: usize) -> Result<Option<Batch>, TranscriptError> {
        if self.place.ended {
            return Ok(None);
        }
        let mut tally = Tally { batch: Batch::default(), bytes: 0, limits: (rows.max(1), bytes) };
        let begun = self.place.offset;
        while !self.place.ended && !tally.is_full() && self.place.offset - begun < READ_AT_ONCE {
            let outcome = match self.place.form {
                Form::Lines => self.line(&mut tally),
                Form::List | Form::One => self.conversation(&mut tally),
                Form::Prose(_) => self.turn(&mut tally),
            };
            if let Err(fault) = outcome {
                let fault = of_file(fault)?;
                tally.problem(self.place.row + 1, format!("{fault}; nothing after it can be read"));
                self.place.ended = true;
            }
        }
        Ok(Some(tally.batch))
    }

    fn line(&mut self, tally: &mut Tally) -> Result<(), Fault> {
        let Some(taken) = take_line(&mut self.source, MAX_PART_BYTES)? else {
            self.place.ended = true;
            return Ok(());
        };
        self.place.row += 1;
        let row = self.place.row;
        match taken {
            Taken::TooLong(bytes) => tally.problem(row, too_long("line", bytes)),
            Taken::Whole(length) => {
                let line = self.source.window()[..length].trim_ascii_end();
                let blank = line.len() - line.trim_ascii_start().len();
                let json = Json::new(&line[blank..], self.source.offset() + blank as u64);
                if !json.bytes.is_empty() {
                    let part = match self.place.format {
                        Format::ClaudeCode => {
                            claude_code::part(json, row, &mut self.place.session, &self.plan)
                        }
                        _ => drawers::part(json, &self.plan),
                    };
                    tally.add(row, part);
                }
                self.source.advance(length);
                if self.source.window().first() == Some(&b'\n') {
                    self.source.advance(1);
                }
            }
        }
        self.place.offset = self.source.offset();
        Ok(())
    }

    fn conversation(&mut self, tally: &mut Tally) -> Result<(), Fault> {
        let Some(conversation) = self.enter(tally)? else { return Ok(()) };
        let row = self.place.row + 1;
        let (window, offset) = (self.source.window(), self.source.offset());
        for (at, range) in conversation.outline.messages.iter().enumerate().skip(self.place.part) {
            let json = Json::new(&window[range.clone()], offset + range.start as u64);
            // Of a message that was cut, the first ones were handed out before.
            let (mut count, before) = (0, std::mem::take(&mut self.place.of_part));
            let flow = conversation.message(json, at + 1, &self.plan, &mut |part| {
                count += 1;
                if count > before {
                    tally.add(row, part);
                }
                if tally.is_full() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            if flow.is_break() {
                (self.place.part, self.place.of_part) = (at, count);
                self.open = Some(conversation);
                return Ok(());
            }
        }
        if let Some(reason) = conversation.outline.flaw {
            tally.problem(row, reason);
        }
        self.source.advance(conversation.length);
        self.leave();
        Ok(())
    }

    /// Brings the next conversation, or the one that was begun, into memory; nothing if
    /// there is none, or one that is too long.
    fn enter(&mut self, tally: &mut Tally) -> Result<Option<Conversation>, Fault> {
        if let Some(conversation) = self.open.take() {
            return Ok(Some(conversation));
        }
        let Place { form, row, part, of_part, .. } = &self.place;
        let (row, begun) = (*row + 1, *part > 0 || *of_part > 0);
        if *form == Form::List && !begun && !next_member(&mut self.source, row == 1, b']')? {
            self.place.ended = true;
            return Ok(None);
        }
        self.place.offset = self.source.offset();
        match take_value(&mut self.source, MAX_PART_BYTES)? {
            Taken::Whole(length) => {
                let json = Json::new(&self.source.window()[..length], self.source.offset());
                Ok(Some(Conversation::read(json, self.place.format, row)))
            }
            Taken::TooLong(bytes) => {
                tally.problem(row, too_long("conversation", bytes));
                self.leave();
                Ok(None)
            }
        }
    }

    /// Stands behind a conversation.
    fn leave(&mut self) {
        (self.place.part, self.place.of_part) = (0, 0);
        self.place.row += 1;
        self.place.offset = self.source.offset();
        self.place.ended = self.place.form == Form::One;
    }

    fn turn(&mut self, tally: &mut Tally) -> Result<(), Fault> {
        let Form::Prose(style) = &self.place.form else { return Ok(()) };
        let number = self.place.part + 1;
        let Some(found) = take_turn(&mut self.source, style, number as u64, &self.plan)? else {
            self.place.ended = true;
            return Ok(());
        };
        if let Some(part) = found.part {
            tally.add(self.place.row + found.blank + 1, part);
            self.place.part = number;
        }
        self.place.row += found.lines;
        if let Some(reason) = found.problem {
            tally.problem(self.place.row, reason);
        }
        self.place.offset = self.source.offset();
        Ok(())
    }
}

fn too_long(what: &str, bytes: u64) -> String {
    format!("the {what} has {bytes} bytes, more than {} MB", MAX_PART_BYTES >> 20)
}

/// A batch that fills.
struct Tally {
    batch: Batch,
    bytes: usize,
    limits: (usize, usize),
}

impl Tally {
    fn add(&mut self, row: u64, part: Part) {
        match part {
            Part::Skipped => self.batch.skipped += 1,
            Part::Problem(reason) => self.problem(row, reason),
            Part::Drawer(drawer) => {
                self.bytes += size_of(&drawer);
                self.batch.drawers.push(*drawer);
                self.batch.rows.push(row);
            }
        }
    }

    fn problem(&mut self, row: u64, reason: String) {
        self.bytes += reason.len();
        self.batch.problems.push(Problem { row, reason });
    }

    fn is_full(&self) -> bool {
        let rows = self.batch.drawers.len() + self.batch.problems.len();
        rows >= self.limits.0 || self.bytes >= self.limits.1
    }
}

/// About this many bytes go from one process to another for it.
fn size_of(drawer: &NewDrawer) -> usize {
    let NewDrawer { text, wing, room, source, metadata, .. } = drawer;
    let source = source.as_ref().map_or(0, String::len);
    text.len() + wing.len() + room.len() + source + metadata.as_str().len() + 64
}
