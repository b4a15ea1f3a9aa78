#!/usr/bin/env python3
"""Start the MCP server of mcp.json and call a tool: mcp_client.py TOOL [ARGUMENTS-AS-JSON]

Without a tool, lists all of them.
"""
import json
import pathlib
import subprocess
import sys


class Client:
    """Speaks JSON-RPC, one message in each line, with a server on standard input and output."""

    def __init__(self, command, args):
        pipe = subprocess.PIPE
        self.server = subprocess.Popen([command, *args], stdin=pipe, stdout=pipe, text=True)
        self.calls = 0
        self.call("initialize", {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "example", "version": "1"},
        })
        self.send({"method": "notifications/initialized"})

    def send(self, message):
        self.server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.server.stdin.flush()

    def call(self, method, params):
        self.calls += 1
        self.send({"id": self.calls, "method": method, "params": params})
        for line in self.server.stdout:
            message = json.loads(line)
            # Others are notifications.
            if message.get("id") == self.calls:
                if "error" in message:
                    sys.exit(message["error"]["message"])
                return message["result"]
        sys.exit("the server has ended")

    def close(self):
        self.server.stdin.close()
        self.server.wait()


config = json.loads(pathlib.Path(__file__).with_name("mcp.json").read_text())
client = Client(**config["mcpServers"]["isolith"])
if len(sys.argv) > 1:
    arguments = json.loads(sys.argv[2]) if len(sys.argv) > 2 else {}
    result = client.call("tools/call", {"name": sys.argv[1], "arguments": arguments})
    print("\n".join(part["text"] for part in result["content"] if part["type"] == "text"))
else:
    for tool in client.call("tools/list", {})["tools"]:
        print(f"{tool['name']}: {tool.get('title') or tool['description'].splitlines()[0]}")
client.close()
