#!/usr/bin/env python3
"""Chroma's own Python client (thin, synchronous and asynchronous) against `isolith serve`."""
import argparse, asyncio

import chromadb
from chromadb.errors import InvalidArgumentError, NotFoundError

from place import Place, token_of


def life_of_a_collection(client):
    assert client.heartbeat() > 0
    collection = client.create_collection(
        "docs", metadata={"topic": "moon"}, embedding_function=None, configuration={"hnsw": {"space": "cosine"}}
    )
    collection.add(
        ids=["a", "b", "c"],
        embeddings=[[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]],
        documents=["hello moon", "goodbye moon", None],
        metadatas=[{"year": 1969, "tags": ["x", "y"]}, {"year": 1972}, {"ok": True}],
        uris=["u1", None, None],
    )
    assert collection.count() == 3
    near = collection.query(query_embeddings=[[1.0, 0.1], [0.0, 1.0]], n_results=2)
    assert near["ids"] == [["a", "c"], ["b", "c"]], near
    assert near["distances"][1][0] < 1e-5
    got = collection.get(where={"year": {"$gt": 1970}}, include=["embeddings", "documents"])
    assert got["ids"] == ["b"] and list(got["embeddings"][0]) == [0.0, 1.0], got
    assert collection.get(where={"tags": {"$contains": "y"}})["ids"] == ["a"]
    assert collection.get(where_document={"$not_contains": "hello"})["ids"] == ["b", "c"]
    collection.upsert(ids=["a", "d"], embeddings=[[2.0, 0.0], [3.0, 0.0]], metadatas=[{"new": 1}, {"new": 2}])
    assert collection.get(ids=["a"])["metadatas"] == [{"new": 1, "year": 1969, "tags": ["x", "y"]}]
    collection.update(ids=["b"], embeddings=[[0.0, 2.0]], documents=["changed"])
    collection.update(ids=["b"], metadatas=[{"year": None, "seen": True}])
    changed = collection.get(ids=["b"])
    assert changed["documents"] == ["changed"] and changed["metadatas"] == [{"seen": True}], changed
    collection.modify(name="renamed", metadata={"topic": "sun"})
    assert client.get_collection("renamed", embedding_function=None).metadata == {"topic": "sun"}
    assert client.get_or_create_collection("renamed", embedding_function=None).id == collection.id
    collection.delete(where={"new": 2})
    collection.delete(ids=["a"])
    assert collection.get(limit=1, offset=1)["ids"] == ["c"]
    for attempt, error in (
        (lambda: collection.add(ids=["x"], embeddings=[[1.0]]), InvalidArgumentError),
        (lambda: client.get_collection("missing"), NotFoundError),
    ):
        try:
            attempt()
        except error:
            continue
        raise AssertionError(f"no {error.__name__}")
    assert [it.name for it in client.list_collections()] == ["renamed"]
    client.delete_collection("renamed")
    assert client.count_collections() == 0


class Text(str):
    def tolist(self):
        return str(self)


class EmbeddedByServer:
    """The embedding function of docs/chroma.md."""

    def __call__(self, input):
        return None

    def embed_query(self, input):
        return [Text(text) for text in input]

    def name(self):
        return "isolith"


def documents_that_the_server_embeds(client):
    notes = client.create_collection(
        "notes", metadata={"isolith:embed": True}, embedding_function=EmbeddedByServer()
    )
    notes.add(ids=["a", "b"], documents=["how to roast coffee", "a garden in summer"])
    notes.upsert(ids=["c"], documents=["the connection was closed"])
    notes.update(ids=["c"], documents=["an espresso machine"], metadatas=[{"n": 1}])
    again = client.get_collection("notes", embedding_function=EmbeddedByServer())
    near = again.query(query_texts=["flowers", "making espresso"], n_results=1)
    assert near["ids"] == [["b"], ["c"]], near
    try:
        notes.add(ids=["d"], embeddings=[[1.0, 2.0]])
    except InvalidArgumentError as error:
        assert "embeds its documents" in str(error), error
    else:
        raise AssertionError("it was not refused")
    client.delete_collection("notes")


def tenants_and_databases(port, headers):
    admin = chromadb.AdminClient(
        chromadb.Settings(
            chroma_api_impl="chromadb.api.fastapi.FastAPI",
            chroma_server_host="127.0.0.1",
            chroma_server_http_port=port,
            chroma_server_headers=headers,
        )
    )
    admin.create_tenant("acme")
    admin.create_database("prod", "acme")
    client = chromadb.HttpClient("127.0.0.1", port, headers=headers, tenant="acme", database="prod")
    client.create_collection("same", embedding_function=None)
    other = chromadb.HttpClient("127.0.0.1", port, headers=headers)
    other.create_collection("same", embedding_function=None)
    assert client.get_collection("same").id != other.get_collection("same").id
    admin.delete_database("prod", "acme")
    assert other.count_collections() == 1
    other.delete_collection("same")


async def asynchronously(port, headers):
    client = await chromadb.AsyncHttpClient("127.0.0.1", port, headers=headers)
    collection = await client.create_collection("async", embedding_function=None)
    await asyncio.gather(*(collection.add(ids=[str(n)], embeddings=[[float(n), 1.0]]) for n in range(20)))
    assert await collection.count() == 20
    near = await collection.query(query_embeddings=[[7.0, 1.0]], n_results=1)
    assert near["ids"] == [["7"]] and near["distances"] == [[0.0]], near
    await client.delete_collection("async")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    with Place(parser.parse_args().program) as place, place.http("--chroma") as server:
        port = int(server["url"].removesuffix("/mcp").rsplit(":", 1)[1])
        bearer = token_of(server)
        own = {"X-Chroma-Token": bearer["Authorization"].removeprefix("Bearer ")}
        for headers in (bearer, own):
            life_of_a_collection(chromadb.HttpClient("127.0.0.1", port, headers=headers))
        documents_that_the_server_embeds(chromadb.HttpClient("127.0.0.1", port, headers=bearer))
        tenants_and_databases(port, bearer)
        asyncio.run(asynchronously(port, bearer))
    print("Chroma's client: ok")


if __name__ == "__main__":
    main()
