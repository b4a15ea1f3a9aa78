//! A program that uses `isolith serve` over HTTP, with requests written by hand.
#![allow(dead_code, clippy::unwrap_used, clippy::panic, missing_docs, unreachable_pub)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

/// A server with a generated token. It is killed when dropped.
pub struct ApiServer {
    child: Child,
    port: u16,
    token: String,
}

pub struct ApiAnswer {
    pub status: u16,
    head: String,
    pub body: String,
}

impl ApiServer {
    /// Starts `isolith serve --json --listen 127.0.0.1:0`, however the command is prepared.
    pub fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let announcement: Value = serde_json::from_str(&line).unwrap();
        let url = announcement["url"].as_str().unwrap().strip_suffix("/mcp").unwrap();
        let port = url.rsplit(':').next().unwrap().parse().unwrap();
        let token = std::fs::read_to_string(announcement["token_file"].as_str().unwrap()).unwrap();
        Self { child, port, token: token.trim().to_owned() }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until the server ends by itself, and returns its exit status.
    pub fn ends(mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }

    /// Sends a request; the answer is still to be read.
    pub fn begin(&self, request: &str, headers: &[(&str, &str)], body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
        let mut text = format!("{request} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n", self.port);
        let usual = [("Authorization", format!("Bearer {}", self.token))];
        for (name, value) in usual.iter().map(|(name, value)| (*name, value.as_str())) {
            if !headers.iter().any(|(given, _)| *given == name) {
                text += &format!("{name}: {value}\r\n");
            }
        }
        for (name, value) in headers {
            text += &format!("{name}: {value}\r\n");
        }
        text += &format!("Content-Length: {}\r\n\r\n", body.len());
        stream.write_all(text.as_bytes()).unwrap();
        // A server that refuses a body need not read all of it.
        let _ = stream.write_all(body.as_bytes());
        stream
    }

    /// Sends a request and reads the whole answer.
    pub fn send(&self, request: &str, headers: &[(&str, &str)], body: &str) -> ApiAnswer {
        let last = [("Connection", "close")];
        let mut stream = self.begin(request, &[&last, headers].concat(), body);
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        let text = String::from_utf8(bytes).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        ApiAnswer { status, head: head.to_lowercase(), body: body.to_owned() }
    }

    /// Asks with a body of JSON, unless it is null.
    pub fn ask(&self, request: &str, body: &Value) -> ApiAnswer {
        match body {
            Value::Null => self.send(request, &[], ""),
            body => {
                let kind = [("Content-Type", "application/json")];
                self.send(request, &kind, &body.to_string())
            }
        }
    }

    pub fn get(&self, path: &str) -> Value {
        self.ask(&format!("GET {path}"), &Value::Null).done()
    }

    pub fn post(&self, path: &str, body: &Value) -> Value {
        self.ask(&format!("POST {path}"), body).done()
    }

    /// Starts a job and waits for its result.
    pub fn run(&self, path: &str, body: &Value) -> Value {
        let started = self.ask(&format!("POST {path}"), body);
        assert_eq!(started.status, 202, "{}", started.body);
        let place = started.header("location").unwrap().to_owned();
        let job = self.get(&format!("{place}?wait=60"));
        assert_eq!(job["state"], "succeeded", "{job}");
        job["result"].clone()
    }
}

impl ApiAnswer {
    /// The document of a request that must succeed.
    pub fn done(self) -> Value {
        assert_eq!(self.status, 200, "{}", self.body);
        assert_eq!(self.header("content-type"), Some("application/json"));
        serde_json::from_str(&self.body).unwrap()
    }

    /// Status and code of a request that must fail. There are always a message and a hint.
    pub fn refused(&self) -> (u16, String) {
        assert_eq!(self.header("content-type"), Some("application/json"), "{}", self.body);
        let document: Value = serde_json::from_str(&self.body).unwrap();
        let error = &document["error"];
        assert!(!error["message"].as_str().unwrap().is_empty(), "{document}");
        assert!(!error["hint"].as_str().unwrap().is_empty(), "{document}");
        (self.status, error["code"].as_str().unwrap().to_owned())
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let line = self.head.lines().find(|line| line.starts_with(&format!("{name}:")))?;
        Some(line.split_once(':').unwrap().1.trim())
    }
}

impl Drop for ApiServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
