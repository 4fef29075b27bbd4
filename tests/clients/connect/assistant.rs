//! `sparkgate mcp --allow-sql`: one query in a session, over standard input.

use std::{
    io::{BufRead, BufReader, Lines, Write},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use serde_json::{Value, json};

/// A server of the protocol, which ends with the test.
pub(super) struct Assistant {
    server: Child,
    requests: ChildStdin,
    replies: Lines<BufReader<ChildStdout>>,
    last: u64,
}

impl Assistant {
    /// Starts the server, and shakes hands.
    pub(super) fn start(mut command: Command) -> Self {
        let mut server = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (requests, replies) = (server.stdin.take().unwrap(), server.stdout.take().unwrap());
        let mut assistant = Self { server, requests, replies: BufReader::new(replies).lines(), last: 0 };
        let client = json!({"name": "test", "version": "1"});
        assistant
            .ask("initialize", &json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}));
        assistant.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        assistant
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.requests, "{message}").unwrap();
    }

    /// Makes a request, and returns its reply.
    pub(super) fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.last += 1;
        let id = self.last;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let reply: Value = serde_json::from_str(&self.replies.next().unwrap().unwrap()).unwrap();
            if reply["id"] == id {
                return reply;
            }
        }
    }

    /// Runs a query; returns its table, or the error.
    pub(super) fn query(&mut self, arguments: &Value) -> Result<String, String> {
        let reply = self.ask("tools/call", &json!({"name": "run_query", "arguments": arguments}));
        let result = &reply["result"];
        match result["isError"] == true {
            true => Err(result["structuredContent"]["error"]["detail"].as_str().unwrap().to_owned()),
            false => Ok(result["content"][1]["text"].as_str().unwrap_or_else(|| panic!("{reply:#}")).to_owned()),
        }
    }
}

impl Drop for Assistant {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}
