"""LangChain's own tests for vector stores and retrievers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langchain_tests", reason="langchain-tests is not installed")

from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import VectorStore
from langchain_tests.integration_tests import (
    RetrieversIntegrationTests,
    VectorStoreIntegrationTests,
)

import isolith
from isolith.langchain import IsolithRetriever, IsolithVectorStore


class TestVectorStore(VectorStoreIntegrationTests):
    """Embeddings of the caller; asynchronous methods use a thread."""

    @pytest.fixture
    def vectorstore(self, db: isolith.Client) -> Iterator[VectorStore]:
        yield IsolithVectorStore(db, "standard", self.get_embeddings())


class TestHybridVectorStore(VectorStoreIntegrationTests):
    """Rankings by vectors and words; the collection is created with a metric."""

    @pytest.fixture
    def vectorstore(self, db: isolith.Client) -> Iterator[VectorStore]:
        yield IsolithVectorStore(db, "hybrid", self.get_embeddings(), metric="l2", hybrid=True)


class TestBuiltInVectorStore(VectorStoreIntegrationTests):
    """The server embeds."""

    @pytest.fixture
    def vectorstore(self, db: isolith.Client) -> Iterator[VectorStore]:
        yield IsolithVectorStore(db, "built in")


class TestAsyncVectorStore(VectorStoreIntegrationTests):
    """Asynchronous methods use a handle of asyncio."""

    @pytest.fixture
    def vectorstore(
        self, db: isolith.Client, store: Path, loop: asyncio.AbstractEventLoop
    ) -> Iterator[VectorStore]:
        client = isolith.aio.open(store)
        yield IsolithVectorStore(db, "async", self.get_embeddings(), async_client=client)
        loop.run_until_complete(client.close())


TEXTS = [
    "The quick brown fox jumps over the fence.",
    "The lazy dog sleeps in the sun.",
    "Cats sleep most of the day.",
    "Deploys go out on Tuesdays.",
]


class TestRetriever(RetrieversIntegrationTests):
    mode = "hybrid"

    @pytest.fixture(autouse=True)
    def _filled(self, db: isolith.Client) -> None:
        embedding = DeterministicFakeEmbedding(size=6)
        self.vectorstore = IsolithVectorStore.from_texts(
            TEXTS, embedding, client=db, collection_name="retriever"
        )

    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return IsolithRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"vectorstore": self.vectorstore, "mode": self.mode}

    @property
    def retriever_query_example(self) -> str:
        return "the fox, the dog or the cats of the day"


class TestVectorRetriever(TestRetriever):
    mode = "vector"


class TestKeywordRetriever(TestRetriever):
    mode = "keywords"
