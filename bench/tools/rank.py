#!/usr/bin/env python3
"""Do the descriptions of tools lead to the right one? Ranks them against requests in users' words (requests.jsonl).

BM25 and the built-in model stand in for a language model: a tool that is not among the best by either is hard to pick.
Both are the program's own: the descriptions become records of a collection, and the requests queries.

    python3 bench/tools/rank.py target/release/isolith [--misses]
"""
import argparse, json, pathlib, subprocess, tempfile


class Agent:
    """An MCP client of the program."""

    def __init__(self, program, folder, selection):
        command = [program, "mcp", "--tools", selection, "--store", str(pathlib.Path(folder) / "store")]
        self.process = subprocess.Popen(command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.asked = 0
        self.ask("initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo={"name": "rank", "version": "1"})
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def send(self, message):
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def ask(self, method, **params):
        self.asked += 1
        self.send({"jsonrpc": "2.0", "id": self.asked, "method": method, "params": params})
        for line in self.process.stdout:
            answer = json.loads(line)
            if answer.get("id") == self.asked:
                return answer["result"]
        raise SystemExit("the server ended")

    def call(self, tool, **arguments):
        result = self.ask("tools/call", name=tool, arguments=arguments)
        if result.get("isError"):
            return None
        return result["structuredContent"]

    def leave(self):
        self.process.stdin.close()
        self.process.wait()


def described(tool):
    """What a tool does and when to use it; what it is not for names other tools."""
    said = tool["description"].split(" Example: ")[0].split(" Not ")[0]
    own = ". ".join(it for it in said.split(". ") if not it.startswith("For "))
    arguments = " ".join(f"{key} {it.get('description', '')}" for key, it in tool["inputSchema"].get("properties", {}).items())
    return f"{tool['name'].replace('_', ' ')}. {own} {arguments}"


def rank(program, selection, requests, misses):
    with tempfile.TemporaryDirectory() as folder:
        agent = Agent(program, folder, selection)
        tools = agent.ask("tools/list")["tools"]
        names = [tool["name"] for tool in tools]
        records = [{"id": tool["name"], "document": described(tool)} for tool in tools]
        # Not offered for calls by some selections, but by these two.
        agent.call("collection_add", collection="tools", records=records)
        answered = [it for it in requests if it["tool"] in names]
        size = len(json.dumps(tools, separators=(",", ":"), ensure_ascii=False).encode())
        print(f"{selection}: {len(tools)} tools, {size} bytes; {len(answered)} of {len(requests)} requests are answered by one of them")
        for by in ("words", "meaning", "both"):
            places = []
            for request in answered:
                text = request["request"]
                how = {"words": {"keywords": text}, "meaning": {"text": text}, "both": {"keywords": text, "text": text}}[by]
                found = agent.call("collection_query", collection="tools", limit=50, **how)
                order = [hit["id"] for hit in found["hits"]] if found else []
                place = order.index(request["tool"]) if request["tool"] in order else len(names)
                places.append(place)
                if misses and by == "both" and place > 2:
                    print(f"  {request['tool']} (place {place + 1}, first {order[:1]}): {text}")
            share = lambda most: sum(place < most for place in places) / len(places)
            mrr = sum(1 / (place + 1) for place in places) / len(places)
            print(f"  by {by}: first {share(1):.3f}, in the first three {share(3):.3f}, MRR {mrr:.3f}")
        agent.leave()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--misses", action="store_true")
    options = parser.parse_args()
    lines = (pathlib.Path(__file__).parent / "requests.jsonl").read_text().splitlines()
    requests = [json.loads(line) for line in lines]
    program = str(pathlib.Path(options.program).resolve())
    for selection in ("all", "default"):
        rank(program, selection, requests, options.misses)


if __name__ == "__main__":
    main()
