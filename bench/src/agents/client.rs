//! A minimal MCP client over standard input and output.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

/// A running server and the pipes to it.
pub(super) struct Client {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    calls: u64,
}

impl Client {
    /// Starts and initializes a server.
    pub(super) fn start(command: &mut Command) -> Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().with_context(|| format!("{command:?}"))?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let output = BufReader::new(output.context("the server has no output")?);
        let mut client = Self { child, input, output, calls: 0 };
        client.request(
            "initialize",
            &json!({
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": { "name": "bench", "version": "1" },
            }),
        )?;
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))?;
        Ok(client)
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a request and waits for its answer.
    pub(super) fn request(&mut self, method: &str, params: &Value) -> Result<Value> {
        self.calls += 1;
        let id = self.calls;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))?;
        let mut line = String::new();
        loop {
            line.clear();
            ensure!(self.output.read_line(&mut line)? > 0, "the server closed the connection");
            let Ok(answer) = serde_json::from_str::<Value>(&line) else { continue };
            if answer["id"] != id {
                continue;
            }
            return match answer.get("result") {
                Some(result) => Ok(result.clone()),
                None => bail!("{method}: {}", answer["error"]),
            };
        }
    }

    /// Calls a tool and fails if the tool does.
    pub(super) fn call(&mut self, tool: &str, arguments: &Value) -> Result<Value> {
        let result =
            self.request("tools/call", &json!({ "name": tool, "arguments": arguments }))?;
        ensure!(result["isError"] != true, "{tool}: {}", result["content"]);
        Ok(result)
    }

    fn send(&mut self, message: &Value) -> Result<()> {
        let input = self.input.as_mut().context("the server was told to exit")?;
        writeln!(input, "{message}")?;
        Ok(input.flush()?)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // It exits at the end of its input.
        self.input = None;
        let _ = self.child.wait();
    }
}
