"""Collections as LlamaIndex's vector stores."""

# Without postponed annotations: the fields of the model are evaluated on every version of Python.
from collections.abc import Sequence
from typing import Any, Optional, TypeVar

from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.schema import BaseNode
from llama_index.core.vector_stores.types import (
    BasePydanticVectorStore,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryResult,
)

from .. import aio
from .._call import Plan
from .._operation import run
from .._records import Records, Steps, run_either
from ..api.collections import Collection
from ..client import Client
from ._filters import all_of, where_of
from ._nodes import DOCUMENT_ID, NODE_ID, node_of, record_of
from ._search import search

T = TypeVar("T")


class IsolithVectorStore(BasePydanticVectorStore):
    """A collection as a vector store. It is created by the first node; until then, it is empty.

    With ``built_in_model``, Isolith's built-in model embeds nodes and queries on the server, and
    embeddings that LlamaIndex computes are ignored: give the index a ``MockEmbedding(1)``.

    Queries can have the modes ``default``, ``sparse`` and ``text_search`` (by keywords), ``hybrid``
    (both rankings fused, with equal weights: ``alpha`` is 0, 0.5 or 1) and ``mmr``. Of filters,
    ``is_empty`` is not supported, and the ``text_match`` ones only for the key ``text``, which is
    the text of nodes.
    """

    stores_text: bool = True
    collection_name: str
    built_in_model: bool = False
    metric: Optional[str] = None

    _client: Client = PrivateAttr()
    _async_client: Optional[aio.Client] = PrivateAttr()
    _records: Records = PrivateAttr()

    def __init__(
        self,
        client: Client,
        collection_name: str = "llama_index",
        *,
        built_in_model: bool = False,
        metric: Optional[str] = None,
        async_client: Optional[aio.Client] = None,
    ) -> None:
        """Nothing is sent yet.

        :param client: a handle from :func:`isolith.open` or :func:`isolith.connect`, which has to
            stay open
        :param built_in_model: whether nodes and queries are embedded on the server
        :param metric: ``cosine`` (the default), ``l2`` or ``dot``, for creating the collection
        :param async_client: a handle from :mod:`isolith.aio` for the asynchronous methods; by
            default, they use ``client`` in a thread
        """
        fields: dict[str, Any] = {
            "collection_name": collection_name,
            "built_in_model": built_in_model,
            "metric": metric,
            "is_embedding_query": not built_in_model,
        }
        super().__init__(**fields)
        self._client = client
        self._async_client = async_client
        self._records = Records(collection_name, metric, built_in_model)

    @classmethod
    def class_name(cls) -> str:
        """The name of the class, for serialization."""
        return "IsolithVectorStore"

    @property
    def client(self) -> Client:
        """The handle."""
        return self._client

    @property
    def collection(self) -> Collection:
        """The collection, for what LlamaIndex has no method for."""
        return self._client.collection(self.collection_name)

    def add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        """Adds nodes, or replaces those with the same ids. They are durable when it returns.

        :raises ValueError: if a node has no embedding, and the server does not embed
        """
        return self._run(self._add(nodes))

    async def async_add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        """As ``add``."""
        return await self._arun(self._add(nodes))

    def delete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        """Deletes the nodes of a document."""
        self._run(self._records.remove(None, {DOCUMENT_ID: ref_doc_id}))

    async def adelete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        """As ``delete``."""
        await self._arun(self._records.remove(None, {DOCUMENT_ID: ref_doc_id}))

    def delete_nodes(
        self,
        node_ids: Optional[list[str]] = None,
        filters: Optional[MetadataFilters] = None,
        **delete_kwargs: Any,
    ) -> None:
        """Deletes nodes, by their ids, by filters, or by both.

        :raises ValueError: if neither is given; ``clear`` deletes all nodes
        """
        self._run(self._delete_nodes(node_ids, filters))

    async def adelete_nodes(
        self,
        node_ids: Optional[list[str]] = None,
        filters: Optional[MetadataFilters] = None,
        **delete_kwargs: Any,
    ) -> None:
        """As ``delete_nodes``."""
        await self._arun(self._delete_nodes(node_ids, filters))

    def clear(self) -> None:
        """Deletes all records of the collection."""
        self._run(self._records.remove(None))

    async def aclear(self) -> None:
        """As ``clear``."""
        await self._arun(self._records.remove(None))

    def get_nodes(
        self,
        node_ids: Optional[list[str]] = None,
        filters: Optional[MetadataFilters] = None,
    ) -> list[BaseNode]:
        """The nodes with these ids, in this order, or those that match filters; by default all."""
        return self._run(self._get_nodes(node_ids, filters))

    async def aget_nodes(
        self,
        node_ids: Optional[list[str]] = None,
        filters: Optional[MetadataFilters] = None,
    ) -> list[BaseNode]:
        """As ``get_nodes``."""
        return await self._arun(self._get_nodes(node_ids, filters))

    def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """The nodes that match a query best, with their similarities: larger is better.

        These are the cosine or the inner product, 1 / (1 + distance) for ``l2``, BM25 for keywords,
        and between 0 and 1 for both rankings together. A query without an embedding and text
        returns nodes that match its filters, without similarities.

        :param mmr_prefetch_k: among how many nodes the mode ``mmr`` chooses, by default 4 times
            ``similarity_top_k``
        :raises ValueError: if the query has a mode or a filter that is not supported
        """
        return self._run(self._query(query, kwargs.get("mmr_prefetch_k")))

    async def aquery(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """As ``query``."""
        return await self._arun(self._query(query, kwargs.get("mmr_prefetch_k")))

    def _add(self, nodes: Sequence[BaseNode]) -> Steps[list[str]]:
        return self._records.put([record_of(node, not self.built_in_model) for node in nodes])

    def _delete_nodes(
        self, node_ids: Optional[list[str]], filters: Optional[MetadataFilters]
    ) -> Steps[None]:
        where = where_of(filters)
        if node_ids is None and where is None:
            raise ValueError("pass node_ids or filters; clear() deletes all nodes")
        if where is None:
            return self._records.remove(node_ids)
        return self._records.remove(None, all_of(_in(NODE_ID, node_ids), where))

    def _get_nodes(
        self, node_ids: Optional[list[str]], filters: Optional[MetadataFilters]
    ) -> Steps[list[BaseNode]]:
        where = where_of(filters)
        if node_ids is not None and where is None:
            records = yield from self._records.fetch(node_ids)
        else:
            records = yield from self._records.select(all_of(_in(NODE_ID, node_ids), where))
        return [node_of(record) for record in records]

    def _query(
        self, query: VectorStoreQuery, candidates: Optional[int]
    ) -> Steps[VectorStoreQueryResult]:
        where = all_of(
            where_of(query.filters),
            # An index whose nodes are all in this store passes an empty list.
            _in(NODE_ID, query.node_ids or None),
            _in(DOCUMENT_ID, query.doc_ids or None),
        )
        if where is not None and query.query_embedding is None and not query.query_str:
            found = yield from self._records.select(where, limit=query.similarity_top_k)
            nodes = [node_of(record) for record in found]
            return VectorStoreQueryResult(nodes=nodes, ids=[record.id for record in found])
        hits = yield from search(
            self._records,
            query,
            where,
            is_built_in=self.built_in_model,
            candidates=candidates,
        )
        return VectorStoreQueryResult(
            nodes=[node_of(hit) for hit, _ in hits],
            similarities=[score for _, score in hits],
            ids=[hit.id for hit, _ in hits],
        )

    def _run(self, plan: Plan[T]) -> T:
        return run(self._client, plan)

    async def _arun(self, plan: Plan[T]) -> T:
        return await run_either(self._client, self._async_client, plan)


def _in(key: str, values: Optional[list[str]]) -> Optional[dict[str, Any]]:
    return None if values is None else {key: {"$in": values}}
