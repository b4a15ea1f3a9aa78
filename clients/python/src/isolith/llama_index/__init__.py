"""Isolith for LlamaIndex: a vector store and a property graph store.

They need ``llama-index-core``: ``pip install isolith[llama-index]``. ::

    import isolith
    from isolith.llama_index import IsolithVectorStore
    from llama_index.core import StorageContext, VectorStoreIndex

    store = IsolithVectorStore(isolith.open("notes.isolith"), "notes")
    context = StorageContext.from_defaults(vector_store=store)
    index = VectorStoreIndex.from_documents(documents, storage_context=context)
"""

from __future__ import annotations

try:
    import llama_index.core as _framework
except ImportError as _error:
    raise ImportError(
        "isolith.llama_index needs llama-index-core: pip install isolith[llama-index]"
    ) from _error

from ._graph import IsolithPropertyGraphStore
from ._vectorstore import IsolithVectorStore

__all__ = ["IsolithPropertyGraphStore", "IsolithVectorStore"]

del _framework
