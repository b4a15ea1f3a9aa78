"""The vector store and the retriever for LangChain, beyond LangChain's own tests."""

from __future__ import annotations

import asyncio
import math
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langchain_core", reason="langchain-core is not installed")

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.indexing import InMemoryRecordManager, index
from pydantic import ValidationError

import isolith
from isolith.langchain import IsolithRetriever, IsolithVectorStore

TEXTS = [
    "The quick brown fox jumps over the fence.",
    "The lazy dog sleeps in the sun.",
    "Cats sleep most of the day.",
    "Deploys go out on Tuesdays.",
]
METADATA = [
    {"kind": "animal", "year": 2021},
    {"kind": "animal", "year": 2022, "tags": ["lazy", "warm"]},
    {"kind": "animal", "year": 2023},
    {"kind": "work", "year": 2024, "owner": {"name": "Ada", "team": ["a", ["b"]]}},
]
IDS = ["fox", "dog", "cat", "deploy"]


class Letters(Embeddings):
    """Counts letters: deterministic, and similar for similar texts."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        counts = [float(text.lower().count(letter)) for letter in "abcdefghijklmnopqrstuvwxyz"]
        return [*counts, 0.1]


@pytest.fixture(params=["embedding", "built in"])
def notes(request: pytest.FixtureRequest, db: isolith.Client) -> IsolithVectorStore:
    embedding = Letters() if request.param == "embedding" else None
    return IsolithVectorStore.from_texts(
        TEXTS, embedding, METADATA, ids=IDS, client=db, collection_name="notes"
    )


def ids(documents: list[Document]) -> list[str | None]:
    return [document.id for document in documents]


def test_documents_are_returned_as_they_were_added(notes: IsolithVectorStore) -> None:
    found = notes.get_by_ids(["deploy", "missing", "dog"])
    assert found == [
        Document(id="deploy", page_content=TEXTS[3], metadata=METADATA[3]),
        Document(id="dog", page_content=TEXTS[1], metadata=METADATA[1]),
    ]


def test_metadata_of_any_shape_is_kept(notes: IsolithVectorStore) -> None:
    metadata: dict[str, Any] = {"none": None, "big": 2**80, "deep": {"a": [[1], {}]}, "empty": []}
    (id,) = notes.add_texts(["some words"], [metadata])
    assert notes.get_by_ids([id])[0].metadata == metadata


def test_the_last_text_with_an_id_counts(notes: IsolithVectorStore) -> None:
    assert notes.add_texts(["one", "two"], ids=["same", "same"]) == ["same", "same"]
    assert notes.get_by_ids(["same"])[0].page_content == "two"


def test_lists_of_different_lengths_are_refused(notes: IsolithVectorStore) -> None:
    with pytest.raises(ValueError, match="there are 2 texts, but 1 metadatas"):
        notes.add_texts(["one", "two"], [{}])
    with pytest.raises(ValueError, match="there are 1 texts, but 2 ids"):
        notes.add_texts(["one"], ids=["a", "b"])
    assert notes.collection.count() == 4


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ({"kind": "work"}, {"deploy"}),
        ({"year": {"$gte": 2022}, "kind": "animal"}, {"dog", "cat"}),
        ({"tags": {"$contains": "warm"}}, {"dog"}),
        ({"$or": [{"year": 2021}, {"year": {"$in": [2023]}}]}, {"fox", "cat"}),
        ({"kind": {"$ne": "animal"}}, {"deploy"}),
        ({}, set(IDS)),
    ],
)
def test_filters(notes: IsolithVectorStore, condition: dict[str, Any], expected: set[str]) -> None:
    assert set(ids(notes.similarity_search("sleep", k=10, filter=condition))) == expected
    assert set(ids(notes.as_retriever(search_kwargs={"filter": condition}).invoke("a"))) == expected


def test_filters_on_texts(notes: IsolithVectorStore) -> None:
    found = notes.similarity_search("sleep", where_document={"$contains": "sleep"})
    assert set(ids(found)) == {"dog", "cat"}


def test_misspelled_options_are_refused(notes: IsolithVectorStore) -> None:
    with pytest.raises(TypeError, match="searches have no option 'filters'"):
        notes.similarity_search("sleep", filters={"kind": "work"})


def test_scores_are_distances(notes: IsolithVectorStore) -> None:
    found = notes.similarity_search_with_score(TEXTS[1], k=4)
    scores = [score for _, score in found]
    assert found[0][0].id == "dog"
    assert scores == sorted(scores)
    assert scores[0] == pytest.approx(0.0, abs=1e-5)


def test_relevance_scores_and_thresholds(notes: IsolithVectorStore) -> None:
    found = notes.similarity_search_with_relevance_scores(TEXTS[1], k=4)
    scores = [score for _, score in found]
    assert scores == sorted(scores, reverse=True)
    assert scores[0] == pytest.approx(1.0, abs=1e-5)
    assert all(0.0 <= score <= 1.0 for score in scores)
    retriever = notes.as_retriever(
        search_type="similarity_score_threshold", search_kwargs={"score_threshold": 0.999}
    )
    assert ids(retriever.invoke(TEXTS[1])) == ["dog"]


@pytest.mark.parametrize("metric", ["cosine", "l2", "dot"])
def test_relevance_depends_on_the_metric(db: isolith.Client, metric: str) -> None:
    store = IsolithVectorStore(db, metric, metric=metric)
    store.add_texts(TEXTS, ids=IDS)
    assert store.collection.info().metric == metric
    found = store.similarity_search_with_relevance_scores(TEXTS[0], k=4)
    assert found[0][0].id == "fox"
    assert found[0][1] == pytest.approx(1.0, abs=1e-4)
    own = IsolithVectorStore(db, metric, relevance_score_fn=lambda distance: 0.25)
    assert own.similarity_search_with_relevance_scores(TEXTS[0], k=1)[0][1] == 0.25


def test_keywords(notes: IsolithVectorStore) -> None:
    assert ids(notes.keyword_search("tuesdays")) == ["deploy"]
    assert notes.keyword_search("zebra") == []
    found = notes.similarity_search_with_relevance_scores(TEXTS[1], k=4, keywords="tuesdays")
    # Each of them is first in one of the two rankings.
    assert {document.id for document, _ in found[:2]} == {"dog", "deploy"}
    hybrid = IsolithVectorStore(notes._client, "notes", notes.embeddings, hybrid=True)
    (best, score), *_ = hybrid.similarity_search_with_relevance_scores(TEXTS[1])
    assert (best.id, score) == ("dog", 1.0)
    # Without words there is no ranking by words.
    assert ids(hybrid.similarity_search(TEXTS[1], k=1, keywords=" ")) == ["dog"]
    assert ids(hybrid.similarity_search(TEXTS[1], k=1, keywords=False)) == ["dog"]


def test_vectors(db: isolith.Client) -> None:
    store = IsolithVectorStore.from_documents(
        [Document(id=id, page_content=text) for id, text in zip(IDS, TEXTS)],
        Letters(),
        client=db,
        collection_name="notes",
    )
    vector = Letters().embed_query(TEXTS[2])
    assert ids(store.similarity_search_by_vector(vector, k=1)) == ["cat"]
    ((document, score),) = store.similarity_search_with_score_by_vector(vector, k=1)
    assert document.id == "cat"
    assert score == pytest.approx(0.0, abs=1e-5)
    assert ids(store.similarity_search_by_vector(vector, k=1, keywords="tuesdays")) != []
    assert store.similarity_search_by_vector(vector, k=0) == []


def test_maximal_marginal_relevance_agrees_with_langchain(db: isolith.Client) -> None:
    numpy = pytest.importorskip("numpy")
    from langchain_core.vectorstores.utils import maximal_marginal_relevance

    texts = [f"{'ab' * (n % 5)}{'cde' * (n % 7)}{'xyz' * (n % 3)}q" for n in range(30)]
    store = IsolithVectorStore(db, "notes", Letters())
    store.add_texts(texts, ids=[str(n) for n in range(30)])
    query = Letters().embed_query("abcdexyz")
    near = store.similarity_search_by_vector(query, k=20)
    vectors = Letters().embed_documents([document.page_content for document in near])
    for weight in (0.0, 0.3, 0.5, 1.0):
        expected = maximal_marginal_relevance(numpy.array(query), vectors, weight, k=6)
        found = store.max_marginal_relevance_search("abcdexyz", 6, lambda_mult=weight)
        by_vector = store.max_marginal_relevance_search_by_vector(query, 6, lambda_mult=weight)
        assert ids(found) == ids(by_vector)
        assert len(set(ids(found))) == 6
        if weight > 0.0:
            chosen = [near[at].page_content for at in expected]
            assert [document.page_content for document in found] == chosen


def test_diverse_results(notes: IsolithVectorStore) -> None:
    notes.add_texts([TEXTS[1]] * 3, ids=["dog 2", "dog 3", "dog 4"])
    near = ids(notes.similarity_search(TEXTS[1], k=4))
    assert set(near) == {"dog", "dog 2", "dog 3", "dog 4"}
    diverse = ids(notes.max_marginal_relevance_search(TEXTS[1], k=3, lambda_mult=0.3))
    assert len({"dog", "dog 2", "dog 3", "dog 4"}.intersection(diverse)) == 1
    options = {"k": 2, "fetch_k": 4, "lambda_mult": 1.0}
    retriever = notes.as_retriever(search_type="mmr", search_kwargs=options)
    assert len(retriever.invoke(TEXTS[1])) == 2
    assert notes.max_marginal_relevance_search(TEXTS[1], k=0) == []


def test_deleting(notes: IsolithVectorStore) -> None:
    assert notes.delete(["fox", "missing"])
    assert notes.delete([])
    assert notes.collection.count() == 3
    assert notes.delete(filter={"year": {"$lt": 2023}})
    assert notes.delete(where_document={"$contains": "Cats"})
    assert ids(notes.similarity_search("sleep")) == ["deploy"]
    with pytest.raises(ValueError, match="either ids or filters"):
        notes.delete(["deploy"], filter={"kind": "work"})
    assert notes.delete()
    assert notes.collection.count() == 0
    assert notes.similarity_search("sleep") == []


def test_a_collection_that_does_not_exist_is_empty(db: isolith.Client) -> None:
    store = IsolithVectorStore(db, "notes", Letters())
    assert store.similarity_search("sleep") == []
    assert store.keyword_search("sleep") == []
    assert store.max_marginal_relevance_search("sleep") == []
    assert store.similarity_search_with_relevance_scores("sleep") == []
    assert store.get_by_ids(["fox"]) == []
    assert store.delete(["fox"])
    assert store.delete()
    assert store.add_texts([]) == []
    assert db.collections() == []


def test_a_collection_never_mixes_models(notes: IsolithVectorStore) -> None:
    other = None if notes.embeddings else Letters()
    with pytest.raises((isolith.ModelMismatch, isolith.ModelUnavailable)):
        IsolithVectorStore(notes._client, "notes", other).add_texts(["some words"])
    assert notes.collection.count() == 4


def test_a_client_is_needed() -> None:
    with pytest.raises(ValueError, match=r"client=isolith\.open"):
        IsolithVectorStore.from_texts(TEXTS, Letters())


def test_indexing_twice_changes_nothing(db: isolith.Client) -> None:
    store = IsolithVectorStore(db, "notes", Letters())
    manager = InMemoryRecordManager("notes")
    manager.create_schema()
    documents = [Document(page_content=text, metadata={"source": text}) for text in TEXTS]

    def run(documents: list[Document]) -> list[int]:
        done = index(
            documents,
            manager,
            store,
            cleanup="full",
            source_id_key="source",
            key_encoder="sha256",
        )
        return [done["num_added"], done["num_skipped"], done["num_deleted"]]

    assert run(documents) == [4, 0, 0]
    assert run(documents) == [0, 4, 0]
    assert run(documents[1:]) == [0, 3, 1]
    assert store.collection.count() == 3


def test_the_retriever(notes: IsolithVectorStore) -> None:
    retriever = IsolithRetriever(vectorstore=notes, k=1)
    assert ids(retriever.invoke(TEXTS[2])) == ["cat"]
    assert ids(retriever.invoke("tuesdays", mode="keywords")) == ["deploy"]
    assert ids(retriever.invoke(TEXTS[2], filter={"kind": "work"})) == ["deploy"]
    assert len(retriever.invoke(TEXTS[2], k=3, mode="vector")) == 3
    assert ids(asyncio.run(retriever.ainvoke("tuesdays", mode="keywords"))) == ["deploy"]
    filtered = IsolithRetriever(vectorstore=notes, where_document={"$contains": "fox"})
    assert ids(filtered.invoke(TEXTS[2])) == ["fox"]
    assert ids(filtered.batch(["fox", "dog"])[1]) == ["fox"]


def test_invalid_modes_are_refused(notes: IsolithVectorStore) -> None:
    with pytest.raises(ValidationError):
        IsolithRetriever(vectorstore=notes, mode="magic")
    with pytest.raises(ValueError, match="mode must be hybrid, vector or keywords"):
        IsolithRetriever(vectorstore=notes).invoke("fox", mode="magic")


@pytest.mark.parametrize("has_async_client", [False, True])
@pytest.mark.parametrize("is_embedded_here", [False, True])
async def test_asynchronous_methods_do_the_same(
    db: isolith.Client, store: Path, is_embedded_here: bool, has_async_client: bool
) -> None:
    embedding = Letters() if is_embedded_here else None
    client = isolith.aio.open(store) if has_async_client else None
    notes = await IsolithVectorStore.afrom_texts(
        TEXTS,
        embedding,
        METADATA,
        ids=IDS,
        client=db,
        collection_name="notes",
        async_client=client,
        metric="cosine",
    )
    query = TEXTS[1]
    assert await notes.asimilarity_search(query) == notes.similarity_search(query)
    assert await notes.asimilarity_search_with_score(
        query, keywords=True
    ) == notes.similarity_search_with_score(query, keywords=True)
    assert await notes.asimilarity_search_with_relevance_scores(
        query
    ) == notes.similarity_search_with_relevance_scores(query)
    assert await notes.amax_marginal_relevance_search(
        query, k=2
    ) == notes.max_marginal_relevance_search(query, k=2)
    vector = list(notes.collection.get_one("dog").vector)
    assert await notes.asimilarity_search_by_vector(vector) == notes.similarity_search(query)
    scored = await notes.asimilarity_search_with_score_by_vector(vector, k=1)
    assert math.isclose(scored[0][1], 0.0, abs_tol=1e-5)
    assert len(await notes.amax_marginal_relevance_search_by_vector(vector, k=2)) == 2
    assert ids(await notes.akeyword_search("tuesdays")) == ["deploy"]
    assert ids(await notes.aget_by_ids(["cat"])) == ["cat"]
    assert await notes.adelete(["cat"])
    assert await notes.adelete(filter={"kind": "work"})
    assert ids(await notes.asimilarity_search(query)) == ids(notes.similarity_search(query))
    assert notes.collection.count() == 2
    if client is not None:
        await client.close()
