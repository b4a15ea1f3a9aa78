"""Hybrid search in a collection as LangChain's retriever."""

# Without postponed annotations: the fields of the model are evaluated on every version of Python.
from typing import Any, Optional

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import Field

from ._vectorstore import IsolithVectorStore


class IsolithRetriever(BaseRetriever):
    """Retrieves documents of a collection: by vectors, by keywords, or by both.

    ``k``, ``mode``, ``filter`` and ``where_document`` can also be passed to ``invoke``. For other
    kinds of search, use the store's ``as_retriever``.
    """

    vectorstore: IsolithVectorStore
    """The collection."""

    k: int = Field(default=4, ge=1)
    """The maximum number of documents."""

    mode: str = Field(default="hybrid", pattern="^(hybrid|vector|keywords)$")
    """``hybrid``, ``vector`` or ``keywords``."""

    filter: Optional[dict[str, Any]] = None
    """A condition on metadata, such as ``{"year": {"$gte": 2024}}``."""

    where_document: Optional[dict[str, Any]] = None
    """A condition on texts, such as ``{"$contains": "word"}``."""

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **kwargs: Any
    ) -> list[Document]:
        mode, options = self._options(kwargs)
        if mode == "keywords":
            return self.vectorstore.keyword_search(query, **options)
        return self.vectorstore.similarity_search(query, keywords=mode == "hybrid", **options)

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **kwargs: Any
    ) -> list[Document]:
        mode, options = self._options(kwargs)
        if mode == "keywords":
            return await self.vectorstore.akeyword_search(query, **options)
        return await self.vectorstore.asimilarity_search(
            query, keywords=mode == "hybrid", **options
        )

    def _options(self, given: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        options = {"k": self.k, "filter": self.filter, "where_document": self.where_document}
        mode = given.pop("mode", self.mode)
        if mode not in ("hybrid", "vector", "keywords"):
            raise ValueError(f"mode must be hybrid, vector or keywords, not {mode!r}")
        return mode, {**options, **given}
