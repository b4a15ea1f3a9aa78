//! Runs the user's command for an alert: without a shell, with a deadline and bounded output.

use std::process::Stdio;
use std::str::FromStr;
use std::time::Duration;

use isolith_types::{Code, Failure};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use super::alert::Alert;

/// How long a command may run.
const DEADLINE: Duration = Duration::from_secs(30);

/// How long to wait for the output after the command has ended: its children may keep it open.
const OUTPUT_PATIENCE: Duration = Duration::from_millis(200);

/// How much of the output is kept for the log.
const MAX_OUTPUT_BYTES: usize = 1_000;

/// A program and its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlertCommand(Vec<String>);

impl FromStr for AlertCommand {
    type Err = Failure;

    /// Splits a line at spaces; quotes keep words together. Nothing else has a meaning: no shell
    /// reads the line.
    fn from_str(line: &str) -> Result<Self, Failure> {
        let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
        for character in line.chars() {
            match quote {
                Some(end) if character == end => quote = None,
                None if character == '"' || character == '\'' => {
                    quote = Some(character);
                    word.get_or_insert_default();
                }
                None if character.is_whitespace() => words.extend(word.take()),
                _ => word.get_or_insert_default().push(character),
            }
        }
        words.extend(word);
        if quote.is_some() || words.first().is_none_or(String::is_empty) {
            let problem = if quote.is_some() { "a quote is not closed" } else { "it is empty" };
            let message = format!("the command for alerts cannot be used: {problem}");
            return Err(Failure::new(Code::Usage, message).with_hint(
                "pass a program and its arguments, separated by spaces; no shell reads them",
            ));
        }
        Ok(Self(words))
    }
}

impl AlertCommand {
    /// Runs the command to its end. The alert is in its standard input and in its environment.
    ///
    /// The error says why the alert may not have been delivered.
    pub(super) async fn run(&self, alert: &Alert) -> Result<(), String> {
        let mut command = Command::new(&self.0[0]);
        command
            .args(&self.0[1..])
            .envs(alert.variables())
            .env_remove("ISOLITH_TOKEN")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        let mut child = command.spawn().map_err(|error| format!("{}: {error}", self.0[0]))?;
        let group = Group::of(&child);
        let (input, output) = (feed(&mut child, alert), listen(&mut child));
        let ended = timeout(DEADLINE, child.wait()).await;
        // Nothing that it started may outlive it.
        drop(group);
        let reading = output.abort_handle();
        let output = timeout(OUTPUT_PATIENCE, output).await;
        reading.abort();
        input.abort();
        let output = match output {
            Ok(Ok(output)) => output,
            Ok(Err(_)) | Err(_) => String::new(),
        };
        match ended {
            Err(_) => Err(format!("killed after {} s", DEADLINE.as_secs())),
            Ok(Err(error)) => Err(error.to_string()),
            Ok(Ok(status)) if status.success() => Ok(()),
            Ok(Ok(status)) if output.is_empty() => Err(status.to_string()),
            Ok(Ok(status)) => Err(format!("{status}: {output}")),
        }
    }
}

/// The processes of a command; killed when dropped.
struct Group(Option<Pid>);

impl Group {
    fn of(child: &Child) -> Self {
        Self(child.id().and_then(|id| Pid::from_raw(id.cast_signed())))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            // They may all have ended.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

/// Writes the alert to the command, which need not read it.
fn feed(child: &mut Child, alert: &Alert) -> tokio::task::JoinHandle<()> {
    let (stdin, text) = (child.stdin.take(), alert.json());
    tokio::spawn(async move {
        if let Some(mut stdin) = stdin {
            let _ = stdin.write_all(text.as_bytes()).await;
        }
    })
}

/// Reads all output, and returns its beginning: errors first.
fn listen(child: &mut Child) -> tokio::task::JoinHandle<String> {
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    tokio::spawn(async move {
        let (stdout, stderr) = tokio::join!(beginning(stdout), beginning(stderr));
        let mut text = stderr;
        text.extend(stdout);
        text.truncate(MAX_OUTPUT_BYTES);
        let text = String::from_utf8_lossy(&text);
        text.trim().replace(|character: char| character.is_control(), " ")
    })
}

async fn beginning(output: Option<impl AsyncRead + Unpin>) -> Vec<u8> {
    let (mut kept, mut block) = (Vec::new(), [0; 4096]);
    let Some(mut output) = output else { return kept };
    while let Ok(length @ 1..) = output.read(&mut block).await {
        let room = MAX_OUTPUT_BYTES - kept.len();
        kept.extend_from_slice(&block[..length.min(room)]);
    }
    kept
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::super::alert::Cause;
    use super::*;

    fn alert() -> Alert {
        Alert::new(Cause::BreakerOpen, "user", "/s".into(), Some("parse".to_owned()), "it is open")
    }

    async fn run(script: &str) -> Result<(), String> {
        AlertCommand(vec!["sh".to_owned(), "-c".to_owned(), script.to_owned()]).run(&alert()).await
    }

    #[test]
    fn a_line_is_split_into_words() {
        for (line, words) in [
            ("notify", &["notify"][..]),
            ("  a  b\tc ", &["a", "b", "c"]),
            ("curl -d @- 'http://x/ y' \"\"", &["curl", "-d", "@-", "http://x/ y", ""]),
            ("a b'c d'e $HOME;*", &["a", "bc de", "$HOME;*"]),
        ] {
            let command: AlertCommand = line.parse().unwrap();
            assert_eq!(command.0, words, "{line}");
        }
        for line in ["", "  ", "a 'b", "'' a"] {
            assert_eq!(line.parse::<AlertCommand>().unwrap_err().code, Code::Usage, "{line}");
        }
    }

    #[tokio::test]
    async fn the_alert_is_in_the_input_and_the_environment() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("seen");
        let script = format!(
            "cat > {0}; printf '%s %s' \"$ISOLITH_ALERT_CAUSE\" \"$ISOLITH_ALERT_ROLE\" >> {0}",
            file.display()
        );
        run(&script).await.unwrap();
        let seen = std::fs::read_to_string(file).unwrap();
        let (json, variables) = seen.split_once('\n').unwrap();
        let json: serde_json::Value = serde_json::from_str(json).unwrap();
        assert_eq!((&json["message"], &json["role"]), (&"it is open".into(), &"parse".into()));
        assert_eq!(variables, "breaker_open parse");
    }

    #[tokio::test]
    async fn failures_are_reported_with_the_beginning_of_the_output() {
        assert_eq!(run("echo no >&2; exit 3").await.unwrap_err(), "exit status: 3: no");
        let missing = AlertCommand(vec!["/does/not/exist".to_owned()]).run(&alert()).await;
        assert!(missing.unwrap_err().starts_with("/does/not/exist: "));
        // More output than a pipe holds, and input that is not read.
        let long = run("head -c 1000000 /dev/zero | tr '\\0' x; exit 1").await.unwrap_err();
        assert!(long.len() < MAX_OUTPUT_BYTES + 50, "{}", long.len());
    }

    #[tokio::test]
    async fn what_the_command_leaves_running_is_killed_and_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pid");
        let began = Instant::now();
        run(&format!("sleep 600 & echo $! > {}", file.display())).await.unwrap();
        assert!(began.elapsed() < DEADLINE);
        let pid: i32 = std::fs::read_to_string(file).unwrap().trim().parse().unwrap();
        let state = || std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let gone = || state().is_empty() || state().contains(") Z ");
        while !gone() {
            assert!(began.elapsed() < DEADLINE);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}
