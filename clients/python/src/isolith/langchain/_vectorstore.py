"""Collections as LangChain's vector stores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Callable, TypeVar

from langchain_core.vectorstores import VectorStore

from .._operation import run
from .._ranking import relevance
from .._records import Records, run_either
from ._documents import document_of, records_of

if TYPE_CHECKING:
    from langchain_core.documents import Document
    from langchain_core.embeddings import Embeddings
    from typing_extensions import Self

    from .. import aio
    from .._call import Plan
    from .._records import Steps
    from ..api.collections import Collection, RecordHit
    from ..client import Client

T = TypeVar("T")


class IsolithVectorStore(VectorStore):
    """A collection as a vector store.

    With an ``embedding``, that embeds the texts. Without one, Isolith's built-in model embeds them
    on the server. A collection that does not exist is created by the first text; until then,
    searches find nothing.

    All searches take ``filter``, a condition on metadata such as ``{"year": {"$gte": 2024}}``, and
    ``where_document``, one on texts such as ``{"$contains": "word"}``, both in Chroma's syntax.
    They also take ``keywords``: then the ranking by vectors is fused with one by these words.
    ``keywords=True`` stands for the words of the query, and ``keywords=False`` turns ``hybrid``
    off.

    Scores are distances: smaller is nearer. Relevance scores are between 0 and 1: larger is better.

    Metadata can be nested. Filters see the values that are strings, numbers, booleans or lists of
    these.
    """

    def __init__(
        self,
        client: Client,
        collection_name: str,
        embedding: Embeddings | None = None,
        *,
        metric: str | None = None,
        hybrid: bool = False,
        relevance_score_fn: Callable[[float], float] | None = None,
        async_client: aio.Client | None = None,
    ) -> None:
        """Nothing is sent yet.

        :param client: a handle from :func:`isolith.open` or :func:`isolith.connect`, which has to
            stay open
        :param embedding: what embeds texts; by default the server does
        :param metric: ``cosine`` (the default), ``l2`` or ``dot``, for creating the collection
        :param hybrid: whether searches for a text also rank by its words
        :param relevance_score_fn: makes a relevance score of a distance; by default, that depends
            on the metric
        :param async_client: a handle from :mod:`isolith.aio` for the asynchronous methods; by
            default, they use ``client`` in a thread
        """
        self._client = client
        self._async_client = async_client
        self._embedding = embedding
        self._hybrid = hybrid
        self._relevance_score_fn = relevance_score_fn
        self._records = Records(collection_name, metric, is_built_in=embedding is None)

    @classmethod
    def from_texts(
        cls,
        texts: list[str],
        embedding: Embeddings | None = None,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        client: Client | None = None,
        collection_name: str = "langchain",
        **kwargs: Any,
    ) -> Self:
        """A store to which texts are added. ``kwargs`` are the options of the constructor.

        :raises ValueError: without a ``client``
        """
        store = cls(_needed(client), collection_name, embedding, **kwargs)
        store.add_texts(texts, metadatas, ids=ids)
        return store

    @classmethod
    async def afrom_texts(
        cls,
        texts: list[str],
        embedding: Embeddings | None = None,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        client: Client | None = None,
        collection_name: str = "langchain",
        **kwargs: Any,
    ) -> Self:
        """As ``from_texts``."""
        store = cls(_needed(client), collection_name, embedding, **kwargs)
        await store.aadd_texts(texts, metadatas, ids=ids)
        return store

    @property
    def embeddings(self) -> Embeddings | None:
        """What embeds texts; ``None`` if the server does."""
        return self._embedding

    @property
    def collection(self) -> Collection:
        """The collection, for what LangChain has no method for."""
        return self._client.collection(self._records.name)

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """Adds texts, or replaces those with the same ids. They are durable when it returns.

        :returns: the ids; texts without one get a random one
        :raises ValueError: if the lists differ in length
        """
        texts = list(texts)
        vectors = None
        if self._embedding is not None and texts:
            vectors = self._embedding.embed_documents(texts)
        return self._run(self._records.put(records_of(texts, vectors, metadatas, ids)))

    async def aadd_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """As ``add_texts``."""
        texts = list(texts)
        vectors = None
        if self._embedding is not None and texts:
            vectors = await self._embedding.aembed_documents(texts)
        return await self._arun(self._records.put(records_of(texts, vectors, metadatas, ids)))

    def delete(
        self,
        ids: list[str] | None = None,
        *,
        filter: Mapping[str, Any] | None = None,
        where_document: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> bool:
        """Deletes documents, by their ids or by filters; all documents if neither is given.

        Ids that do not exist are ignored.
        """
        self._run(self._records.remove(ids, filter, where_document))
        return True

    async def adelete(
        self,
        ids: list[str] | None = None,
        *,
        filter: Mapping[str, Any] | None = None,
        where_document: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> bool:
        """As ``delete``."""
        await self._arun(self._records.remove(ids, filter, where_document))
        return True

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """The documents with these ids, in this order. Those that do not exist are left out."""
        return [document_of(record) for record in self._run(self._records.fetch(ids))]

    async def aget_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """As ``get_by_ids``."""
        return [document_of(record) for record in await self._arun(self._records.fetch(ids))]

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        """The ``k`` documents that are most similar to a text."""
        return _documents(self._hits(self._question(query, self._embed(query), **kwargs), k))

    async def asimilarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        """As ``similarity_search``."""
        question = self._question(query, await self._aembed(query), **kwargs)
        return _documents(await self._ahits(question, k))

    def similarity_search_with_score(
        self, query: str, k: int = 4, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        """The ``k`` documents that are most similar to a text, with their distances."""
        return _distances(self._hits(self._question(query, self._embed(query), **kwargs), k))

    async def asimilarity_search_with_score(
        self, query: str, k: int = 4, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        """As ``similarity_search_with_score``."""
        question = self._question(query, await self._aembed(query), **kwargs)
        return _distances(await self._ahits(question, k))

    def similarity_search_by_vector(
        self, embedding: list[float], k: int = 4, **kwargs: Any
    ) -> list[Document]:
        """The ``k`` documents that are most similar to a vector."""
        return _documents(self._hits(_question(vector=embedding, **kwargs), k))

    async def asimilarity_search_by_vector(
        self, embedding: list[float], k: int = 4, **kwargs: Any
    ) -> list[Document]:
        """As ``similarity_search_by_vector``."""
        return _documents(await self._ahits(_question(vector=embedding, **kwargs), k))

    def similarity_search_with_score_by_vector(
        self, embedding: list[float], k: int = 4, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        """The ``k`` documents that are most similar to a vector, with their distances."""
        return _distances(self._hits(_question(vector=embedding, **kwargs), k))

    async def asimilarity_search_with_score_by_vector(
        self, embedding: list[float], k: int = 4, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        """As ``similarity_search_with_score_by_vector``."""
        return _distances(await self._ahits(_question(vector=embedding, **kwargs), k))

    def keyword_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        """The ``k`` documents that match the words of a text best, by BM25."""
        return _documents(self._hits(_question(keywords=query, **kwargs), k))

    async def akeyword_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        """As ``keyword_search``."""
        return _documents(await self._ahits(_question(keywords=query, **kwargs), k))

    def max_marginal_relevance_search(
        self,
        query: str,
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        **kwargs: Any,
    ) -> list[Document]:
        """Documents that are similar to a text, but not to each other.

        :param fetch_k: among how many of the most similar ones to choose
        :param lambda_mult: from 0 for the most diverse ones to 1 for the most similar ones
        """
        question = self._question(query, self._embed(query), **kwargs)
        plan = self._records.search_diverse(question, k, fetch_k, lambda_mult)
        return [document_of(hit) for hit, _ in self._run(plan)]

    async def amax_marginal_relevance_search(
        self,
        query: str,
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        **kwargs: Any,
    ) -> list[Document]:
        """As ``max_marginal_relevance_search``."""
        question = self._question(query, await self._aembed(query), **kwargs)
        plan = self._records.search_diverse(question, k, fetch_k, lambda_mult)
        return [document_of(hit) for hit, _ in await self._arun(plan)]

    def max_marginal_relevance_search_by_vector(
        self,
        embedding: list[float],
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        **kwargs: Any,
    ) -> list[Document]:
        """Documents that are similar to a vector, but not to each other."""
        question = _question(vector=embedding, **kwargs)
        plan = self._records.search_diverse(question, k, fetch_k, lambda_mult)
        return [document_of(hit) for hit, _ in self._run(plan)]

    async def amax_marginal_relevance_search_by_vector(
        self,
        embedding: list[float],
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        **kwargs: Any,
    ) -> list[Document]:
        """As ``max_marginal_relevance_search_by_vector``."""
        question = _question(vector=embedding, **kwargs)
        plan = self._records.search_diverse(question, k, fetch_k, lambda_mult)
        return [document_of(hit) for hit, _ in await self._arun(plan)]

    def _similarity_search_with_relevance_scores(
        self, query: str, k: int = 4, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        return self._run(self._relevant(self._question(query, self._embed(query), **kwargs), k))

    async def _asimilarity_search_with_relevance_scores(
        self, query: str, k: int = 4, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        question = self._question(query, await self._aembed(query), **kwargs)
        return await self._arun(self._relevant(question, k))

    def _relevant(self, question: Mapping[str, Any], k: int) -> Steps[list[tuple[Document, float]]]:
        hits = yield from self._records.search(question, k)
        found = []
        for hit in hits:
            if hit.fused is not None:
                score = hit.fused
            elif self._relevance_score_fn is not None:
                score = self._relevance_score_fn(hit.distance or 0.0)
            else:
                metric = yield from self._records.its_metric()
                score = relevance(metric, hit.distance or 0.0)
            found.append((document_of(hit), score))
        return found

    def _question(
        self,
        query: str,
        vector: Sequence[float] | None,
        *,
        keywords: str | bool | None = None,
        **kwargs: Any,
    ) -> dict[str, Any]:
        """The question for a text, which the server embeds if there is no vector for it."""
        if keywords is None:
            keywords = self._hybrid
        words = (query if keywords else "") if isinstance(keywords, bool) else keywords
        text = query if vector is None else None
        return _question(text=text, vector=vector, keywords=words, **kwargs)

    def _embed(self, query: str) -> list[float] | None:
        return None if self._embedding is None else self._embedding.embed_query(query)

    async def _aembed(self, query: str) -> list[float] | None:
        return None if self._embedding is None else await self._embedding.aembed_query(query)

    def _hits(self, question: Mapping[str, Any], k: int) -> list[RecordHit]:
        return self._run(self._records.search(question, k))

    async def _ahits(self, question: Mapping[str, Any], k: int) -> list[RecordHit]:
        return await self._arun(self._records.search(question, k))

    def _run(self, plan: Plan[T]) -> T:
        return run(self._client, plan)

    async def _arun(self, plan: Plan[T]) -> T:
        return await run_either(self._client, self._async_client, plan)


def _question(
    *,
    text: str | None = None,
    vector: Sequence[float] | None = None,
    keywords: str | None = None,
    filter: Mapping[str, Any] | None = None,
    where_document: Mapping[str, Any] | None = None,
    **unknown: Any,
) -> dict[str, Any]:
    """The arguments of a query. Blank keywords are none.

    :raises TypeError: for options that searches do not have: ignoring one could widen a search
    """
    if unknown:
        raise TypeError(f"searches have no option {min(unknown)!r}")
    return {
        "text": text,
        "vector": vector,
        "keywords": keywords if keywords and keywords.strip() else None,
        "where": filter or None,
        "where_document": where_document or None,
    }


def _documents(hits: Iterable[RecordHit]) -> list[Document]:
    return [document_of(hit) for hit in hits]


def _distances(hits: Iterable[RecordHit]) -> list[tuple[Document, float]]:
    return [(document_of(hit), hit.distance or 0.0) for hit in hits]


def _needed(client: Client | None) -> Client:
    if client is None:
        raise ValueError("pass client=isolith.open(…)")
    return client
