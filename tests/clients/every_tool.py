#!/usr/bin/env python3
"""The official Python client calls every tool, over all transports and both ways of saying hello, and compares each
structured answer with the tool's own schema."""
import argparse, asyncio, time

import httpx2, jsonschema
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from place import Place, token_of


class Visit:
    """One client's session."""

    def __init__(self, client, tools):
        self.client, self.tools, self.called = client, {tool.name: tool for tool in tools}, set()

    async def call(self, name, /, **arguments):
        """The structured answer of a call that succeeds."""
        result = await self.client.call_tool(name, arguments)
        text = "".join(block.text for block in result.content)
        assert not result.is_error, f"{name}({arguments}): {text}"
        assert text, f"{name} says nothing in words"
        jsonschema.validate(result.structured_content, self.tools[name].output_schema)
        self.called.add(name)
        return result.structured_content

    async def refused(self, code, name, /, **arguments):
        """A call that fails, with its code."""
        result = await self.client.call_tool(name, arguments)
        assert result.is_error, f"{name}({arguments}) should be refused"
        error = result.structured_content["error"]
        assert error["code"] == code, error
        assert error["message"]


async def code(visit, place):
    report = await visit.call("index_project")
    assert report["files"]["seen"] >= 1, report
    hits = (await visit.call("search_code", query="say hello to somebody", limit=3, language="python", kind="function", tests=False, budget=5000))["hits"]
    assert hits[0]["path"] == "greetings.py", hits
    await visit.call("search_similar", path="greetings.py", line=1)
    await visit.call("read_chunk", path="greetings.py", line=1)
    await visit.call("index_status")
    await visit.refused("forbidden_path", "read_chunk", path=str(place.folder / "secret.txt"))
    await visit.refused("forbidden_path", "search_similar", path="../secret.txt")
    # What is edited is found as it is now, within a second.
    marker = new_name(visit)
    source = place.project / "greetings.py"
    source.write_text(source.read_text() + f"\n\ndef {marker}():\n    return greet('a new way to greet')\n")
    started = time.monotonic()
    hits = (await visit.call("search_code", query="greet somebody in a new way"))["hits"]
    took = time.monotonic() - started
    shown = any(marker in hit["snippet"] for hit in hits) or all(hit["stale"] for hit in hits if hit["path"] == "greetings.py")
    assert shown, f"after {took:.2f} s: {hits}"
    hits = (await visit.call("search_code", query=marker))["hits"]
    assert any(marker in hit["snippet"] for hit in hits), hits


def new_name(visit):
    """The name of a function that nobody has written yet."""
    return f"unheard_of_{visit.client.protocol_version.replace('-', '_')}"


async def graph(visit, _place):
    callers = (await visit.call("graph_neighbours", symbol="greet", direction="callers"))["found"]
    assert any(new_name(visit) in caller["id"] for caller in callers), callers
    path = (await visit.call("graph_path", **{"from": new_name(visit), "to": "greet"}))["path"]
    assert path[-1]["id"] == "greetings.py#greet", path
    impact = (await visit.call("graph_impact", symbol="greet"))["impact"]
    assert any(new_name(visit) in one["id"] for one in impact), impact
    await visit.refused("not_found", "graph_neighbours", symbol="nobody_calls_me_that")
    made = await visit.call("graph_query", query="UNWIND $rows AS r MERGE (a:Tried {n: r})-[:NEXT]->(:Tried {n: -r}) RETURN a.n", params={"rows": [1, 2, 3]}, limit=2)
    assert made["columns"] == ["a.n"] and made["rows"] == [[1], [2]] and made["stats"]["nodes_created"] in (0, 6), made
    rest = await visit.call("graph_query", next=made["next"])
    assert rest["rows"] == [[3]] and rest["next"] is None, rest
    for report in ("graph_cycles", "graph_unused", "graph_hotspots"):
        await visit.call(report, path=".")
    assert (await visit.call("graph_stats"))["nodes"] > 0
    schema = await visit.call("graph_schema")
    assert any(label["label"] == "Tried" and "n" in label["properties"] for label in schema["labels"]), schema
    node = (await visit.call("graph_query", query="MATCH (n:Tried {n: 1}) RETURN n"))["rows"][0][0]
    assert node["labels"] == ["Tried"] and node["properties"] == {"n": 1}, node
    await visit.refused("cursor_expired", "graph_query", next="1-0-0")
    await visit.refused("bad_input", "graph_query", query="MATCH (n RETURN n")


async def memory(visit, _place):
    added = await visit.call("memory_add", text="Alice is allergic to peanuts", wing="team", room="food", tags=["allergy"])
    assert added["created"] and added["duplicate_of"] is None, added
    again = await visit.call("memory_add", text="Alice is allergic to peanuts", wing="team", room="food", tags=["allergy"])
    assert not again["created"] and again["id"] == again["duplicate_of"] == added["id"], again
    hits = (await visit.call("memory_search", query="who must not eat nuts", wing="team", limit=3))["hits"]
    assert hits[0]["id"] == added["id"] and hits[0]["text"] == "Alice is allergic to peanuts", hits
    await visit.call("memory_get", id=added["id"])
    listed = await visit.call("memory_list", wing="team")
    assert any(drawer["id"] == added["id"] for drawer in listed["drawers"]), listed
    near = await visit.call("memory_check_duplicate", text="Alice is allergic to peanuts!", threshold=0.8)
    assert near, near
    await visit.call("memory_update", id=added["id"], text="Alice is allergic to peanuts and shellfish")
    await visit.refused("not_found", "memory_get", id="nobody")
    await visit.refused("bad_input", "memory_add", text=" ", wing="team", room="food")
    await visit.call("diary_write", agent="tester", text="Tried every tool today.")
    await visit.call("diary_read", agent="tester")
    saved = await visit.call("memory_checkpoint", wing="project", drawers=[{"room": "decisions", "text": "We decided to try every tool."}], facts=[{"subject": "tester", "predicate": "tries", "object": "tools"}], diary="Done.", agent="tester")
    assert len(saved["drawers"]) == len(saved["facts"]) == 1 and saved["diary"], saved
    woken = await visit.call("memory_wake_up", wing="project")
    assert "We decided to try every tool." in woken["text"] and woken["tokens"] <= 700, woken
    await visit.refused("bad_input", "memory_checkpoint", wing="project")
    imported = await visit.call("memory_import", path="notes.md", wing="office")
    assert imported["drawers"] == 1, imported
    await visit.call("memory_delete", id=added["id"])
    await visit.refused("not_found", "memory_get", id=added["id"])


async def facts(visit, _place):
    added = await visit.call("fact_add", subject="Ann", predicate="works_at", object="Acme", valid_from="2024-01-01")
    again = await visit.call("fact_add", subject="Ann", predicate="works_at", object="Acme", valid_from="2024-01-01")
    assert added["created"] and again == {"id": added["id"], "created": False}, (added, again)
    found = (await visit.call("fact_query", entity="ann", as_of="2024-06-01"))["facts"]
    assert [fact["object"] for fact in found] == ["Acme"], found
    await visit.call("fact_supersede", id=added["id"], object="Globex", at="2025-01-01")
    found = (await visit.call("fact_query", entity="Ann", as_of="2025-06-01", direction="out", predicate="works_at"))["facts"]
    assert [fact["object"] for fact in found] == ["Globex"], found
    await visit.call("fact_timeline", entity="Ann")
    await visit.call("fact_invalidate", id=found[0]["id"], at="2026-01-01")
    wrong = await visit.call("fact_add", subject="Ann", predicate="works_at", object="Wrong Ltd")
    await visit.call("fact_retract", id=wrong["id"])
    found = (await visit.call("fact_query", text="wrong", state="retracted"))["facts"]
    assert [fact["state"] for fact in found] == ["retracted"], found
    await visit.call("fact_stats")
    await visit.refused("not_found", "fact_invalidate", id="f999999")
    await visit.refused("bad_input", "fact_add", subject="Ann", predicate="born", object="1990", valid_from="yesterday")


async def collections(visit, _place):
    loaded = await visit.call("ingest_file", path="records.jsonl", collection="numbers")
    assert loaded["rows"] == 2, loaded
    await visit.call("collection_add", collection="numbers", records=[{"id": "three", "vector": [0, 0, 1], "document": "the third"}])
    hits = (await visit.call("collection_query", collection="numbers", vector=[1, 0.1, 0], limit=1))["hits"]
    assert hits[0]["id"] == "one", hits
    hits = (await visit.call("collection_query", collection="numbers", vector=[0, 0, 1], keywords="third"))["hits"]
    assert hits[0]["id"] == "three" and len(hits[0]["why"]) == 2, hits
    await visit.call("collection_list")
    await visit.call("collection_add", collection="numbers", update=True, records=[{"id": "three", "metadata": {"n": 3}}])
    found = await visit.call("collection_get", collection="numbers", where={"n": 3})
    assert [it["id"] for it in found["records"]] == ["three"], found
    found = await visit.call("collection_get", collection="numbers", sort="n", descending=True)
    assert [it["id"] for it in found["records"]] == ["three", "two", "one"], found
    values = await visit.call("collection_values", collection="numbers", key="n")
    assert values["total"] == 3, values
    assert (await visit.call("collection_create", name="scratch", model="built-in"))["created"]
    assert (await visit.call("collection_delete", collection="scratch", all=True))["deleted"] == 0
    gone = await visit.call("collection_delete", collection="numbers", ids=["three", "four"])
    assert (gone["deleted"], gone["missing"]) == (1, 1), gone
    await visit.refused("not_found", "collection_query", collection="nothing", vector=[1])


async def upkeep(visit, _place):
    for tool in ("health", "workers", "reconnect", "repair"):
        await visit.call(tool)


async def beside_tools(client):
    """Resources, templates and prompts."""
    resources = (await client.list_resources()).resources
    for resource in resources[:5]:
        assert (await client.read_resource(str(resource.uri))).contents, resource
    assert (await client.list_resource_templates()).resource_templates
    prompts = (await client.list_prompts()).prompts
    assert len(prompts) >= 2, prompts
    for prompt in prompts:
        arguments = {argument.name: "bicycles" for argument in prompt.arguments or []}
        assert (await client.get_prompt(prompt.name, arguments)).messages, prompt


async def visit(server, place, mode):
    async with Client(server, mode=mode) as client:
        tools = (await client.list_tools()).tools
        guest = Visit(client, tools)
        for part in (code, graph, memory, facts, collections, upkeep):
            await part(guest, place)
        missed = set(guest.tools) - guest.called
        assert not missed, f"not called: {sorted(missed)}"
        await beside_tools(client)
        print(f"  {client.protocol_version} ({mode}): {len(tools)} tools called, all answers fit their schemas")


async def visit_http(server, place, mode, **how):
    # A call may take as long as indexing does.
    async with httpx2.AsyncClient(timeout=300, **how) as http:
        await visit(streamable_http_client(server["url"], http_client=http), place, mode)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    arguments = parser.parse_args()
    for mode in ("auto", "legacy"):
        with Place(arguments.program) as place:
            print("stdio")
            asyncio.run(visit(place.stdio(), place, mode))
        with Place(arguments.program) as place, place.http() as server:
            print("HTTP with a token")
            asyncio.run(visit_http(server, place, mode, headers=token_of(server)))
        with Place(arguments.program) as place, place.http(listen=f"unix:{place.folder}/socket") as server:
            print("HTTP over a Unix socket")
            asyncio.run(visit_http(server, place, mode, transport=httpx2.AsyncHTTPTransport(uds=server["socket"])))


if __name__ == "__main__":
    main()
