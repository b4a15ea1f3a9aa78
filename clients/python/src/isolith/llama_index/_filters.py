"""LlamaIndex's metadata filters as filters of collections. Values in, values out."""

from __future__ import annotations

import re
from typing import Any

from llama_index.core.vector_stores.types import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
)

_OPERATORS = {
    FilterOperator.EQ: "$eq",
    FilterOperator.NE: "$ne",
    FilterOperator.GT: "$gt",
    FilterOperator.GTE: "$gte",
    FilterOperator.LT: "$lt",
    FilterOperator.LTE: "$lte",
    FilterOperator.CONTAINS: "$contains",
}
_OF_LISTS = {FilterOperator.IN: "$in", FilterOperator.NIN: "$nin"}
_OF_ELEMENTS = {FilterOperator.ANY: "$or", FilterOperator.ALL: "$and"}
_OF_TEXT = (FilterOperator.TEXT_MATCH, FilterOperator.TEXT_MATCH_INSENSITIVE)

# The keys that stand for the text of a node, as opposed to its metadata.
_TEXT_KEYS = ("text", "document")


def where_of(filters: MetadataFilters | None) -> dict[str, Any] | None:
    """The filter of a collection; ``None`` if everything matches.

    :raises ValueError: if a collection has no such filter
    """
    if filters is None or not filters.filters:
        return None
    each = [_one(it) if isinstance(it, MetadataFilter) else where_of(it) for it in filters.filters]
    conditions = [condition for condition in each if condition is not None]
    if not conditions:
        return None
    if filters.condition == FilterCondition.OR:
        return _combined("$or", conditions)
    if filters.condition == FilterCondition.NOT:
        return {"$not": _combined("$or", conditions)}
    return _combined("$and", conditions)


def all_of(*conditions: dict[str, Any] | None) -> dict[str, Any] | None:
    """What matches all conditions; those that are ``None`` match everything."""
    given = [condition for condition in conditions if condition is not None]
    return _combined("$and", given) if given else None


def _combined(operator: str, conditions: list[dict[str, Any]]) -> dict[str, Any]:
    return conditions[0] if len(conditions) == 1 else {operator: conditions}


def _one(it: MetadataFilter) -> dict[str, Any]:
    key, value, how = it.key, it.value, it.operator
    if how in _OPERATORS:
        if value is None or isinstance(value, list):
            raise ValueError(f"{how.value} of {key!r} takes one value, not {value!r}")
        return {key: {_OPERATORS[how]: value}}
    if how in _OF_LISTS:
        return {key: {_OF_LISTS[how]: _list(it)}}
    if how in _OF_ELEMENTS:
        parts = [{key: {"$contains": element}} for element in _list(it)]
        # No element is required by `all`, and `any` of no elements matches nothing.
        return _combined(_OF_ELEMENTS[how], parts) if parts else _nothing_to(it)
    if how in _OF_TEXT and key in _TEXT_KEYS:
        if not isinstance(value, str):
            raise ValueError(f"{how.value} of {key!r} takes a string, not {value!r}")
        if how == FilterOperator.TEXT_MATCH:
            return {"#document": {"$contains": value}}
        return {"#document": {"$regex": f"(?i){re.escape(value)}"}}
    if how in _OF_TEXT:
        raise ValueError(f"{how.value} is for the text of nodes: its key is 'text', not {key!r}")
    raise ValueError(f"a collection has no filter {how.value!r} (of {key!r})")


def _list(it: MetadataFilter) -> list[Any]:
    if not isinstance(it.value, list):
        raise ValueError(f"{it.operator.value} of {it.key!r} takes a list, not {it.value!r}")
    return it.value


def _nothing_to(it: MetadataFilter) -> dict[str, Any]:
    return {it.key: {"$in" if it.operator == FilterOperator.ANY else "$nin": []}}
