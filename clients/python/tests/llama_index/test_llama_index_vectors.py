"""The vector store for LlamaIndex."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("llama_index.core", reason="llama-index-core is not installed")

from llama_index.core import MockEmbedding, StorageContext, VectorStoreIndex
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.schema import (
    BaseNode,
    ImageNode,
    IndexNode,
    MediaResource,
    Node,
    NodeRelationship,
    RelatedNodeInfo,
    TextNode,
)
from llama_index.core.vector_stores.types import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryMode,
)

import isolith
from isolith.llama_index import IsolithVectorStore


class Letters(BaseEmbedding):
    """Counts letters: deterministic, and similar for similar texts."""

    def _get_text_embedding(self, text: str) -> list[float]:
        counts = [float(text.lower().count(letter)) for letter in "abcdefghijklmnopqrstuvwxyz"]
        return [*counts, 0.1]

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)


def node(id: str, source: str, text: str, vector: list[float], **metadata: Any) -> TextNode:
    related = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id=source)}
    return TextNode(id_=id, text=text, relationships=related, metadata=metadata, embedding=vector)


NODES = [
    node("fox", "d1", "The quick brown fox.", [1.0, 0.0, 0.0], kind="animal", year=2021),
    node(
        "dog", "d1", "The lazy dog sleeps.", [0.0, 1.0, 0.0], kind="animal", year=2022, tags=["a"]
    ),
    node("cat", "d2", "Cats sleep all day.", [0.0, 0.9, 0.1], kind="Animal", tags=["a", "b"]),
    node("job", "d3", "Deploys on Tuesdays.", [0.0, 0.0, 1.0], year=2024, owner={"name": "Ada"}),
]


@pytest.fixture
def notes(db: isolith.Client) -> IsolithVectorStore:
    store = IsolithVectorStore(db, "notes")
    assert store.add(NODES) == ["fox", "dog", "cat", "job"]
    return store


def near(vector: list[float], k: int = 4, **options: Any) -> VectorStoreQuery:
    return VectorStoreQuery(query_embedding=vector, similarity_top_k=k, **options)


def filters(
    *conditions: tuple[str, str, Any] | MetadataFilters, how: str = "and"
) -> MetadataFilters:
    each = [
        it
        if isinstance(it, MetadataFilters)
        else MetadataFilter(key=it[0], operator=FilterOperator(it[1]), value=it[2])
        for it in conditions
    ]
    return MetadataFilters(filters=each, condition=FilterCondition(how))


def without_vector(node: BaseNode) -> dict[str, Any]:
    return {**node.to_dict(), "embedding": None}


def test_nodes_are_returned_as_they_were_added(notes: IsolithVectorStore) -> None:
    found = notes.get_nodes(["job", "missing", "fox"])
    assert [it.to_dict() for it in found] == [without_vector(NODES[3]), without_vector(NODES[0])]
    assert found[0].metadata == {"year": 2024, "owner": {"name": "Ada"}}
    assert found[1].ref_doc_id == "d1"
    assert [it.node_id for it in notes.get_nodes()] == ["fox", "dog", "cat", "job"]


@pytest.mark.parametrize(
    "other",
    [
        ImageNode(id_="x", text="a caption", image="aGVsbG8=", embedding=[1.0]),
        IndexNode(id_="x", text="words", index_id="sub", embedding=[1.0]),
        Node(id_="x", text_resource=MediaResource(text="words"), embedding=[1.0]),
        TextNode(id_="x", text="", embedding=[1.0]),
    ],
    ids=lambda it: it.class_name(),
)
def test_nodes_of_all_kinds_are_kept(db: isolith.Client, other: BaseNode) -> None:
    store = IsolithVectorStore(db, "notes")
    store.add([other])
    (found,) = store.get_nodes(["x"])
    assert type(found) is type(other)
    assert found.get_content() == other.get_content()
    assert found.to_dict() == without_vector(other)


def test_records_of_other_origin_are_text_nodes(db: isolith.Client) -> None:
    db.collection("notes").add(
        [{"id": "a", "document": "some words", "vector": [1.0, 0.0], "metadata": {"year": 1}}]
    )
    (found,) = IsolithVectorStore(db, "notes").query(near([1.0, 0.0])).nodes or []
    assert (found.node_id, found.get_content()) == ("a", "some words")
    assert found.metadata == {"year": 1}


def test_queries(notes: IsolithVectorStore) -> None:
    found = notes.query(near([0.0, 1.0, 0.0], k=2))
    assert found.ids == ["dog", "cat"]
    assert found.similarities == pytest.approx([1.0, 0.9 / (0.82**0.5)], abs=1e-5)
    assert [it.get_content() for it in found.nodes or []] == [NODES[1].text, NODES[2].text]
    assert notes.query(near([0.0, 1.0, 0.0], k=0)).ids == []


@pytest.mark.parametrize(("metric", "expected"), [("cosine", 1.0), ("dot", 4.0), ("l2", 1.0)])
def test_similarities_depend_on_the_metric(
    db: isolith.Client, metric: str, expected: float
) -> None:
    store = IsolithVectorStore(db, "notes", metric=metric)
    store.add([node("a", "d", "words", [2.0, 0.0]), node("b", "d", "words", [0.0, 1.0])])
    found = store.query(near([2.0, 0.0], k=2))
    assert found.ids == ["a", "b"]
    assert (found.similarities or [])[0] == pytest.approx(expected)
    assert (found.similarities or [])[1] < expected


@pytest.mark.parametrize("mode", ["sparse", "text_search"])
def test_queries_by_keywords(notes: IsolithVectorStore, mode: str) -> None:
    query = VectorStoreQuery(
        query_str="tuesdays", similarity_top_k=3, mode=VectorStoreQueryMode(mode)
    )
    found = notes.query(query)
    assert found.ids == ["job"]
    assert (found.similarities or [])[0] > 0


def test_hybrid_queries(notes: IsolithVectorStore) -> None:
    def ask(**options: Any) -> list[str] | None:
        mode = VectorStoreQueryMode.HYBRID
        return notes.query(near([1.0, 0.0, 0.0], query_str="tuesdays", mode=mode, **options)).ids

    assert set((ask() or [])[:2]) == {"fox", "job"}
    assert ask(alpha=0.5) == ask()
    assert ask(alpha=0.0) == ["job"]
    assert (ask(alpha=1.0) or [])[0] == "fox"
    assert len(ask(hybrid_top_k=1) or []) == 1
    with pytest.raises(ValueError, match=r"alpha must be 0, 0\.5 or 1, not 0\.7"):
        ask(alpha=0.7)


def test_diverse_queries(notes: IsolithVectorStore) -> None:
    mode = VectorStoreQueryMode.MMR
    diverse = notes.query(near([0.1, 1.0, 0.05], k=2, mode=mode, mmr_threshold=0.3))
    assert (diverse.ids or [])[0] == "dog"
    assert "cat" not in (diverse.ids or [])
    similar = notes.query(near([0.1, 1.0, 0.05], k=2, mode=mode, mmr_threshold=1.0))
    assert similar.ids == ["dog", "cat"]
    few = notes.query(near([0.1, 1.0, 0.05], k=2, mode=mode), mmr_prefetch_k=2)
    assert set(few.ids or []) == {"dog", "cat"}


def test_what_a_query_lacks_is_said(notes: IsolithVectorStore) -> None:
    with pytest.raises(ValueError, match="the query has no embedding"):
        notes.query(VectorStoreQuery(query_str="tuesdays"))
    with pytest.raises(ValueError, match="the query has no text"):
        notes.query(near([1.0, 0.0, 0.0], mode=VectorStoreQueryMode.SPARSE))
    with pytest.raises(ValueError, match="a collection has no query mode 'svm'"):
        notes.query(near([1.0, 0.0, 0.0], mode=VectorStoreQueryMode.SVM))


CONDITIONS: list[tuple[MetadataFilters, set[str]]] = [
    (filters(("kind", "==", "animal")), {"fox", "dog"}),
    (filters(("kind", "!=", "animal")), {"cat", "job"}),
    (filters(("year", ">", 2021)), {"dog", "job"}),
    (filters(("year", ">=", 2021), ("year", "<", 2022)), {"fox"}),
    (filters(("year", "<=", 2021), ("kind", "==", "Animal"), how="or"), {"fox", "cat"}),
    (filters(("year", "<=", 2021), ("kind", "==", "Animal"), how="not"), {"dog", "job"}),
    (filters(("year", "in", [2021, 2024])), {"fox", "job"}),
    (filters(("year", "nin", [2021, 2024])), {"dog", "cat"}),
    (filters(("tags", "contains", "b")), {"cat"}),
    (filters(("tags", "any", ["a", "x"])), {"dog", "cat"}),
    (filters(("tags", "any", [])), set()),
    (filters(("tags", "all", ["a", "b"])), {"cat"}),
    (filters(("tags", "all", [])), {"fox", "dog", "cat", "job"}),
    (filters(("text", "text_match", "sleep")), {"dog", "cat"}),
    (filters(("text", "text_match", "cats")), set()),
    (filters(("text", "text_match_insensitive", "cats sleep all day.")), {"cat"}),
    (filters(("text", "text_match_insensitive", "c.ts")), set()),
    (
        filters(
            ("year", ">", 2020), filters(("kind", "!=", "animal"), ("tags", "any", ["a"]), how="or")
        ),
        {"dog", "job"},
    ),
    (filters(filters(), ("year", "==", 2021)), {"fox"}),
    (filters(), {"fox", "dog", "cat", "job"}),
]


@pytest.mark.parametrize(("condition", "expected"), CONDITIONS)
def test_filters(notes: IsolithVectorStore, condition: MetadataFilters, expected: set[str]) -> None:
    assert set(notes.query(near([1.0, 1.0, 1.0], filters=condition)).ids or []) == expected
    assert {it.node_id for it in notes.get_nodes(filters=condition)} == expected


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        (("year", "is_empty", None), "a collection has no filter 'is_empty'"),
        (("kind", "text_match", "ani"), "its key is 'text', not 'kind'"),
        (("kind", "==", None), "takes one value, not None"),
        (("kind", "in", "animal"), "takes a list, not 'animal'"),
    ],
)
def test_filters_that_collections_do_not_have(
    notes: IsolithVectorStore, condition: tuple[str, str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        notes.get_nodes(filters=filters(condition))


def test_queries_by_filters_and_ids_only(notes: IsolithVectorStore) -> None:
    found = notes.query(VectorStoreQuery(filters=filters(("year", ">", 2020)), similarity_top_k=2))
    assert (found.ids, found.similarities) == (["fox", "dog"], None)
    assert notes.query(near([1.0, 0.0, 0.0], node_ids=["dog"])).ids == ["dog"]
    assert notes.query(near([1.0, 0.0, 0.0], doc_ids=["d2", "d3"])).ids == ["cat", "job"]
    assert len(notes.query(near([1.0, 0.0, 0.0], node_ids=[], doc_ids=[])).ids or []) == 4


def test_deleting(notes: IsolithVectorStore) -> None:
    def left() -> list[str]:
        return [it.node_id for it in notes.get_nodes()]

    notes.delete("d1")
    assert left() == ["cat", "job"]
    notes.delete("missing")
    notes.delete_nodes(["cat", "job"], filters(("year", "==", 2024)))
    assert left() == ["cat"]
    notes.delete_nodes(["missing"])
    notes.delete_nodes([])
    with pytest.raises(ValueError, match="pass node_ids or filters"):
        notes.delete_nodes()
    notes.add(NODES)
    notes.delete_nodes(filters=filters(("year", ">", 2021)))
    assert left() == ["cat", "fox"]
    notes.clear()
    assert left() == []
    notes.add(NODES[:1])
    assert left() == ["fox"]


def test_adding_again_replaces(notes: IsolithVectorStore) -> None:
    notes.add([node("fox", "d9", "Another fox.", [0.0, 0.0, 1.0])])
    (found,) = notes.get_nodes(["fox"])
    assert (found.get_content(), found.ref_doc_id, found.metadata) == ("Another fox.", "d9", {})
    assert notes.collection.count() == 4


def test_a_collection_that_does_not_exist_is_empty(db: isolith.Client) -> None:
    store = IsolithVectorStore(db, "notes")
    assert store.query(near([1.0])).nodes == []
    assert store.get_nodes() == []
    assert store.get_nodes(["a"]) == []
    store.delete("d1")
    store.delete_nodes(["a"])
    store.clear()
    assert store.add([]) == []
    assert db.collections() == []


def test_nodes_need_vectors(db: isolith.Client) -> None:
    with pytest.raises(ValueError, match="embedding not set"):
        IsolithVectorStore(db, "notes").add([TextNode(text="words")])


def test_an_index(db: isolith.Client) -> None:
    store = IsolithVectorStore(db, "notes")
    nodes = [TextNode(id_=it.id_, text=it.text, metadata=it.metadata) for it in NODES]
    context = StorageContext.from_defaults(vector_store=store)
    VectorStoreIndex(nodes, storage_context=context, embed_model=Letters())
    index = VectorStoreIndex.from_vector_store(store, embed_model=Letters())
    found = index.as_retriever(similarity_top_k=1).retrieve("The lazy dog sleeps.")
    assert [(it.node.node_id, it.node.get_content()) for it in found] == [("dog", NODES[1].text)]
    assert (found[0].score or 0) > 0.5
    hybrid = index.as_retriever(similarity_top_k=2, vector_store_query_mode="hybrid")
    assert hybrid.retrieve("The lazy dog sleeps.")[0].node.node_id == "dog"
    words = index.as_retriever(vector_store_query_mode="text_search")
    assert asyncio.run(words.aretrieve("tuesdays"))[0].node.node_id == "job"
    index.insert_nodes([TextNode(id_="new", text="Brand new words")])
    assert index.as_retriever(similarity_top_k=1).retrieve("brand new")[0].node.node_id == "new"
    index.delete_nodes(["new"])
    assert store.collection.count() == 4


def test_an_index_with_index_nodes(db: isolith.Client) -> None:
    store = IsolithVectorStore(db, "notes", built_in_model=True)
    nodes = [TextNode(id_="text", text="dogs"), IndexNode(id_="part", text="cats", index_id="x")]
    context = StorageContext.from_defaults(vector_store=store)
    VectorStoreIndex(nodes, storage_context=context, embed_model=MockEmbedding(1))
    index = VectorStoreIndex.from_vector_store(store, embed_model=MockEmbedding(1))
    found = index.as_retriever(similarity_top_k=2).retrieve("dogs")
    assert [it.node.node_id for it in found] == ["text", "part"]
    assert isinstance(found[1].node, IndexNode)


def test_an_index_with_the_built_in_model(db: isolith.Client) -> None:
    store = IsolithVectorStore(db, "notes", built_in_model=True)
    nodes = [TextNode(id_=it.id_, text=it.text, metadata=it.metadata) for it in NODES]
    context = StorageContext.from_defaults(vector_store=store)
    index = VectorStoreIndex(nodes, storage_context=context, embed_model=MockEmbedding(1))
    for mode in ("default", "hybrid", "mmr"):
        retriever = index.as_retriever(similarity_top_k=1, vector_store_query_mode=mode)
        assert retriever.retrieve("when do we deploy")[0].node.node_id == "job", mode
    assert asyncio.run(retriever.aretrieve("a lazy dog"))[0].node.node_id == "dog"
    assert store.collection.info().dimension == 256


@pytest.mark.parametrize("has_async_client", [False, True])
def test_asynchronous_methods(db: isolith.Client, store: Path, has_async_client: bool) -> None:
    async def run() -> None:
        client = isolith.aio.open(store) if has_async_client else None
        own = IsolithVectorStore(db, "notes", async_client=client)
        assert await own.async_add(NODES) == ["fox", "dog", "cat", "job"]
        assert (await own.aquery(near([0.0, 1.0, 0.0], k=2))).ids == ["dog", "cat"]
        assert [it.node_id for it in await own.aget_nodes(["cat"])] == ["cat"]
        await own.adelete("d1")
        await own.adelete_nodes(["job"], filters(("year", "==", 1)))
        await own.adelete_nodes(["cat"])
        assert [it.node_id for it in await own.aget_nodes()] == ["job"]
        await own.aclear()
        assert await own.aget_nodes() == []
        if client is not None:
            await client.close()

    asyncio.run(run())
