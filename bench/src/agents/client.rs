//! The least that a client of an MCP server has to do: lines of JSON, one after the other.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

/// A server, and the pipes to it.
pub(super) struct Client {
    child: Child,
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    calls: u64,
}

impl Client {
    /// Starts a server and says hello.
    pub(super) fn start(command: &mut Command) -> Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().with_context(|| format!("{command:?}"))?;
        let (orders, answers) = (child.stdin.take(), child.stdout.take());
        let answers = BufReader::new(answers.context("the server has no output")?);
        let mut client = Self { child, orders, answers, calls: 0 };
        client.ask(
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

    /// The server's process.
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Asks, and waits for the answer.
    pub(super) fn ask(&mut self, method: &str, params: &Value) -> Result<Value> {
        self.calls += 1;
        let id = self.calls;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))?;
        let mut line = String::new();
        loop {
            line.clear();
            ensure!(self.answers.read_line(&mut line)? > 0, "the server has gone away");
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

    /// Calls a tool, which must succeed.
    pub(super) fn call(&mut self, tool: &str, arguments: &Value) -> Result<Value> {
        let result = self.ask("tools/call", &json!({ "name": tool, "arguments": arguments }))?;
        ensure!(result["isError"] != true, "{tool}: {}", result["content"]);
        Ok(result)
    }

    fn send(&mut self, message: &Value) -> Result<()> {
        let orders = self.orders.as_mut().context("the server was told to end")?;
        writeln!(orders, "{message}")?;
        Ok(orders.flush()?)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // The end of its input tells it to end.
        self.orders = None;
        let _ = self.child.wait();
    }
}
