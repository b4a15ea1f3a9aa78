//! The JSON that clients write to a hook's standard input.

use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use isolith_types::{Code, Failure};
use serde_json::Value;

/// Maximum size of the input.
const MAX_BYTES: u64 = 16 << 20;

/// What a client says about an event.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct HookInput {
    /// The transcript of the session, if the client keeps one.
    pub(super) transcript: Option<PathBuf>,
    /// The folder that the session is about.
    pub(super) folder: PathBuf,
    /// What the user has typed.
    pub(super) prompt: Option<String>,
}

impl HookInput {
    /// Reads one JSON object. Does not wait for the end of the input, because some clients keep it
    /// open.
    ///
    /// # Errors
    /// `bad_input` if it is not an object, `timeout` if it does not arrive in time.
    pub(super) fn read(
        source: impl Read + Send + 'static,
        time: Duration,
    ) -> Result<Self, Failure> {
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || {
            let source = io::BufReader::new(source.take(MAX_BYTES));
            let mut values = serde_json::Deserializer::from_reader(source).into_iter::<Value>();
            // Nobody may be waiting any more.
            let _ = sender.send(values.next());
        });
        let late = |_| Failure::new(Code::Timeout, "the client has sent no input");
        let value = match receiver.recv_timeout(time).map_err(late)? {
            Some(Ok(value @ Value::Object(_))) => value,
            Some(Ok(_)) => return Err(Failure::new(Code::BadInput, "the input is not an object")),
            Some(Err(error)) => {
                return Err(Failure::new(Code::BadInput, format!("invalid input: {error}")));
            }
            None => return Err(Failure::new(Code::BadInput, "the input is empty")),
        };
        Ok(Self::of(&value))
    }

    fn of(value: &Value) -> Self {
        let text = |key: &str| value[key].as_str().filter(|text| !text.is_empty());
        let root = value["workspace_roots"][0].as_str().filter(|root| !root.is_empty());
        let folder = text("cwd").or(root).map(PathBuf::from);
        let here = || std::env::current_dir().unwrap_or_default();
        Self {
            transcript: text("transcript_path").map(PathBuf::from).filter(|it| it.is_absolute()),
            folder: folder.filter(|folder| folder.is_absolute()).unwrap_or_else(here),
            prompt: text("prompt").map(str::to_owned),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_of_all_clients_are_understood() {
        let claude = json!({
            "session_id": "abc", "transcript_path": "/t/abc.jsonl", "cwd": "/p",
            "hook_event_name": "UserPromptSubmit", "prompt": "why?",
        });
        let expected = HookInput {
            transcript: Some("/t/abc.jsonl".into()),
            folder: "/p".into(),
            prompt: Some("why?".to_owned()),
        };
        assert_eq!(HookInput::of(&claude), expected);
        let cursor = json!({
            "conversation_id": "c", "workspace_roots": ["/w", "/x"], "transcript_path": null,
        });
        let found = HookInput::of(&cursor);
        assert_eq!((found.transcript, found.folder), (None, PathBuf::from("/w")));
        let relative = json!({ "transcript_path": "../../etc/passwd", "cwd": 7 });
        assert_eq!(HookInput::of(&relative).transcript, None);
    }

    #[test]
    fn the_end_of_the_input_is_not_awaited() {
        let (reader, mut writer) = io::pipe().unwrap();
        io::Write::write_all(&mut writer, br#"{"cwd": "/p"}"#).unwrap();
        let found = HookInput::read(reader, Duration::from_secs(30)).unwrap();
        assert_eq!(found.folder, PathBuf::from("/p"));
        let (closed, writer) = io::pipe().unwrap();
        drop(writer);
        let silent = HookInput::read(closed, Duration::from_secs(30));
        assert_eq!(silent.unwrap_err().code, Code::BadInput);
        let (open, _kept) = io::pipe().unwrap();
        let late = HookInput::read(open, Duration::from_millis(10)).unwrap_err();
        assert_eq!(late.code, Code::Timeout);
        for bad in ["[]", "{", "\"x\"", "{\"cwd\": \u{1}"] {
            let refused = HookInput::read(bad.as_bytes(), Duration::from_secs(30));
            assert_eq!(refused.unwrap_err().code, Code::BadInput, "{bad}");
        }
    }
}
