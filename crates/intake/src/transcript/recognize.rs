//! Detects the format of a file from its first bytes.

use serde::{Deserialize, Serialize};

use crate::feed::{BufferedFeed, Content, Fault, Feed, next_member, peek, skip_value, take_key};
use crate::transcript::error::of_file;
use crate::transcript::prose::{Style, survey};
use crate::transcript::{Format, TranscriptError, TranscriptOptions};

/// How the items of a file are arranged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Form {
    /// One item per line.
    Lines,
    /// A list of conversations.
    List,
    /// A single conversation.
    One,
    /// Text, split into turns by this style.
    Prose(Style),
}

/// The format of a file, and the offset of its first item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Recognized {
    pub(crate) format: Format,
    pub(crate) form: Form,
    pub(crate) start: u64,
}

/// How much of a text determines its style.
const HEAD_BYTES: usize = 256 << 10;

/// The maximum number of conversations or lines examined to find a recognizable one.
const MAX_EXAMINED: usize = 20;

/// Detects the format, or checks the one given in the options.
pub(crate) fn recognize(
    content: &impl Content,
    options: &TranscriptOptions,
) -> Result<Recognized, TranscriptError> {
    let head = read_head(content).map_err(TranscriptError::Io)?;
    reject_binary(&head)?;
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
    match options.format {
        Some(format @ (Format::Text | Format::Markdown)) => prose(format),
        Some(format @ (Format::Claude | Format::Chatgpt | Format::Gemini)) => {
            as_export(&JsonShape::of(content, start)?, format)
        }
        Some(format @ (Format::Drawers | Format::ClaudeCode | Format::Codex)) => {
            if text.trim_ascii_start().first() == Some(&b'[') {
                let found = "one list, not one object per line".to_owned();
                return Err(TranscriptError::Other { format, found });
            }
            Ok(Recognized { format, form: Form::Lines, start })
        }
        None => match JsonShape::of(content, start)?.recognized(text, start) {
            Some(recognized) => Ok(recognized),
            None => prose(prose_format(text, options)?),
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

fn reject_binary(head: &[u8]) -> Result<(), TranscriptError> {
    let found = match head {
        [b'P', b'K', 3, 4, ..] => return Err(TranscriptError::Packed { kind: "a zip archive" }),
        [0x1F, 0x8B, ..] => return Err(TranscriptError::Packed { kind: "compressed with gzip" }),
        [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..] => "UTF-16 text",
        [b'%', b'P', b'D', b'F', ..] => "a PDF",
        _ if head.starts_with(b"SQLite format 3\0") => "a SQLite database",
        _ => return Ok(()),
    };
    Err(TranscriptError::Binary { found })
}

/// The top-level structure of a JSON file.
enum JsonShape {
    NotJson,
    /// A list: the offset after its bracket, and the kind of its items.
    List(u64, ObjectKind),
    /// An object: its offset and kind.
    One(u64, ObjectKind),
}

/// What an object seems to be, judging by its keys.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ObjectKind {
    Conversation(Format),
    /// An object with a list of conversations at this offset.
    Wrapper(u64),
    Drawer,
    /// An event of a Claude Code session.
    Event,
    /// An item of a Codex rollout.
    RolloutItem,
    /// Anything else, with its first keys.
    Other(Vec<String>),
}

impl JsonShape {
    fn of(content: &impl Content, start: u64) -> Result<Self, TranscriptError> {
        let mut source = BufferedFeed::new(content, start, 64 << 10);
        match Self::read(&mut source) {
            Ok(shape) => Ok(shape),
            Err(fault) => of_file(fault).map(|_| JsonShape::NotJson),
        }
    }

    fn read(source: &mut impl Feed) -> Result<Self, Fault> {
        match peek(source)? {
            Some(b'[') => Self::list(source),
            Some(b'{') => {
                let start = source.offset();
                match ObjectKind::of(source)? {
                    ObjectKind::Wrapper(_) => Self::list(source),
                    kind => Ok(JsonShape::One(start, kind)),
                }
            }
            _ => Ok(JsonShape::NotJson),
        }
    }

    fn list(source: &mut impl Feed) -> Result<Self, Fault> {
        source.advance(1);
        let start = source.offset();
        let mut kind = ObjectKind::Other(Vec::new());
        for at in 0..MAX_EXAMINED {
            match next_member(source, at == 0, b']') {
                Ok(true) => {}
                Ok(false) => break,
                // Markdown may begin with a bracket; if the first item is valid, it is a list.
                Err(fault) if at == 0 => return Err(fault),
                Err(_) => break,
            }
            if peek(source)? != Some(b'{') {
                return Ok(if at == 0 { JsonShape::NotJson } else { JsonShape::List(start, kind) });
            }
            match ObjectKind::of(source) {
                Ok(ObjectKind::Other(keys)) if kind == ObjectKind::Other(Vec::new()) => {
                    kind = ObjectKind::Other(keys);
                }
                Ok(ObjectKind::Other(_)) => {}
                Ok(found) => return Ok(JsonShape::List(start, found)),
                Err(fault) if at == 0 => return Err(fault),
                Err(_) => break,
            }
        }
        Ok(JsonShape::List(start, kind))
    }

    /// The format, if the structure shows it.
    fn recognized(&self, head: &[u8], start: u64) -> Option<Recognized> {
        let lines = |kind: &ObjectKind| match kind {
            ObjectKind::Drawer => {
                Some(Recognized { format: Format::Drawers, form: Form::Lines, start })
            }
            ObjectKind::Event => {
                Some(Recognized { format: Format::ClaudeCode, form: Form::Lines, start })
            }
            ObjectKind::RolloutItem => {
                Some(Recognized { format: Format::Codex, form: Form::Lines, start })
            }
            _ => None,
        };
        match self {
            JsonShape::List(start, ObjectKind::Conversation(format)) => {
                Some(Recognized { format: *format, form: Form::List, start: *start })
            }
            JsonShape::One(start, ObjectKind::Conversation(format)) => {
                Some(Recognized { format: *format, form: Form::One, start: *start })
            }
            JsonShape::One(
                _,
                kind @ (ObjectKind::Drawer | ObjectKind::Event | ObjectKind::RolloutItem),
            ) => lines(kind),
            // The first line may be invalid.
            _ if head.trim_ascii_start().first() == Some(&b'{') => head
                .split(|byte| *byte == b'\n')
                .filter(|line| line.trim_ascii_start().first() == Some(&b'{'))
                .take(MAX_EXAMINED)
                .filter_map(|line| ObjectKind::of(&mut BufferedFeed::new(line, 0, 4 << 10)).ok())
                .find_map(|kind| lines(&kind)),
            _ => None,
        }
    }
}

impl ObjectKind {
    /// Reads the keys of an object until they show what it is.
    fn of(source: &mut impl Feed) -> Result<Self, Fault> {
        const MAX_KEYS: usize = 6;
        const EVENT_KEYS: [&str; 7] =
            ["sessionId", "message", "leafUuid", "messageId", "summary", "parentUuid", "snapshot"];
        peek(source)?;
        source.advance(1);
        let mut keys = Vec::new();
        let (mut has_type, mut has_event_key, mut has_payload) = (false, false, false);
        let mut first = true;
        while next_member(source, first, b'}')? {
            first = false;
            let key = take_key(source)?;
            match key.as_str() {
                "chat_messages" => return Ok(ObjectKind::Conversation(Format::Claude)),
                "mapping" => return Ok(ObjectKind::Conversation(Format::Chatgpt)),
                "conversations" if peek(source)? == Some(b'[') => {
                    return Ok(ObjectKind::Wrapper(source.offset()));
                }
                "text" => return Ok(ObjectKind::Drawer),
                "projectHash" => return Ok(ObjectKind::Conversation(Format::Gemini)),
                "type" => has_type = true,
                "payload" => has_payload = true,
                other => has_event_key |= EVENT_KEYS.contains(&other),
            }
            skip_value(source)?;
            if keys.len() < MAX_KEYS {
                keys.push(key);
            }
        }
        Ok(match (has_type, has_payload, has_event_key) {
            (true, true, _) => ObjectKind::RolloutItem,
            (true, false, true) => ObjectKind::Event,
            _ => ObjectKind::Other(keys),
        })
    }
}

/// Checks that a file can be an export in this format.
fn as_export(shape: &JsonShape, format: Format) -> Result<Recognized, TranscriptError> {
    let other = |found: &str| TranscriptError::Other { format, found: found.to_owned() };
    match shape {
        JsonShape::List(_, ObjectKind::Conversation(found))
        | JsonShape::One(_, ObjectKind::Conversation(found))
            if *found != format =>
        {
            Err(other(&format!("conversations in the {found} format")))
        }
        JsonShape::List(start, _) => Ok(Recognized { format, form: Form::List, start: *start }),
        JsonShape::One(start, ObjectKind::Conversation(_)) => {
            Ok(Recognized { format, form: Form::One, start: *start })
        }
        JsonShape::One(_, ObjectKind::Drawer) => Err(other("drawers")),
        JsonShape::One(_, ObjectKind::Event) => Err(other("a Claude Code session")),
        JsonShape::One(_, ObjectKind::RolloutItem) => Err(other("a rollout of Codex")),
        JsonShape::One(..) => Err(other("an object without conversations")),
        JsonShape::NotJson => Err(other("no valid JSON")),
    }
}

/// The format of a file that is not a known kind of JSON, if it is text.
fn prose_format(text: &[u8], options: &TranscriptOptions) -> Result<Format, TranscriptError> {
    let extension = options.extension();
    let begins = |words: &str| {
        let text = text.trim_ascii_start();
        text.get(..words.len()).is_some_and(|it| it.eq_ignore_ascii_case(words.as_bytes()))
    };
    if matches!(extension.as_str(), "html" | "htm") || begins("<!doctype html") || begins("<html") {
        return Err(TranscriptError::Unknown {
            found: "a web page".to_owned(),
            hint: "ChatGPT's chat.html comes with a conversations.json that has the same in it: import that",
        });
    }
    match extension.as_str() {
        "md" | "markdown" | "mdown" => Ok(Format::Markdown),
        "json" | "jsonl" | "ndjson" => Err(unknown_json(text)),
        _ => Ok(Format::Text),
    }
}

fn unknown_json(text: &[u8]) -> TranscriptError {
    let mut source = BufferedFeed::new(text, 0, 4 << 10);
    let (found, hint) = match JsonShape::read(&mut source) {
        Ok(JsonShape::List(_, ObjectKind::Drawer)) => (
            "one list of drawers".to_owned(),
            "write one object a line: jq -c '.[]' FILE > FILE.jsonl",
        ),
        Ok(
            JsonShape::List(_, ObjectKind::Other(keys))
            | JsonShape::One(_, ObjectKind::Other(keys)),
        ) if !keys.is_empty() => (format!("objects with the keys {}", keys.join(", ")), FORMATS),
        Ok(JsonShape::List(..)) => ("an empty list".to_owned(), FORMATS),
        _ => ("no valid JSON".to_owned(), FORMATS),
    };
    TranscriptError::Unknown { found, hint }
}

const FORMATS: &str = "an export has conversations with chat_messages (Claude) or a mapping \
    (ChatGPT), a session of Claude Code events with a type, a rollout of Codex a payload in each line, a \
    session of Gemini CLI a projectHash, a file of drawers a text in each line";
