use std::ops::ControlFlow;

use isolith_types::NewDrawer;
use serde::{Deserialize, Serialize};

use crate::feed::{BufferedFeed, Content, Fault, Feed, Taken, next_member, take_line, take_value};
use crate::transcript::conversation::Conversation;
use crate::transcript::error::of_file;
use crate::transcript::json::Json;
use crate::transcript::prose::take_turn;
use crate::transcript::recognize::{Form, recognize};
use crate::transcript::session::Session;
use crate::transcript::turn::{ItemOutcome, SkippedItems};
use crate::transcript::{
    Format, MAX_ITEM_BYTES, TranscriptError, TranscriptOptions, claude_code, codex, drawers,
};

/// Reads a file of conversations or drawers, in batches.
pub struct Transcript<C> {
    options: TranscriptOptions,
    source: BufferedFeed<C>,
    cursor: TranscriptCursor,
    /// The conversation at the start of the window, if only some of it was returned.
    open: Option<Conversation>,
}

/// A position between two turns of a file, from which reading can resume. Valid only for the same
/// file and options.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TranscriptCursor {
    format: Format,
    form: Form,
    /// The offset of the next line, conversation or turn.
    offset: u64,
    /// The number of lines or conversations before it.
    row: u64,
    /// The number of messages of the conversation, or turns of the text, before it.
    message: usize,
    /// The number of items of the next message (its text, its attachments) before it.
    item: usize,
    session: Session,
    ended: bool,
}

/// Consecutive drawers of a file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DrawerBatch {
    /// The drawers; may be empty.
    pub drawers: Vec<NewDrawer>,
    /// The line of each drawer, or in an export the number of its conversation.
    pub rows: Vec<u64>,
    /// The unusable items.
    pub problems: Vec<Problem>,
    /// The number of items skipped because they are not turns.
    pub skipped: SkippedItems,
}

/// Why an item of a file cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// Its line, or in an export the number of its conversation; from 1.
    pub row: u64,
    /// The reason, for people.
    pub reason: String,
}

impl TranscriptCursor {
    /// The format of the file.
    pub fn format(&self) -> Format {
        self.format
    }

    /// The number of bytes completely processed.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Whether the file has been read to its end.
    pub fn is_end(&self) -> bool {
        self.ended
    }

    /// The position from which to read what has been appended since. `None` if the whole file has to
    /// be read again, because its items are not lines.
    #[must_use]
    pub fn for_appended(&self) -> Option<Self> {
        (self.form == Form::Lines).then(|| Self { ended: false, ..self.clone() })
    }
}

const BUFFER_BYTES: usize = 256 << 10;

/// A batch ends after this many bytes of the file, even if it is empty.
const MAX_READ_PER_BATCH: u64 = 64 << 20;

impl<C: Content> Transcript<C> {
    /// Detects the format of a file and starts at its first turn.
    ///
    /// # Errors
    /// A [`TranscriptError`] if the file cannot be read at all.
    pub fn open(content: C, options: TranscriptOptions) -> Result<Self, TranscriptError> {
        let found = recognize(&content, &options)?;
        let cursor = TranscriptCursor {
            format: found.format,
            form: found.form,
            offset: found.start,
            row: 0,
            message: 0,
            item: 0,
            session: Session::default(),
            ended: false,
        };
        Self::resume(content, options, cursor)
    }

    /// Continues at a cursor.
    ///
    /// # Errors
    /// [`TranscriptError::Changed`] if the file is now too short.
    pub fn resume(
        content: C,
        options: TranscriptOptions,
        cursor: TranscriptCursor,
    ) -> Result<Self, TranscriptError> {
        let size = content.size().map_err(TranscriptError::Io)?;
        if size < cursor.offset {
            return Err(TranscriptError::Changed { size });
        }
        let source = BufferedFeed::new(content, cursor.offset, BUFFER_BYTES);
        Ok(Self { options, source, cursor, open: None })
    }

    /// The position of the next batch.
    pub fn cursor(&self) -> &TranscriptCursor {
        &self.cursor
    }

    /// The next batch: about `max_rows` drawers and problems, or `max_bytes` bytes of them. `None`
    /// at the end of the file.
    ///
    /// # Errors
    /// [`TranscriptError::Io`]. All other problems are part of the batch.
    pub fn next(
        &mut self,
        max_rows: usize,
        max_bytes: usize,
    ) -> Result<Option<DrawerBatch>, TranscriptError> {
        if self.cursor.ended {
            return Ok(None);
        }
        let mut tally =
            Tally { batch: DrawerBatch::default(), bytes: 0, limits: (max_rows.max(1), max_bytes) };
        let start = self.cursor.offset;
        while !self.cursor.ended
            && !tally.is_full()
            && self.cursor.offset - start < MAX_READ_PER_BATCH
        {
            let outcome = match self.cursor.form {
                Form::Lines => self.line(&mut tally),
                Form::List | Form::One => self.conversation(&mut tally),
                Form::Prose(_) => self.turn(&mut tally),
            };
            if let Err(fault) = outcome {
                let fault = of_file(fault)?;
                tally
                    .problem(self.cursor.row + 1, format!("{fault}; nothing after it can be read"));
                self.cursor.ended = true;
            }
        }
        Ok(Some(tally.batch))
    }

    fn line(&mut self, tally: &mut Tally) -> Result<(), Fault> {
        let Some(taken) = take_line(&mut self.source, MAX_ITEM_BYTES)? else {
            self.cursor.ended = true;
            return Ok(());
        };
        self.cursor.row += 1;
        let row = self.cursor.row;
        match taken {
            Taken::TooLong(bytes) => tally.problem(row, too_long("line", bytes)),
            Taken::Whole(length)
                if self.options.grows && self.source.window().get(length) != Some(&b'\n') =>
            {
                // Its end has not been written yet.
                self.cursor.row -= 1;
                self.cursor.ended = true;
                return Ok(());
            }
            Taken::Whole(length) => {
                let line = self.source.window()[..length].trim_ascii_end();
                let blank = line.len() - line.trim_ascii_start().len();
                let json = Json::new(&line[blank..], self.source.offset() + blank as u64);
                if !json.bytes.is_empty() {
                    let outcome = match self.cursor.format {
                        Format::ClaudeCode => claude_code::parse_line(
                            json,
                            row,
                            &mut self.cursor.session,
                            &self.options,
                        ),
                        Format::Codex => {
                            codex::parse_line(json, row, &mut self.cursor.session, &self.options)
                        }
                        _ => drawers::parse_line(json, &self.options),
                    };
                    tally.add(row, outcome);
                }
                self.source.advance(length);
                if self.source.window().first() == Some(&b'\n') {
                    self.source.advance(1);
                }
            }
        }
        self.cursor.offset = self.source.offset();
        Ok(())
    }

    fn conversation(&mut self, tally: &mut Tally) -> Result<(), Fault> {
        let Some(conversation) = self.enter(tally)? else { return Ok(()) };
        let row = self.cursor.row + 1;
        let (window, offset) = (self.source.window(), self.source.offset());
        for (at, range) in
            conversation.outline.messages.iter().enumerate().skip(self.cursor.message)
        {
            let json = Json::new(&window[range.clone()], offset + range.start as u64);
            // The first items of a message may have been in an earlier batch.
            let (mut count, before) = (0, std::mem::take(&mut self.cursor.item));
            let flow = conversation.message(json, at + 1, &self.options, &mut |outcome| {
                count += 1;
                if count > before {
                    tally.add(row, outcome);
                }
                if tally.is_full() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            if flow.is_break() {
                (self.cursor.message, self.cursor.item) = (at, count);
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

    /// Brings the next conversation, or the one partly returned, into memory; `None` at the end or
    /// if it is too long.
    fn enter(&mut self, tally: &mut Tally) -> Result<Option<Conversation>, Fault> {
        if let Some(conversation) = self.open.take() {
            return Ok(Some(conversation));
        }
        let TranscriptCursor { form, row, message, item, .. } = &self.cursor;
        let (row, begun) = (*row + 1, *message > 0 || *item > 0);
        if *form == Form::List && !begun && !next_member(&mut self.source, row == 1, b']')? {
            self.cursor.ended = true;
            return Ok(None);
        }
        self.cursor.offset = self.source.offset();
        match take_value(&mut self.source, MAX_ITEM_BYTES)? {
            Taken::Whole(length) => {
                let json = Json::new(&self.source.window()[..length], self.source.offset());
                Ok(Some(Conversation::read(json, self.cursor.format, row)))
            }
            Taken::TooLong(bytes) => {
                tally.problem(row, too_long("conversation", bytes));
                self.leave();
                Ok(None)
            }
        }
    }

    /// Moves the cursor past a conversation.
    fn leave(&mut self) {
        (self.cursor.message, self.cursor.item) = (0, 0);
        self.cursor.row += 1;
        self.cursor.offset = self.source.offset();
        self.cursor.ended = self.cursor.form == Form::One;
    }

    fn turn(&mut self, tally: &mut Tally) -> Result<(), Fault> {
        let Form::Prose(style) = &self.cursor.form else { return Ok(()) };
        let number = self.cursor.message + 1;
        let Some(turn) = take_turn(&mut self.source, style, number as u64, &self.options)? else {
            self.cursor.ended = true;
            return Ok(());
        };
        if let Some(outcome) = turn.outcome {
            tally.add(self.cursor.row + turn.blank + 1, outcome);
            self.cursor.message = number;
        }
        self.cursor.row += turn.lines;
        if let Some(reason) = turn.problem {
            tally.problem(self.cursor.row, reason);
        }
        self.cursor.offset = self.source.offset();
        Ok(())
    }
}

fn too_long(what: &str, bytes: u64) -> String {
    format!("the {what} has {bytes} bytes, more than {} MB", MAX_ITEM_BYTES >> 20)
}

/// A batch being filled.
struct Tally {
    batch: DrawerBatch,
    bytes: usize,
    limits: (usize, usize),
}

impl Tally {
    fn add(&mut self, row: u64, outcome: ItemOutcome) {
        match outcome {
            ItemOutcome::Skipped(reason) => self.batch.skipped.count(reason),
            ItemOutcome::Problem(reason) => self.problem(row, reason),
            ItemOutcome::Drawer(drawer) => {
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

/// The approximate size of a drawer when sent to another process.
fn size_of(drawer: &NewDrawer) -> usize {
    let NewDrawer { text, wing, room, source, metadata, .. } = drawer;
    let source = source.as_ref().map_or(0, String::len);
    text.len() + wing.len() + room.len() + source + metadata.as_str().len() + 64
}
