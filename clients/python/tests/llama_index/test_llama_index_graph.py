"""The property graph store for LlamaIndex."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("llama_index.core", reason="llama-index-core is not installed")

from llama_index.core import PropertyGraphIndex
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.graph_stores.types import (
    KG_NODES_KEY,
    KG_RELATIONS_KEY,
    ChunkNode,
    EntityNode,
    LabelledNode,
    Relation,
    Triplet,
)
from llama_index.core.indices.property_graph import TextToCypherRetriever, VectorContextRetriever
from llama_index.core.llms.mock import MockLLM
from llama_index.core.schema import BaseNode, TextNode, TransformComponent
from llama_index.core.vector_stores.types import (
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryMode,
)

import isolith
from isolith.llama_index import IsolithPropertyGraphStore

ANN = EntityNode(label="Person", name="Ann", properties={"age": 41}, embedding=[1.0, 0.0])
BOB = EntityNode(label="Person", name="Bob", properties={"age": 7}, embedding=[0.8, 0.6])
ACME = EntityNode(label="Company", name="Acme", embedding=[0.0, 1.0])
TEXT = TextNode(id_="text", text="Ann works for Acme. Bob is her son.", metadata={"page": 3})


def relation(source: str, label: str, target: str, **properties: Any) -> Relation:
    return Relation(source_id=source, label=label, target_id=target, properties=properties)


RELATIONS = [
    relation("Ann", "WORKS_FOR", "Acme", since=2019),
    relation("Bob", "CHILD_OF", "Ann"),
    relation("text", "MENTIONS", "Ann"),
    relation("text", "MENTIONS", "Acme"),
]


@pytest.fixture
def graph(db: isolith.Client) -> IsolithPropertyGraphStore:
    store = IsolithPropertyGraphStore(db)
    store.upsert_llama_nodes([TEXT])
    store.upsert_nodes([ANN, BOB, ACME])
    store.upsert_relations(RELATIONS)
    return store


def ids(nodes: Sequence[LabelledNode]) -> set[str]:
    return {node.id for node in nodes}


def edges(triplets: Sequence[Triplet]) -> list[str]:
    assert all((a.id, b.id) == (r.source_id, r.target_id) for a, r, b in triplets)
    return [f"{a.id} {r.label} {b.id}" for a, r, b in triplets]


def test_nodes_are_returned_as_they_were_added(graph: IsolithPropertyGraphStore) -> None:
    (ann,) = graph.get(ids=["Ann"])
    assert isinstance(ann, EntityNode)
    assert (ann.label, ann.name, ann.properties) == ("Person", "Ann", {"age": 41})
    (chunk,) = graph.get(ids=["text"])
    assert isinstance(chunk, ChunkNode)
    assert (chunk.label, chunk.text) == ("text_chunk", TEXT.text)
    (text,) = graph.get_llama_nodes(["text"])
    assert text.to_dict() == TEXT.to_dict()


def test_getting_nodes(graph: IsolithPropertyGraphStore) -> None:
    assert ids(graph.get()) == {"Ann", "Bob", "Acme", "text"}
    assert [node.id for node in graph.get(ids=["Bob", "missing", "Ann", "Bob"])] == ["Bob", "Ann"]
    assert graph.get(ids=[]) == []
    assert ids(graph.get(properties={"age": 7})) == {"Bob"}
    assert ids(graph.get(properties={"age": 7, "name": "Ann"})) == set()
    assert ids(graph.get(properties={"age": 7}, ids=["Ann"])) == set()
    assert ids(graph.get(properties={"page": 3})) == {"text"}


def test_names_and_values_of_all_kinds(db: isolith.Client) -> None:
    store = IsolithPropertyGraphStore(db)
    properties = {"a `key`": "'\"`\\", "flag": True, "list": [1, 2], "none": None}
    odd = {"nested": {"a": [1]}, "big": 2**70, "mixed": [1, None]}
    node = EntityNode(name='say "hi"', label="a `label`", properties={**properties, **odd})
    store.upsert_nodes([node])
    store.upsert_relations([relation(node.id, "`type` with spaces", node.id, **odd)])
    (found,) = store.get()
    assert (found.id, found.label) == ("say  hi ", "a `label`")
    assert str(found).startswith('say "hi"')
    assert found.properties == {
        "a `key`": "'\"`\\",
        "flag": True,
        "list": [1, 2],
        "nested": '{"a":[1]}',
        "big": "1180591620717411303424",
        "mixed": "[1,null]",
    }
    assert ids(store.get(properties={"a `key`": "'\"`\\"})) == {found.id}
    assert ids(store.get(properties={"nested": {"a": [1]}})) == {found.id}
    ((start, kind, end),) = store.get_triplets(entity_names=['say "hi"'])
    assert (start.id, end.id, kind.label) == (found.id, found.id, "`type` with spaces")
    assert kind.properties["nested"] == '{"a":[1]}'


def test_upserting_merges_properties_and_replaces_the_label(
    graph: IsolithPropertyGraphStore,
) -> None:
    changed = {"age": None, "city": "Oslo"}
    graph.upsert_nodes([EntityNode(label="Director", name="Ann", properties=changed)])
    (ann,) = graph.get(ids=["Ann"])
    assert (ann.label, ann.properties) == ("Director", {"city": "Oslo"})
    graph.upsert_relations([relation("Ann", "WORKS_FOR", "Acme", until=2024)])
    ((_, works, _),) = graph.get_triplets(relation_names=["WORKS_FOR"])
    assert works.properties == {"since": 2019, "until": 2024}
    assert len(graph.get()) == 4


def test_an_end_of_a_relation_is_created(db: isolith.Client) -> None:
    store = IsolithPropertyGraphStore(db)
    store.upsert_relations([relation("Ann", "KNOWS", "Eve")])
    assert [(node.id, node.label) for node in store.get(ids=["Eve"])] == [("Eve", "entity")]
    store.upsert_nodes([EntityNode(name="Eve", label="Person"), ChunkNode(id_="Ann", text="Hi")])
    assert [(node.id, node.label) for node in store.get(ids=["Eve"])] == [("Eve", "Person")]
    assert edges(store.get_triplets(ids=["Ann"])) == ["Ann KNOWS Eve"]


def test_triplets(graph: IsolithPropertyGraphStore) -> None:
    assert graph.get_triplets() == []
    assert graph.get_triplets(ids=[]) == []
    assert graph.get_triplets(ids=[], relation_names=["WORKS_FOR"]) == []
    works, child = "Ann WORKS_FOR Acme", "Bob CHILD_OF Ann"
    assert set(edges(graph.get_triplets(entity_names=["Ann"]))) == {
        works,
        child,
        "text MENTIONS Ann",
    }
    assert edges(graph.get_triplets(entity_names=["Ann"], relation_names=["CHILD_OF"])) == [child]
    assert edges(graph.get_triplets(entity_names=["Ann"], ids=["Bob", "Eve"])) == [child]
    assert set(edges(graph.get_triplets(relation_names=["CHILD_OF", "WORKS_FOR"]))) == {
        works,
        child,
    }
    assert edges(graph.get_triplets(properties={"since": 2019})) == [works]
    assert edges(graph.get_triplets(properties={"age": 7})) == [child]
    assert edges(graph.get_triplets(ids=["Bob"], properties={"age": 99})) == []
    ((_, found, _),) = graph.get_triplets(relation_names=["WORKS_FOR"])
    assert found.properties == {"since": 2019}


def test_relations_around_nodes(graph: IsolithPropertyGraphStore) -> None:
    works, child = "Ann WORKS_FOR Acme", "Bob CHILD_OF Ann"
    assert edges(graph.get_rel_map([BOB], depth=1)) == [child]
    assert edges(graph.get_rel_map([BOB], depth=2)) == [child, works]
    assert edges(graph.get_rel_map([BOB], depth=9)) == [child, works]
    assert edges(graph.get_rel_map([BOB, ANN], depth=2)) == [child, works]
    assert edges(graph.get_rel_map([ACME, BOB], depth=1)) == [works, child]
    assert edges(graph.get_rel_map([BOB], depth=2, limit=1)) == [child]
    assert edges(graph.get_rel_map([BOB], ignore_rels=["WORKS_FOR"])) == [child]
    assert graph.get_rel_map([], depth=2) == []
    assert graph.get_rel_map([BOB], depth=2, limit=0) == []


def test_the_limit_counts_each_relation_once(db: isolith.Client) -> None:
    store = IsolithPropertyGraphStore(db)
    names = [str(n) for n in range(8)]
    pairs = [(a, b) for a in names for b in names if a < b]
    store.upsert_relations([relation(a, "KNOWS", b) for a, b in pairs])
    nodes = store.get(ids=names)
    found = edges(store.get_rel_map(nodes, depth=1, limit=28))
    assert len(set(found)) == len(found) == 28
    assert len(set(edges(store.get_rel_map(nodes[:1], depth=2, limit=20)))) == 20


def test_deleting(graph: IsolithPropertyGraphStore) -> None:
    graph.delete()
    graph.delete(ids=[])
    assert len(graph.get()) == 4
    graph.delete(relation_names=["CHILD_OF"])
    assert graph.get_triplets(relation_names=["CHILD_OF"]) == []
    assert len(graph.get()) == 4
    graph.delete(entity_names=["Ann"])
    assert ids(graph.get()) == {"Bob", "Acme", "text"}
    graph.delete(properties={"age": 7})
    graph.delete(ids=["Acme", "missing"])
    assert ids(graph.get()) == {"text"}
    found, _ = graph.vector_query(VectorStoreQuery(query_embedding=[1.0, 0.0], similarity_top_k=9))
    assert found == []
    assert graph.client.collection("graph_entities").count() == 0
    graph.delete_llama_nodes(["text"])
    assert graph.get() == []


def test_the_rest_of_the_graph_is_left_alone(
    graph: IsolithPropertyGraphStore, db: isolith.Client
) -> None:
    db.graph.query("CREATE (:Own {id: 'Ann', name: 'Ann', age: 41})-[:WORKS_FOR]->(:Own)")
    assert len(graph.get(ids=["Ann"])) == 1
    assert len(graph.get_triplets(relation_names=["WORKS_FOR"])) == 1
    graph.delete(ids=["Ann"], properties={"age": 41}, relation_names=["WORKS_FOR"])
    query = "MATCH (:Own {name: 'Ann'})-[r:WORKS_FOR]->() RETURN count(r)"
    assert db.graph.query(query).value() == 1


def test_structured_queries(graph: IsolithPropertyGraphStore) -> None:
    query = "MATCH (p:Person)-[r:WORKS_FOR]->(c) WHERE p.age > $age RETURN p.name AS name, r, c"
    (row,) = graph.structured_query(query, {"age": 20})
    assert row["name"] == "Ann"
    assert (row["r"]["type"], row["r"]["properties"]) == ("WORKS_FOR", {"since": 2019})
    assert row["c"]["properties"] == {"id": "Acme", "name": "Acme"}
    assert len(graph.structured_query("MATCH (n:`__Entity__`) RETURN n")) == 3
    graph.structured_query("MATCH (p:Person {name: $name}) SET p.city = 'Oslo'", {"name": "Bob"})
    assert graph.get(ids=["Bob"])[0].properties == {"age": 7, "city": "Oslo"}
    with pytest.raises(isolith.BadInput, match="RETRUN"):
        graph.structured_query("MATCH (n) RETRUN n")


def test_the_schema(graph: IsolithPropertyGraphStore) -> None:
    schema = graph.get_schema()
    assert schema["node_props"]["Person"] == [
        {"property": "age", "type": "INTEGER"},
        {"property": "id", "type": "STRING"},
        {"property": "name", "type": "STRING"},
    ]
    assert schema["rel_props"] == {"WORKS_FOR": [{"property": "since", "type": "INTEGER"}]}
    assert {"start": "Person", "type": "WORKS_FOR", "end": "Company"} in schema["relationships"]
    graph.upsert_nodes([EntityNode(name="Oslo", label="City", properties={"area": 454.0})])
    assert "City" not in graph.get_schema()["node_props"]
    assert "City {area: FLOAT, id: STRING, name: STRING}" in graph.get_schema_str(refresh=True)
    assert "(:Person)-[:CHILD_OF]->(:Person)" in graph.get_schema_str()
    assert "__" not in graph.get_schema_str()


def test_vector_queries(graph: IsolithPropertyGraphStore) -> None:
    def ask(**options: Any) -> tuple[list[str], list[float]]:
        nodes, scores = graph.vector_query(VectorStoreQuery(similarity_top_k=2, **options))
        return [node.id for node in nodes], scores

    names, scores = ask(query_embedding=[1.0, 0.0])
    assert names == ["Ann", "Bob"]
    assert scores == pytest.approx([1.0, 0.8], abs=1e-5)
    companies = MetadataFilters(filters=[MetadataFilter(key="label", value="Company")])
    assert ask(query_embedding=[1.0, 0.0], filters=companies)[0] == ["Acme"]
    words = VectorStoreQueryMode.TEXT_SEARCH
    assert ask(query_str="bob", mode=words)[0] == ["Bob"]
    # A node that was deleted otherwise is not found.
    graph.structured_query("MATCH (n {id: 'Ann'}) DETACH DELETE n")
    assert ask(query_embedding=[1.0, 0.0])[0] == ["Bob"]


def test_an_empty_store(tmp_path: Path) -> None:
    with isolith.open(tmp_path / "new") as db:
        check_empty(IsolithPropertyGraphStore(db))


def check_empty(store: IsolithPropertyGraphStore) -> None:
    assert store.get() == []
    assert store.get(ids=["Ann"]) == []
    assert store.get_triplets(entity_names=["Ann"]) == []
    assert store.get_rel_map([ANN]) == []
    assert store.get_llama_nodes(["text"]) == []
    assert store.vector_query(VectorStoreQuery(query_embedding=[1.0])) == ([], [])
    assert store.get_schema() == {"node_props": {}, "rel_props": {}, "relationships": []}
    store.upsert_nodes([])
    store.upsert_relations([])
    store.delete(ids=["Ann"], entity_names=["Ann"], properties={"a": 1}, relation_names=["R"])


def test_large_writes_are_several_requests(db: isolith.Client) -> None:
    store = IsolithPropertyGraphStore(db)
    store.upsert_nodes([ChunkNode(id_=str(n), text="word " * 200_000) for n in range(6)])
    names = [f"n{n}" for n in range(2500)]
    labels = [f"L{n % 7}" for n in range(2500)]
    store.upsert_nodes([EntityNode(name=n, label=label) for n, label in zip(names, labels)])
    store.upsert_relations([relation(a, f"T{a[-1]}", b) for a, b in zip(names, names[1:])])
    assert len(store.get()) == 2506
    assert [node.label for node in store.get(ids=names)] == labels
    assert len(store.get_triplets(relation_names=[f"T{n}" for n in range(10)])) == 2499
    store.delete(ids=names)
    assert len(store.get()) == 6


@pytest.mark.parametrize("has_async_client", [False, True])
def test_asynchronous_methods(db: isolith.Client, store: Path, has_async_client: bool) -> None:
    async def run() -> None:
        client = isolith.aio.open(store) if has_async_client else None
        own = IsolithPropertyGraphStore(db, "vectors", metric="dot", async_client=client)
        await own.aupsert_nodes([ANN, BOB, ACME])
        await own.aupsert_relations(RELATIONS[:2])
        assert ids(await own.aget(ids=["Ann"])) == {"Ann"}
        assert edges(await own.aget_triplets(entity_names=["Acme"])) == ["Ann WORKS_FOR Acme"]
        assert len(await own.aget_rel_map([BOB])) == 2
        assert await own.astructured_query("RETURN $a AS a", {"a": 1}) == [{"a": 1}]
        query = VectorStoreQuery(query_embedding=[2.0, 0.0], similarity_top_k=1)
        nodes, scores = await own.avector_query(query)
        assert (ids(nodes), scores) == ({"Ann"}, [2.0])
        assert "Person" in (await own.aget_schema())["node_props"]
        assert "Person" in await own.aget_schema_str()
        await own.adelete(ids=["Ann"])
        assert ids(await own.aget()) == {"Bob", "Acme"}
        assert db.collection("vectors").info().metric == "dot"
        if client is not None:
            await client.close()

    asyncio.run(run())


class Letters(BaseEmbedding):
    """Counts letters: deterministic, and similar for similar texts."""

    def _get_text_embedding(self, text: str) -> list[float]:
        counts = [float(text.lower().count(letter)) for letter in "abcdefghijklmnopqrstuvwxyz"]
        return [*counts, 0.1]

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)


class Sentences(TransformComponent):
    """Takes each sentence of three words for a triplet."""

    def __call__(self, nodes: Sequence[BaseNode], **kwargs: Any) -> Sequence[BaseNode]:
        for node in nodes:
            entities, relations = [], []
            for sentence in node.get_content(metadata_mode="none").split("."):  # type: ignore[arg-type]
                if len(sentence.split()) == 3:
                    subject, verb, object = sentence.split()
                    entities += [EntityNode(name=subject), EntityNode(name=object)]
                    relations.append(relation(subject, verb, object))
            node.metadata[KG_NODES_KEY] = entities
            node.metadata[KG_RELATIONS_KEY] = relations
        return nodes


class Answers(MockLLM):
    """A model that always answers the same."""

    answer: str = ""

    def predict(self, *args: Any, **kwargs: Any) -> str:
        assert "(:entity)-[:likes]->(:entity)" in kwargs["schema"]
        return self.answer


def test_an_index(db: isolith.Client) -> None:
    store = IsolithPropertyGraphStore(db)
    index = PropertyGraphIndex(
        [TextNode(id_="t1", text="Ann likes Bob. Bob knows Eve."), TextNode(text="Zed hates Yak.")],
        property_graph_store=store,
        kg_extractors=[Sentences()],
        embed_model=Letters(),
        use_async=False,
        llm=MockLLM(),
    )
    retriever = index.as_retriever(
        sub_retrievers=[
            VectorContextRetriever(
                store, embed_model=Letters(), similarity_top_k=1, path_depth=2, include_text=True
            )
        ]
    )
    found = retriever.retrieve("ann")
    assert len(found) == 1
    assert "Ann -> likes -> Bob" in found[0].get_content()
    assert "Bob -> knows -> Eve" in found[0].get_content()
    assert "Ann likes Bob. Bob knows Eve." in found[0].get_content()
    assert "Zed" not in found[0].get_content()

    query = "MATCH (a)-[:likes]->(b) RETURN a.name, b.name"
    llm = Answers(max_tokens=None)
    llm.answer = query
    cypher = TextToCypherRetriever(store, llm=llm)
    assert "{'a.name': 'Ann', 'b.name': 'Bob'}" in cypher.retrieve("who?")[0].get_content()

    again = PropertyGraphIndex.from_existing(
        store, embed_model=Letters(), kg_extractors=[Sentences()], use_async=False, llm=MockLLM()
    )
    again.insert_nodes([TextNode(text="Eve likes Ann.")])
    assert len(store.get_triplets(entity_names=["Ann"])) == 2
    assert db.collection("graph_entities").count() == 5
