//! An agent's side of `isolith mcp`: the real program, and lines of JSON written by hand.
#![allow(dead_code, clippy::unwrap_used, clippy::panic, missing_docs, unreachable_pub)]

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::test_env::children;

/// A server, and the client that talks to it.
pub struct Agent {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    asked: u64,
    /// Messages received between answers.
    pub notifications: Vec<Value>,
}

impl Agent {
    /// Starts a server without initializing the session.
    pub fn start(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, input, output, asked: 0, notifications: Vec::new() }
    }

    /// Starts a server and initializes the session.
    pub fn greeted(command: Command) -> Self {
        let mut agent = Self::start(command);
        agent.greet("2025-11-25");
        agent
    }

    pub fn greet(&mut self, version: &str) -> Value {
        let hello = json!({
            "protocolVersion": version,
            "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" },
        });
        let welcome = self.ask("initialize", hello);
        self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        welcome["result"].clone()
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn send(&mut self, message: &Value) {
        let input = self.input.as_mut().unwrap();
        writeln!(input, "{message}").unwrap();
        input.flush().unwrap();
    }

    /// Writes bytes that need not be a message, and ends the line.
    pub fn send_bytes(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().unwrap();
        input.write_all(bytes).unwrap();
        input.write_all(b"\n").unwrap();
        input.flush().unwrap();
    }

    /// Sends a request without waiting; returns its id.
    pub fn begin(&mut self, method: &str, params: Value) -> u64 {
        self.asked += 1;
        let id = self.asked;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    pub fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params);
        self.answer(id)
    }

    /// Waits for the answer to a request and collects other messages.
    pub fn answer(&mut self, id: u64) -> Value {
        loop {
            let message = self.next().expect("an answer");
            if message["id"] == id {
                return message;
            }
            self.notifications.push(message);
        }
    }

    /// The next message; none at the end of the output.
    pub fn next(&mut self) -> Option<Value> {
        let mut line = String::new();
        if self.output.read_line(&mut line).unwrap() == 0 {
            return None;
        }
        let message: Value = serde_json::from_str(&line)
            .unwrap_or_else(|error| panic!("no protocol on standard output: {error}: {line:?}"));
        assert_eq!(message["jsonrpc"], "2.0", "{message}");
        Some(message)
    }

    /// Calls a tool that must succeed.
    pub fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self.ask("tools/call", json!({ "name": tool, "arguments": arguments }));
        let result = &answer["result"];
        assert!(result["content"][0]["text"].is_string(), "{answer}");
        assert_ne!(result["isError"], true, "{tool}: {answer}");
        result["structuredContent"].clone()
    }

    /// Calls a tool that must fail, and returns the tool's error.
    pub fn refused(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self.ask("tools/call", json!({ "name": tool, "arguments": arguments }));
        let result = &answer["result"];
        assert_eq!(result["isError"], true, "{tool}: {answer}");
        let error = result["structuredContent"]["error"].clone();
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(text.contains(error["message"].as_str().unwrap()), "{answer}");
        error
    }

    pub fn workers(&self) -> Vec<u32> {
        children(self.pid())
    }

    /// Closes the input and returns the exit status.
    pub fn leave(mut self) -> Option<i32> {
        self.input = None;
        while self.next().is_some() {}
        self.child.wait().unwrap().code()
    }

    /// Waits for the server to exit, without closing the input.
    pub fn ends(mut self) -> Option<i32> {
        while self.next().is_some() {}
        self.child.wait().unwrap().code()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
