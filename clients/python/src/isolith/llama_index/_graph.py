"""The graph as LlamaIndex's property graph store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from llama_index.core.graph_stores.types import EntityNode, PropertyGraphStore

from .._batches import id_batches
from .._metadata import flat
from .._operation import run
from .._records import Records, Steps, run_either, warn_of
from ..api.graph import GraphOperations, Result
from ..errors import NoStore
from . import _cypher as cypher
from ._filters import where_of
from ._labelled import (
    NODE,
    batches,
    id_of,
    labels_of,
    node_of,
    properties_of,
    relation_row,
    row_of,
    triplet_of,
)
from ._schema import NODE_PROPERTIES, RELATION_PROPERTIES, RELATIONS, schema_of, text_of
from ._search import search

if TYPE_CHECKING:
    from llama_index.core.graph_stores.types import LabelledNode, Relation, Triplet
    from llama_index.core.vector_stores.types import VectorStoreQuery

    from .. import aio
    from .._call import Plan
    from ..client import Client

T = TypeVar("T")

# What tells where entities come from; it says nothing about them.
_MENTIONS = "MENTIONS"


class IsolithPropertyGraphStore(PropertyGraphStore):
    """The graph of an Isolith store as a property graph store, with Cypher.

    Nodes have the label ``__Node__``, and ``__Entity__`` or ``__Chunk__``, beside their own; their
    ids are the property ``id``. The rest of the graph, such as that of code, is not changed, and
    only ``structured_query`` sees it. The vectors of entities are in a collection beside the graph.

    Properties are strings, numbers, booleans and lists of these. Others are stored as JSON text.
    """

    supports_structured_queries: bool = True
    supports_vector_queries: bool = True

    def __init__(
        self,
        client: Client,
        collection_name: str = "graph_entities",
        *,
        metric: str | None = None,
        async_client: aio.Client | None = None,
    ) -> None:
        """Nothing is sent yet.

        :param client: a handle from :func:`isolith.open` or :func:`isolith.connect`, which has to
            stay open
        :param collection_name: the collection of the vectors, which the first one creates
        :param metric: ``cosine`` (the default), ``l2`` or ``dot``, for creating the collection
        :param async_client: a handle from :mod:`isolith.aio` for the asynchronous methods; by
            default, they use ``client`` in a thread
        """
        self._client = client
        self._async_client = async_client
        self._vectors = Records(collection_name, metric, is_built_in=False)
        self._schema: dict[str, Any] | None = None

    @property
    def client(self) -> Client:
        """The handle."""
        return self._client

    def get(
        self, properties: dict[str, Any] | None = None, ids: list[str] | None = None
    ) -> list[LabelledNode]:
        """The nodes with these ids that have all of these properties; by default, all nodes."""
        return self._run(self._get(properties, ids))

    async def aget(
        self, properties: dict[str, Any] | None = None, ids: list[str] | None = None
    ) -> list[LabelledNode]:
        """As ``get``."""
        return await self._arun(self._get(properties, ids))

    def get_triplets(
        self,
        entity_names: list[str] | None = None,
        relation_names: list[str] | None = None,
        properties: dict[str, Any] | None = None,
        ids: list[str] | None = None,
    ) -> list[Triplet]:
        """Relations with their ends, which fulfil all conditions; none without a condition.

        :param entity_names: an end is one of these entities
        :param relation_names: the label of the relation is one of these
        :param properties: an end or the relation has all of them
        :param ids: an end has one of these ids
        """
        return self._run(self._get_triplets(entity_names, relation_names, properties, ids))

    async def aget_triplets(
        self,
        entity_names: list[str] | None = None,
        relation_names: list[str] | None = None,
        properties: dict[str, Any] | None = None,
        ids: list[str] | None = None,
    ) -> list[Triplet]:
        """As ``get_triplets``."""
        return await self._arun(self._get_triplets(entity_names, relation_names, properties, ids))

    def get_rel_map(
        self,
        graph_nodes: list[LabelledNode],
        depth: int = 2,
        limit: int = 30,
        ignore_rels: list[str] | None = None,
    ) -> list[Triplet]:
        """Relations around nodes, in both directions: the nearest first, in the order of the nodes.

        Relations ``MENTIONS`` and those with a label in ``ignore_rels`` are not followed.
        """
        return self._run(self._get_rel_map(graph_nodes, depth, limit, ignore_rels))

    async def aget_rel_map(
        self,
        graph_nodes: list[LabelledNode],
        depth: int = 2,
        limit: int = 30,
        ignore_rels: list[str] | None = None,
    ) -> list[Triplet]:
        """As ``get_rel_map``."""
        return await self._arun(self._get_rel_map(graph_nodes, depth, limit, ignore_rels))

    def upsert_nodes(self, nodes: Sequence[LabelledNode]) -> None:
        """Adds nodes, or changes those with the same ids.

        The label is replaced, and properties are merged; ``None`` removes one. Embeddings of
        entities are stored, too. Up to 1,000 nodes are one transaction.

        :raises ValueError: if a node is neither an entity nor a chunk
        """
        self._run(self._upsert_nodes(nodes))

    async def aupsert_nodes(self, nodes: Sequence[LabelledNode]) -> None:
        """As ``upsert_nodes``."""
        await self._arun(self._upsert_nodes(nodes))

    def upsert_relations(self, relations: list[Relation]) -> None:
        """Adds relations, or changes those with the same label and ends; properties are merged.

        An end that does not exist becomes an entity. Up to 1,000 relations are one transaction.
        """
        self._run(self._upsert_relations(relations))

    async def aupsert_relations(self, relations: list[Relation]) -> None:
        """As ``upsert_relations``."""
        await self._arun(self._upsert_relations(relations))

    def delete(
        self,
        entity_names: list[str] | None = None,
        relation_names: list[str] | None = None,
        properties: dict[str, Any] | None = None,
        ids: list[str] | None = None,
    ) -> None:
        """Deletes what fulfils any of the conditions.

        :param entity_names: these entities, with their relations
        :param relation_names: all relations with one of these labels
        :param properties: nodes that have all of them, with their relations
        :param ids: the nodes with these ids, with their relations
        """
        self._run(self._delete(entity_names, relation_names, properties, ids))

    async def adelete(
        self,
        entity_names: list[str] | None = None,
        relation_names: list[str] | None = None,
        properties: dict[str, Any] | None = None,
        ids: list[str] | None = None,
    ) -> None:
        """As ``delete``."""
        await self._arun(self._delete(entity_names, relation_names, properties, ids))

    def structured_query(self, query: str, param_map: dict[str, Any] | None = None) -> Any:
        """Runs a Cypher query, which may write. Returns a dictionary for each row.

        A node is ``{"id", "labels", "properties"}``, a relationship ``{"id", "type", "start",
        "end", "properties"}``; these ids are those of the graph.
        """
        return self._run(_query((query, param_map or {}))).to_dicts()

    async def astructured_query(self, query: str, param_map: dict[str, Any] | None = None) -> Any:
        """As ``structured_query``."""
        return (await self._arun(_query((query, param_map or {})))).to_dicts()

    def vector_query(
        self, query: VectorStoreQuery, **kwargs: Any
    ) -> tuple[list[LabelledNode], list[float]]:
        """The entities that match a query best, with their similarities.

        The modes and filters are those of :class:`IsolithVectorStore`; the text of an entity is its
        name with its properties.
        """
        return self._run(self._vector_query(query))

    async def avector_query(
        self, query: VectorStoreQuery, **kwargs: Any
    ) -> tuple[list[LabelledNode], list[float]]:
        """As ``vector_query``."""
        return await self._arun(self._vector_query(query))

    def get_schema(self, refresh: bool = False) -> dict[str, Any]:
        """Labels, types and properties: ``node_props``, ``rel_props`` and ``relationships``.

        10,000 nodes and as many relations are looked at. The answer is kept until ``refresh``.
        """
        return self._run(self._get_schema(refresh))

    async def aget_schema(self, refresh: bool = False) -> Any:
        """As ``get_schema``."""
        return await self._arun(self._get_schema(refresh))

    def get_schema_str(self, refresh: bool = False) -> str:
        """The schema as text, for prompts."""
        return text_of(self.get_schema(refresh))

    async def aget_schema_str(self, refresh: bool = False) -> str:
        """As ``get_schema_str``."""
        return text_of(await self.aget_schema(refresh))

    def _get(
        self, properties: Mapping[str, Any] | None, ids: Sequence[str] | None
    ) -> Steps[list[LabelledNode]]:
        wanted = None if properties is None else properties_of(properties)
        if ids is None:
            result = yield from _query(cypher.nodes(wanted, None))
            return [node_of(row[0]) for row in result]
        found: dict[str, LabelledNode] = {}
        for batch in id_batches(ids):
            result = yield from _query(cypher.nodes(wanted, batch))
            found.update((row[0].properties["id"], node_of(row[0])) for row in result)
        return [found[id] for id in dict.fromkeys(ids) if id in found]

    def _get_triplets(
        self,
        entity_names: Sequence[str] | None,
        relation_names: Sequence[str] | None,
        properties: Mapping[str, Any] | None,
        ids: Sequence[str] | None,
    ) -> Steps[list[Triplet]]:
        lists = (entity_names, relation_names, ids)
        if not (properties or any(lists)) or any(it is not None and not it for it in lists):
            return []
        query = cypher.triplets(
            [id_of(name) for name in entity_names] if entity_names else None,
            relation_names,
            properties_of(properties) if properties else None,
            ids,
        )
        result = yield from _query(query)
        return [triplet_of(*row) for row in result]

    def _get_rel_map(
        self,
        graph_nodes: Sequence[LabelledNode],
        depth: int,
        limit: int,
        ignore_rels: Sequence[str] | None,
    ) -> Steps[list[Triplet]]:
        ignored = [_MENTIONS, *(ignore_rels or ())]
        around = list(dict.fromkeys(node.id for node in graph_nodes))
        seen, found = set(around), dict[int, "Triplet"]()
        for _ in range(depth):
            left = limit - len(found)
            if not around or left < 1:
                break
            result = yield from _query(cypher.neighbours(around, ignored, list(found), left))
            around = []
            for start, relationship, end in result:
                found.setdefault(relationship.id, triplet_of(start, relationship, end))
                around += [id for id in _ids(start, end) if id not in seen]
                seen.update(around)
        return list(found.values())[:limit]

    def _upsert_nodes(self, nodes: Sequence[LabelledNode]) -> Steps[None]:
        rows = [(labels_of(node), row_of(node)) for node in nodes]
        vectors = [
            _vector_record(node, node.embedding)
            for node in nodes
            if isinstance(node, EntityNode) and node.embedding is not None
        ]
        # Vectors come first: an index that is interrupted adds what the graph does not have again.
        yield from self._vectors.put(vectors)
        for groups in batches(rows):
            ids = [row["id"] for group in groups.values() for row in group]
            result = yield from _query(cypher.labels(ids))
            before = {id: set(labels) - {NODE} for id, labels in result}
            changes: dict[Any, list[dict[str, Any]]] = {}
            for labels, group in groups.items():
                for row in group:
                    lost = tuple(sorted(before.get(row["id"], set()).difference(labels)))
                    changes.setdefault((labels, lost), []).append(row)
            yield from _query(cypher.write_nodes(changes))

    def _upsert_relations(self, relations: Sequence[Relation]) -> Steps[None]:
        rows = [(relation.label, relation_row(relation)) for relation in relations]
        for groups in batches(rows):
            yield from _query(cypher.write_relations(groups))

    def _delete(
        self,
        entity_names: Sequence[str] | None,
        relation_names: Sequence[str] | None,
        properties: Mapping[str, Any] | None,
        ids: Sequence[str] | None,
    ) -> Steps[None]:
        doomed = [*(ids or ()), *(id_of(name) for name in entity_names or ())]
        if properties:
            matching = yield from self._get(properties, None)
            doomed += [node.id for node in matching]
        for batch in id_batches(dict.fromkeys(doomed)):
            # Vectors go first: repeating an interrupted call still finds the nodes.
            yield from self._vectors.remove(batch)
            yield from _query(cypher.delete_nodes(batch))
        if relation_names:
            yield from _query(cypher.delete_relations(relation_names))

    def _vector_query(
        self, query: VectorStoreQuery
    ) -> Steps[tuple[list[LabelledNode], list[float]]]:
        hits = yield from search(self._vectors, query, where_of(query.filters))
        nodes = yield from self._get(None, [hit.id for hit, _ in hits])
        by_id = {node.id: node for node in nodes}
        found = [(by_id[hit.id], score) for hit, score in hits if hit.id in by_id]
        return [node for node, _ in found], [score for _, score in found]

    def _get_schema(self, refresh: bool) -> Steps[dict[str, Any]]:
        if self._schema is None or refresh:
            node_properties = yield from _query((NODE_PROPERTIES, {}))
            relation_properties = yield from _query((RELATION_PROPERTIES, {}))
            relations = yield from _query((RELATIONS, {}))
            self._schema = schema_of(node_properties, relation_properties, relations)
        return self._schema

    def _run(self, plan: Plan[T]) -> T:
        return run(self._client, plan)

    async def _arun(self, plan: Plan[T]) -> T:
        return await run_either(self._client, self._async_client, plan)


def _query(query: tuple[str, dict[str, Any]]) -> Steps[Result]:
    text, parameters = query
    try:
        result = yield from GraphOperations.query.function(None, text, parameters)
    except NoStore:
        # Nothing has been written yet, so nothing matches.
        return Result([], [])
    warn_of("graph", result.degraded)
    return result


def _ids(*nodes: Any) -> list[str]:
    return [node.properties["id"] for node in nodes]


def _vector_record(node: EntityNode, embedding: Sequence[float]) -> dict[str, Any]:
    metadata = {**flat(node.properties), "name": node.name, "label": node.label}
    return {"id": node.id, "vector": embedding, "document": str(node), "metadata": metadata}
