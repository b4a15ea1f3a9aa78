//! From the first bytes of a file to what it is.

use serde::{Deserialize, Serialize};

use crate::feed::{Content, Fault, Feed, Source, next_member, peek, skip_value, take_key};
use crate::transcript::error::of_file;
use crate::transcript::prose::{Style, survey};
use crate::transcript::{Format, Plan, TranscriptError};

/// How the parts of a file follow each other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Form {
    /// A part in each line.
    Lines,
    /// A list of conversations.
    List,
    /// One conversation alone.
    One,
    /// Text that is cut like this.
    Prose(Style),
}

/// What a file is, and where its first part begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Recognized {
    pub(crate) format: Format,
    pub(crate) form: Form,
    pub(crate) start: u64,
}

/// So much of a text decides about all of it.
const HEAD_BYTES: usize = 256 << 10;

/// This many conversations or lines are looked at for one that tells what they are.
const LOOKED_AT: usize = 20;

/// Looks at a file.
pub(crate) fn recognize(
    content: &impl Content,
    plan: &Plan,
) -> Result<Recognized, TranscriptError> {
    let head = read_head(content).map_err(TranscriptError::Io)?;
    refuse_other_kinds(&head)?;
    let bom = if head.starts_with(b"\xEF\xBB\xBF") { 3 } else { 0 };
    let text = &head[bom..];
    if text.trim_ascii().is_empty() {
        return Err(TranscriptError::Empty);
    }
    let start = bom as u64;
    let prose = |format| {
        if text.contains(&0) {
            return Err(TranscriptError::Binary { found: "binary data" });
        }
        let style = survey(&String::from_utf8_lossy(text), format == Format::Markdown);
        Ok(Recognized { format, form: Form::Prose(style), start })
    };
    match plan.format {
        Some(format @ (Format::Text | Format::Markdown)) => prose(format),
        Some(format @ (Format::Claude | Format::Chatgpt)) => {
            as_export(&Shape::of(content, start)?, format)
        }
        Some(format @ (Format::Drawers | Format::ClaudeCode)) => {
            if text.trim_ascii_start().first() == Some(&b'[') {
                let found = "one list, not an object in each line".to_owned();
                return Err(TranscriptError::Other { format, found });
            }
            Ok(Recognized { format, form: Form::Lines, start })
        }
        None => match Shape::of(content, start)?.recognized(text, start) {
            Some(recognized) => Ok(recognized),
            None => prose(format_of_prose(text, plan)?),
        },
    }
}

fn read_head(content: &impl Content) -> std::io::Result<Vec<u8>> {
    let mut head = vec![0; HEAD_BYTES];
    let mut filled = 0;
    while filled < head.len() {
        match content.read_at(filled as u64, &mut head[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    head.truncate(filled);
    Ok(head)
}

fn refuse_other_kinds(head: &[u8]) -> Result<(), TranscriptError> {
    let found = match head {
        [b'P', b'K', 3, 4, ..] => return Err(TranscriptError::Packed { kind: "a zip archive" }),
        [0x1F, 0x8B, ..] => return Err(TranscriptError::Packed { kind: "packed with gzip" }),
        [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..] => "UTF-16 text",
        [b'%', b'P', b'D', b'F', ..] => "a PDF",
        _ if head.starts_with(b"SQLite format 3\0") => "a SQLite database",
        _ => return Ok(()),
    };
    Err(TranscriptError::Binary { found })
}

/// What the JSON of a file looks like.
enum Shape {
    /// It is none.
    NotJson,
    /// A list, whose items begin here and are of this kind.
    List(u64, Kind),
    /// An object.
    One(u64, Kind),
}

/// What an object seems to be, by its keys.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Conversation(Format),
    /// An object whose conversations begin here.
    Wrapper(u64),
    Drawer,
    Event,
    Other(Vec<String>),
}

impl Shape {
    fn of(content: &impl Content, start: u64) -> Result<Self, TranscriptError> {
        let mut source = Source::new(content, start, 64 << 10);
        match Self::read(&mut source) {
            Ok(shape) => Ok(shape),
            Err(fault) => of_file(fault).map(|_| Shape::NotJson),
        }
    }

    fn read(source: &mut impl Feed) -> Result<Self, Fault> {
        match peek(source)? {
            Some(b'[') => Self::list(source),
            Some(b'{') => {
                let start = source.offset();
                match Kind::of(source)? {
                    Kind::Wrapper(_) => Self::list(source),
                    kind => Ok(Shape::One(start, kind)),
                }
            }
            _ => Ok(Shape::NotJson),
        }
    }

    fn list(source: &mut impl Feed) -> Result<Self, Fault> {
        source.advance(1);
        let start = source.offset();
        let mut kind = Kind::Other(Vec::new());
        for at in 0..LOOKED_AT {
            match next_member(source, at == 0, b']') {
                Ok(true) => {}
                Ok(false) => break,
                // Markdown may begin with a bracket; a list that breaks off later is one.
                Err(fault) if at == 0 => return Err(fault),
                Err(_) => break,
            }
            if peek(source)? != Some(b'{') {
                return Ok(if at == 0 { Shape::NotJson } else { Shape::List(start, kind) });
            }
            match Kind::of(source) {
                Ok(Kind::Other(keys)) if kind == Kind::Other(Vec::new()) => {
                    kind = Kind::Other(keys);
                }
                Ok(Kind::Other(_)) => {}
                Ok(found) => return Ok(Shape::List(start, found)),
                Err(fault) if at == 0 => return Err(fault),
                Err(_) => break,
            }
        }
        Ok(Shape::List(start, kind))
    }

    /// What it is without being told.
    fn recognized(&self, head: &[u8], start: u64) -> Option<Recognized> {
        let lines = |kind: &Kind| match kind {
            Kind::Drawer => Some(Recognized { format: Format::Drawers, form: Form::Lines, start }),
            Kind::Event => {
                Some(Recognized { format: Format::ClaudeCode, form: Form::Lines, start })
            }
            _ => None,
        };
        match self {
            Shape::List(start, Kind::Conversation(format)) => {
                Some(Recognized { format: *format, form: Form::List, start: *start })
            }
            Shape::One(start, Kind::Conversation(format)) => {
                Some(Recognized { format: *format, form: Form::One, start: *start })
            }
            Shape::One(_, kind @ (Kind::Drawer | Kind::Event)) => lines(kind),
            // The first line may be a bad one.
            _ if head.trim_ascii_start().first() == Some(&b'{') => head
                .split(|byte| *byte == b'\n')
                .filter(|line| line.trim_ascii_start().first() == Some(&b'{'))
                .take(LOOKED_AT)
                .filter_map(|line| Kind::of(&mut Source::new(line, 0, 4 << 10)).ok())
                .find_map(|kind| lines(&kind)),
            _ => None,
        }
    }
}

impl Kind {
    /// Looks at the keys of an object until they tell what it is.
    fn of(source: &mut impl Feed) -> Result<Self, Fault> {
        const SHOWN: usize = 6;
        const OF_EVENTS: [&str; 7] =
            ["sessionId", "message", "leafUuid", "messageId", "summary", "parentUuid", "snapshot"];
        peek(source)?;
        source.advance(1);
        let mut keys = Vec::new();
        let (mut typed, mut of_event) = (false, false);
        let mut first = true;
        while next_member(source, first, b'}')? {
            first = false;
            let key = take_key(source)?;
            match key.as_str() {
                "chat_messages" => return Ok(Kind::Conversation(Format::Claude)),
                "mapping" => return Ok(Kind::Conversation(Format::Chatgpt)),
                "conversations" if peek(source)? == Some(b'[') => {
                    return Ok(Kind::Wrapper(source.offset()));
                }
                "text" => return Ok(Kind::Drawer),
                "type" => typed = true,
                other => of_event |= OF_EVENTS.contains(&other),
            }
            skip_value(source)?;
            if keys.len() < SHOWN {
                keys.push(key);
            }
        }
        Ok(if typed && of_event { Kind::Event } else { Kind::Other(keys) })
    }
}

/// An export in the form that it has.
fn as_export(shape: &Shape, format: Format) -> Result<Recognized, TranscriptError> {
    let other = |found: &str| TranscriptError::Other { format, found: found.to_owned() };
    match shape {
        Shape::List(_, Kind::Conversation(found)) | Shape::One(_, Kind::Conversation(found))
            if *found != format =>
        {
            Err(other(&format!("conversations as {found} has them")))
        }
        Shape::List(start, _) => Ok(Recognized { format, form: Form::List, start: *start }),
        Shape::One(start, Kind::Conversation(_)) => {
            Ok(Recognized { format, form: Form::One, start: *start })
        }
        Shape::One(_, Kind::Drawer) => Err(other("drawers")),
        Shape::One(_, Kind::Event) => Err(other("a session of Claude Code")),
        Shape::One(..) => Err(other("an object without conversations")),
        Shape::NotJson => Err(other("something that is not JSON")),
    }
}

/// Which text it is, if it is one.
fn format_of_prose(text: &[u8], plan: &Plan) -> Result<Format, TranscriptError> {
    let ending = plan.ending();
    let begins = |words: &str| {
        let text = text.trim_ascii_start();
        text.get(..words.len()).is_some_and(|it| it.eq_ignore_ascii_case(words.as_bytes()))
    };
    if matches!(ending.as_str(), "html" | "htm") || begins("<!doctype html") || begins("<html") {
        return Err(TranscriptError::Unknown {
            found: "a web page".to_owned(),
            hint: "ChatGPT's chat.html comes with a conversations.json that has the same in it: import that",
        });
    }
    match ending.as_str() {
        "md" | "markdown" | "mdown" => Ok(Format::Markdown),
        "json" | "jsonl" | "ndjson" => Err(unknown_json(text)),
        _ => Ok(Format::Text),
    }
}

fn unknown_json(text: &[u8]) -> TranscriptError {
    let mut source = Source::new(text, 0, 4 << 10);
    let (found, hint) = match Shape::read(&mut source) {
        Ok(Shape::List(_, Kind::Drawer)) => (
            "one list of drawers".to_owned(),
            "write one object a line: jq -c '.[]' FILE > FILE.jsonl",
        ),
        Ok(Shape::List(_, Kind::Other(keys)) | Shape::One(_, Kind::Other(keys)))
            if !keys.is_empty() =>
        {
            (format!("objects with the keys {}", keys.join(", ")), FORMATS)
        }
        Ok(Shape::List(..)) => ("an empty list".to_owned(), FORMATS),
        _ => ("something that is not JSON".to_owned(), FORMATS),
    };
    TranscriptError::Unknown { found, hint }
}

const FORMATS: &str = "an export has conversations with chat_messages (Claude) or a mapping \
    (ChatGPT), a session of Claude Code events with a type, a file of drawers a text in each line";
