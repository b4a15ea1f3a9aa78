//! The protocol as lines of JSON, one message each. Every line that may be a request is answered,
//! even if it is invalid or too long: the client may be waiting.

use std::io;
use std::sync::Arc;

use rmcp::model::{ErrorData, RequestId};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::{RoleServer, model::ErrorCode};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

/// Maximum length of a line. The rest of a longer one is skipped.
const MAX_LINE_BYTES: usize = 16 << 20;

/// A transport that reads and writes messages as lines.
pub(crate) struct LineTransport<R, W> {
    read: BufReader<R>,
    /// The part of the current line read so far. Kept if a call of `receive` is dropped.
    line: Vec<u8>,
    /// Whether to skip the rest of the current line.
    skipping: bool,
    write: Arc<Mutex<Option<W>>>,
    /// The error being sent. At most one at a time, so that a client that sends garbage without
    /// reading the answers blocks itself.
    error_write: Option<JoinHandle<io::Result<()>>>,
}

/// Result of reading a line.
#[derive(Debug, PartialEq, Eq)]
enum LineRead {
    Line,
    TooLong,
    End,
}

enum ParsedLine {
    Message(Box<RxJsonRpcMessage<RoleServer>>),
    /// Blank, or an invalid notification or answer: gets no answer.
    Ignored,
    Invalid(ErrorData, Option<RequestId>),
}

impl<R, W> LineTransport<R, W>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    pub(crate) fn new(read: R, write: W) -> Self {
        Self {
            read: BufReader::new(read),
            line: Vec::new(),
            skipping: false,
            write: Arc::new(Mutex::new(Some(write))),
            error_write: None,
        }
    }

    /// Reads the rest of a line. Cancel safe: nothing that was read is lost.
    async fn read_line(&mut self) -> io::Result<LineRead> {
        loop {
            let buffer = self.read.fill_buf().await?;
            if buffer.is_empty() {
                // The last line may lack a newline.
                let skipped = std::mem::take(&mut self.skipping);
                return Ok(if self.line.is_empty() || skipped {
                    LineRead::End
                } else {
                    LineRead::Line
                });
            }
            let end = buffer.iter().position(|byte| *byte == b'\n');
            let length = end.map_or(buffer.len(), |end| end + 1);
            let fits = self.line.len() + length <= MAX_LINE_BYTES + 1;
            if !self.skipping && fits {
                self.line.extend_from_slice(&buffer[..length]);
            }
            self.read.consume(length);
            match (end, self.skipping, fits) {
                (Some(_), false, true) => return Ok(LineRead::Line),
                (Some(_), true, _) => self.skipping = false,
                (_, false, false) => {
                    self.skipping = end.is_none();
                    return Ok(LineRead::TooLong);
                }
                (None, ..) => {}
            }
        }
    }

    /// Parses and clears the current line, which must be complete.
    fn take_line(&mut self, read: &LineRead) -> ParsedLine {
        let parsed = match read {
            LineRead::TooLong => {
                let message = format!("the line is longer than {MAX_LINE_BYTES} bytes");
                ParsedLine::Invalid(ErrorData::invalid_request(message, None), find_id(&self.line))
            }
            _ => parse_line(self.line.trim_ascii()),
        };
        self.line.clear();
        // Long lines are rare: release the memory.
        self.line.shrink_to(1 << 20);
        parsed
    }
}

impl<R, W> Transport<RoleServer> for LineTransport<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let write = Arc::clone(&self.write);
        async move {
            let line = serde_json::to_vec(&message)?;
            write_line(&write, line).await
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            if let Some(error_write) = &mut self.error_write {
                let written = error_write.await;
                self.error_write = None;
                if !matches!(written, Ok(Ok(()))) {
                    return None;
                }
            }
            let read = match self.read_line().await {
                Ok(LineRead::End) => return None,
                Ok(read) => read,
                Err(error) => {
                    tracing::error!(%error, "cannot read from the client");
                    return None;
                }
            };
            match self.take_line(&read) {
                ParsedLine::Message(message) => return Some(*message),
                ParsedLine::Ignored => {}
                ParsedLine::Invalid(error, id) => {
                    tracing::debug!(code = error.code.0, "invalid line");
                    // rmcp would omit the id; JSON-RPC requires null.
                    let answer = json!({ "jsonrpc": "2.0", "id": id, "error": error });
                    let (write, line) = (Arc::clone(&self.write), answer.to_string());
                    let answer = async move { write_line(&write, line.into_bytes()).await };
                    self.error_write = Some(tokio::spawn(answer));
                }
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.write.lock().await.take();
        Ok(())
    }
}

async fn write_line<W: AsyncWrite + Unpin>(
    write: &Mutex<Option<W>>,
    mut line: Vec<u8>,
) -> io::Result<()> {
    line.push(b'\n');
    let mut write = write.lock().await;
    let closed = || io::Error::new(io::ErrorKind::NotConnected, "the transport is closed");
    let write = write.as_mut().ok_or_else(closed)?;
    write.write_all(&line).await?;
    write.flush().await
}

fn parse_line(line: &[u8]) -> ParsedLine {
    let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
    if line.is_empty() {
        return ParsedLine::Ignored;
    }
    let error = match serde_json::from_slice(line) {
        Ok(message) => return ParsedLine::Message(Box::new(message)),
        Err(error) => error,
    };
    let invalid = |code, what| {
        let message = format!("{what}: {error}");
        ParsedLine::Invalid(ErrorData::new(code, message, None), find_id(line))
    };
    let Ok(value) = serde_json::from_slice::<Value>(line) else {
        return invalid(ErrorCode::PARSE_ERROR, "the line is not valid JSON");
    };
    let has = |key: &str| value.get(key).is_some();
    let notification = has("method") && !has("id");
    // Answering an answer could loop forever.
    let answer = !has("method") && (has("result") || has("error"));
    match notification || answer {
        true => ParsedLine::Ignored,
        false => invalid(ErrorCode::INVALID_REQUEST, "the line is not a request"),
    }
}

/// Searches a malformed request for its id.
fn find_id(line: &[u8]) -> Option<RequestId> {
    let (mut depth, mut at, mut is_id) = (0_u32, 0, false);
    while let Some(byte) = line.get(at) {
        let mut next = at + 1;
        match byte {
            b'"' => {
                let end = end_of_string(line, at)?;
                next = end;
                let colon = line[end..].iter().position(|byte| !byte.is_ascii_whitespace());
                let is_key = colon.is_some_and(|space| line[end + space] == b':');
                if depth == 1 && is_key {
                    is_id = &line[at..end] == b"\"id\"";
                } else if depth == 1 && is_id {
                    return serde_json::from_slice(&line[at..end]).ok();
                }
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.checked_sub(1)?,
            b',' if depth == 1 => is_id = false,
            b'-' | b'0'..=b'9' if depth == 1 && is_id => {
                let number = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
                let length = line[at..].iter().take_while(|byte| number(byte)).count();
                return serde_json::from_slice(&line[at..at + length]).ok();
            }
            _ => {}
        }
        at = next;
    }
    None
}

/// The position after the closing quote of a string.
fn end_of_string(line: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    loop {
        match line.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The code and id of the error answer, if there is one.
    type ExpectedError = Option<(i32, Value)>;

    fn error_of(line: &[u8]) -> ExpectedError {
        match parse_line(line) {
            ParsedLine::Invalid(error, id) => Some((error.code.0, json!(id))),
            ParsedLine::Message(_) | ParsedLine::Ignored => None,
        }
    }

    #[test]
    fn malformed_lines_are_answered() {
        let deep = format!(
            r#"{{"id":7,"method":"x","params":{}1{}}}"#,
            "[".repeat(1000),
            "]".repeat(1000)
        );
        let table: [(&[u8], ExpectedError); 14] = [
            (b"", None),
            (b"hello", Some((-32700, Value::Null))),
            (
                br#"{"jsonrpc":"2.0","id":5,"method":"ping","params":{"n":1e400}}"#,
                Some((-32700, json!(5))),
            ),
            (br#"{"id":"a","method":"x","params":"\ud800"}"#, Some((-32700, json!("a")))),
            (b"{\"params\":\"\xff\",\"id\":6}", Some((-32700, json!(6)))),
            (deep.as_bytes(), Some((-32700, json!(7)))),
            (br#"{"params":{"id":1},"x":["#, Some((-32700, Value::Null))),
            (br#"{"id":1e400}"#, Some((-32700, Value::Null))),
            (b"[]", Some((-32600, Value::Null))),
            (b"17", Some((-32600, Value::Null))),
            (br#"{"id":8}"#, Some((-32600, json!(8)))),
            (br#"{"method":5}"#, None),
            (br#"{"id":[1],"error":5}"#, None),
            (br#"{"jsonrpc":"2.0","id":9,"method":"ping"}"#, None),
        ];
        for (line, expected) in table {
            assert_eq!(error_of(line), expected, "{:.100}", String::from_utf8_lossy(line));
        }
    }

    #[tokio::test]
    async fn overlong_lines_are_skipped_and_answered() {
        let long = MAX_LINE_BYTES + (1 << 20);
        let mut input = br#"{"jsonrpc":"2.0","id":1,"method":""#.to_vec();
        input.resize(long, b'x');
        input.extend_from_slice(b"\"}\n{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}");
        let mut output = Vec::new();
        let mut lines = LineTransport::new(input.as_slice(), tokio::io::sink());
        let read = lines.read_line().await.unwrap();
        assert_eq!(read, LineRead::TooLong);
        assert!(lines.line.len() <= MAX_LINE_BYTES);
        let ParsedLine::Invalid(error, id) = lines.take_line(&read) else { panic!("not refused") };
        assert_eq!((error.code.0, json!(id)), (-32600, json!(1)));
        output.extend(lines.receive().await);
        assert_eq!(output.len(), 1, "the next line is a message");
        assert!(lines.receive().await.is_none());
        assert!(lines.line.capacity() <= 1 << 20);
    }
}
