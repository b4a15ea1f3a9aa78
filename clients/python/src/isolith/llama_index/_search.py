"""LlamaIndex's vector store queries as searches of a collection."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llama_index.core.vector_stores.types import VectorStoreQuery, VectorStoreQueryMode

from .._ranking import similarity
from .._records import Records, Steps
from ..api.collections import RecordHit

_BY_WORDS = (VectorStoreQueryMode.SPARSE, VectorStoreQueryMode.TEXT_SEARCH)

# The default of LlamaIndex for maximal marginal relevance.
_MMR_THRESHOLD = 0.5
_MMR_FACTOR = 4


def search(
    records: Records,
    query: VectorStoreQuery,
    where: Mapping[str, Any] | None,
    *,
    is_built_in: bool = False,
    candidates: int | None = None,
) -> Steps[list[tuple[RecordHit, float]]]:
    """The hits of a query with their similarities: larger is better.

    :param is_built_in: whether the server embeds the query's text
    :param candidates: among how many hits maximal marginal relevance chooses
    :raises ValueError: if the query lacks something, or has a mode that collections do not have
    """
    k, mode = query.similarity_top_k, _mode_of(query)
    if mode in _BY_WORDS:
        hits = yield from records.search({"keywords": _text_of(query), "where": where}, k)
        return [(hit, hit.score or 0.0) for hit in hits]
    question: dict[str, Any] = {"where": where}
    if is_built_in:
        question["text"] = _text_of(query)
    elif query.query_embedding is not None:
        question["vector"] = query.query_embedding
    else:
        raise ValueError("the query has no embedding")
    if mode == VectorStoreQueryMode.MMR:
        weight = _MMR_THRESHOLD if query.mmr_threshold is None else query.mmr_threshold
        among = _MMR_FACTOR * k if candidates is None else candidates
        return (yield from records.search_diverse(question, k, among, weight))
    if mode == VectorStoreQueryMode.HYBRID:
        question["keywords"] = _text_of(query)
        limit = k if query.hybrid_top_k is None else query.hybrid_top_k
        hits = yield from records.search(question, limit)
        return [(hit, hit.fused or 0.0) for hit in hits]
    hits = yield from records.search(question, k)
    if not hits:
        return []
    metric = yield from records.its_metric()
    return [(hit, similarity(metric, hit.distance or 0.0)) for hit in hits]


def _mode_of(query: VectorStoreQuery) -> VectorStoreQueryMode:
    """The mode; that of a hybrid query depends on the weight of its two rankings."""
    mode, alpha = VectorStoreQueryMode(query.mode), query.alpha
    if mode == VectorStoreQueryMode.HYBRID and alpha not in (None, 0.5):
        if alpha == 0:
            return VectorStoreQueryMode.TEXT_SEARCH
        if alpha == 1:
            return VectorStoreQueryMode.DEFAULT
        raise ValueError(f"alpha must be 0, 0.5 or 1, not {alpha}: rankings have equal weights")
    supported = (
        VectorStoreQueryMode.DEFAULT,
        VectorStoreQueryMode.HYBRID,
        VectorStoreQueryMode.MMR,
        *_BY_WORDS,
    )
    if mode not in supported:
        raise ValueError(f"a collection has no query mode {mode.value!r}")
    return mode


def _text_of(query: VectorStoreQuery) -> str:
    if not query.query_str:
        raise ValueError("the query has no text (query_str)")
    return query.query_str
