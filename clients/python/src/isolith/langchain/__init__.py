"""Isolith for LangChain: a vector store and a retriever.

They need ``langchain-core``: ``pip install isolith[langchain]``. ::

    import isolith
    from isolith.langchain import IsolithVectorStore

    store = IsolithVectorStore(isolith.open("notes.isolith"), "notes")
    store.add_texts(["The lazy dog sleeps.", "Deploys go out on Tuesdays."])
    print(store.similarity_search("when do we ship", k=1))
"""

from __future__ import annotations

try:
    import langchain_core as _framework
except ImportError as _error:
    raise ImportError(
        "isolith.langchain needs langchain-core: pip install isolith[langchain]"
    ) from _error

from ._retriever import IsolithRetriever
from ._vectorstore import IsolithVectorStore

__all__ = ["IsolithRetriever", "IsolithVectorStore"]

del _framework
