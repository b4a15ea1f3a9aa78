#!/usr/bin/env python3
"""The API against its description (/v1/openapi.json): one valid request for each operation, whose answer must match its
schema, then requests made from the description by Schemathesis, valid and invalid ones. No answer may be a server error,
and each must be what the description says."""
import json, pathlib, re, subprocess, sys, time, urllib.request

import jsonschema

from place import Place, token_of

# A request that is valid by its types can still be refused: a pattern that is no regular expression, a file that does
# not exist. So acceptance of what is valid is not among the checks; the requests below are all accepted.
CHECKS = (
    "not_a_server_error", "status_code_conformance", "content_type_conformance", "response_headers_conformance",
    "response_schema_conformance", "negative_data_rejection", "missing_required_header", "unsupported_method",
    "allow_header_conformance", "ignored_auth", "use_after_free",
)
NOTES = "/v1/collections/notes"
RECORDS = [{"id": "1", "vector": [1, 0], "document": "one", "metadata": {"n": 1}}, {"id": "2", "vector": [0, 1]}]
# {job}, {drawer} and {fact} are ids from earlier answers.
REQUESTS = (
    ("POST", "/v1/code/index", {}),
    ("GET", "/v1/jobs/{job}?wait=60", None),
    ("GET", "/v1/jobs/{job}/events", None),
    ("GET", "/v1/jobs", None),
    ("GET", "/v1/code/index", None),
    ("GET", "/v1/code/search?query=say+hello", None),
    ("POST", "/v1/code/search", {"query": "def", "mode": "exact", "context": 1}),
    ("GET", "/v1/code/similar?path=greetings.py&line=6", None),
    ("GET", "/v1/code/chunks?path=greetings.py", None),
    ("GET", "/v1/code/map?limit=5", None),
    ("POST", "/v1/graph/query", {"query": "MATCH p = (a)-[r]->(b) RETURN p, r, a.name, 1.5, [1], {k: null}"}),
    ("POST", "/v1/graph/import", {"nodes": {"label": "Person", "key": "id"}, "columns": ["id:int", "name"], "rows": "1,Ada\n2,Max\n"}),
    ("GET", "/v1/graph/callers?symbol=greet", None),
    ("GET", "/v1/graph/callees?symbol=greetings.py%23part", None),
    ("GET", "/v1/graph/path?from=greet&to=part", None),
    ("GET", "/v1/graph/impact?symbol=greetings.py", None),
    ("GET", "/v1/graph/cycles", None),
    ("GET", "/v1/graph/unused?exported=true", None),
    ("GET", "/v1/graph/hotspots?by=links", None),
    ("GET", "/v1/graph/stats", None),
    ("GET", "/v1/graph/schema", None),
    ("POST", "/v1/memory/drawers", {"text": "a text", "wing": "w", "room": "r", "date": "2026-01-31", "tags": ["t"], "metadata": {"k": 1}}),
    ("GET", "/v1/memory/drawers/{drawer}", None),
    ("GET", "/v1/memory/drawers?wing=w", None),
    ("GET", "/v1/memory/search?query=text", None),
    ("POST", "/v1/memory/search", {"query": "text", "wing": "w"}),
    ("PATCH", "/v1/memory/drawers/{drawer}", {"room": "other"}),
    ("GET", "/v1/memory/taxonomy", None),
    ("POST", "/v1/memory/duplicates", {"text": "a text"}),
    ("POST", "/v1/memory/diaries/me", {"text": "a day", "topic": "days"}),
    ("GET", "/v1/memory/diaries/me", None),
    ("GET", "/v1/memory/wake-up?wing=w&budget=300", None),
    ("POST", "/v1/memory/checkpoints", {"wing": "w", "drawers": [{"text": "t", "room": "r"}], "facts": [{"subject": "a", "predicate": "b", "object": "c"}], "diary": "done"}),
    ("POST", "/v1/memory/import", {"path": "notes.md", "wing": "w"}),
    ("DELETE", "/v1/memory/drawers/{drawer}", None),
    ("DELETE", "/v1/memory/drawers?source=none", None),
    ("POST", "/v1/facts", {"subject": "Ada", "predicate": "owns", "object": "deploys", "valid_from": "2026-01-01", "agent": "me"}),
    ("GET", "/v1/facts?entity=Ada", None),
    ("GET", "/v1/facts/timeline?limit=1", None),
    ("POST", "/v1/facts/supersede", {"id": "{fact}", "object": "releases"}),
    ("POST", "/v1/facts/invalidate", {"subject": "Ada", "predicate": "owns"}),
    ("GET", "/v1/facts/stats", None),
    ("POST", "/v1/facts/import", {"facts": [{"subject": "Ada", "predicate": "knows", "object": "Max"}]}),
    ("GET", "/v1/facts?text=ada+knows&state=current", None),
    ("POST", "/v1/facts/retract", {"subject": "Ada", "predicate": "knows", "object": "Max"}),
    ("PUT", "/v1/facts/predicates/works_at", {"single_valued": True}),
    ("GET", "/v1/facts/predicates", None),
    ("PATCH", "/v1/facts/entities/Ada", {"type": "person", "add_aliases": ["Countess"]}),
    ("GET", "/v1/facts/entities/Countess", None),
    ("GET", "/v1/facts/entities?type=person", None),
    ("POST", "/v1/collections", {"name": "notes", "dimension": 2, "metric": "l2"}),
    ("PUT", f"{NOTES}/records", {"records": RECORDS}),
    ("POST", f"{NOTES}/records", {"records": RECORDS}),
    ("PATCH", f"{NOTES}/records", {"records": [{"id": "2", "document": "two"}]}),
    ("GET", "/v1/collections", None),
    ("GET", NOTES, None),
    ("GET", f"{NOTES}/count", None),
    ("GET", f"{NOTES}/records?vectors=true", None),
    ("GET", f"{NOTES}/records/2", None),
    ("GET", f"{NOTES}/records?sort=n&descending=true", None),
    ("GET", f"{NOTES}/values?key=n", None),
    ("POST", f"{NOTES}/values", {"key": "n", "where": {"n": {"$gte": 1}}, "limit": 5}),
    ("POST", f"{NOTES}/query", {"vector": [1, 0], "where": {"n": {"$gte": 1}}}),
    ("POST", f"{NOTES}/query", {"vector": [1, 0], "keywords": "one"}),
    ("GET", f"{NOTES}/projection?by=n&limit=2", None),
    ("POST", f"{NOTES}/get", {"ids": ["1", "2"]}),
    ("POST", f"{NOTES}/delete", {"where_document": {"$contains": "two"}}),
    ("DELETE", f"{NOTES}/records/2", None),
    ("POST", "/v1/collections/loaded/ingest", {"path": "records.jsonl"}),
    ("PATCH", NOTES, {"name": "renamed"}),
    ("DELETE", "/v1/collections/renamed", None),
    ("POST", "/v1/doctor", {"full": True}),
    ("DELETE", "/v1/jobs/{job}", None),
    ("GET", "/v1/status", None),
    ("GET", "/v1/crashes?limit=5", None),
    ("GET", "/v1/quarantine", None),
    ("POST", "/v1/quarantine/release", {}),
    ("GET", "/v1/status/events?seconds=1", None),
    ("POST", "/v1/drill", {"count": 1}),
    ("POST", "/v1/stores/reconnect", None),
)


class Api:
    """The server, its description, and the operations that have been tried."""

    def __init__(self, server):
        self.url, self.headers = server["url"].removesuffix("/mcp"), token_of(server)
        self.description = {}
        _, self.description = self.send("GET", "/v1/openapi.json", None)
        self.tried, self.ids = set(), {}

    def send(self, verb, path, body):
        data = None if body is None else json.dumps(body).encode()
        kind = {"Content-Type": "application/json"} if data else {}
        request = urllib.request.Request(self.url + path, data, self.headers | kind, method=verb)
        with urllib.request.urlopen(request, timeout=120) as answer:
            text = answer.read().decode()
            return answer.status, json.loads(text) if answer.headers["Content-Type"] == "application/json" else text

    def operation(self, verb, path):
        """The most specific operation with this path."""
        fitting = [
            (template.count("{"), operations[verb.lower()])
            for template, operations in self.description["paths"].items()
            if verb.lower() in operations and re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", template), path)
        ]
        return min(fitting, key=lambda it: it[0])[1]

    def check(self, verb, path, body):
        fill = lambda text: re.sub(r"\{(job|drawer|fact)\}", lambda name: self.ids[name[1]], text)
        path, body = fill(path), json.loads(fill(json.dumps(body)))
        status, answer = self.send(verb, path, body)
        operation = self.operation(verb, path.partition("?")[0])
        self.tried.add(operation["operationId"])
        content = operation["responses"][str(status)]["content"]
        if "application/json" not in content:
            assert "event: result" in answer or "event: status" in answer, (path, answer)
            return
        schema = content["application/json"]["schema"] | {"components": self.description["components"]}
        jsonschema.validate(answer, schema, jsonschema.Draft202012Validator)
        for name, of in (("job", "index_project"), ("job", "repair"), ("drawer", "memory_add"), ("fact", "fact_add")):
            if operation["operationId"] == of:
                self.ids[name] = answer["id"]

    def operations(self):
        return {operation["operationId"] for path in self.description["paths"].values() for operation in path.values()}


def main():
    program, examples = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "6"
    began = time.monotonic()
    with Place(program) as place, place.http() as server:
        api = Api(server)
        for request in REQUESTS:
            api.check(*request)
        if missing := api.operations() - api.tried:
            sys.exit(f"add requests for {missing}")
        print(f"{len(REQUESTS)} requests, {len(api.tried)} operations: {time.monotonic() - began:.0f} s")
        # What was deleted above, for the made requests to find.
        api.send("POST", "/v1/memory/drawers", {"text": "a text", "wing": "w", "room": "r"})
        api.send("PUT", f"{NOTES}/records", {"records": RECORDS})
        [(name, token)] = api.headers.items()
        command = [
            str(pathlib.Path(sys.executable).with_name("schemathesis")), "run", f"{api.url}/v1/openapi.json",
            "--header", f"{name}: {token}", "--max-examples", examples, "--generation-deterministic",
            "--phases", "coverage,fuzzing,stateful", "--suppress-health-check", "all", "--workers", "2",
            # These close the stores, and other requests are told to try again (503).
            "--exclude-path", "/v1/doctor", "--exclude-path", "/v1/stores/reconnect",
            # These take as long as they are asked to.
            "--exclude-path", "/v1/status/events", "--exclude-path", "/v1/drill",
            "--checks", ",".join(CHECKS), "--request-timeout", "60", "--warnings", "off", "--no-color",
        ]
        status = subprocess.run(command, cwd=place.folder).returncode
        print(f"with Schemathesis: {time.monotonic() - began:.0f} s")
        sys.exit(status)


if __name__ == "__main__":
    main()
