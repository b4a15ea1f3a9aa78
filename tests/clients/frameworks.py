#!/usr/bin/env python3
"""LangChain's and LlamaIndex's integrations of Chroma against `isolith serve`."""
import argparse

import chromadb
from langchain_chroma import Chroma
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters, VectorStoreQuery
from llama_index.vector_stores.chroma import ChromaVectorStore

from place import Place, token_of

WORDS = ["moon", "sun", "deploy", "friday", "cat", "dog"]
TEXTS = ["the moon", "moon and sun", "deploy on friday", "a cat and a dog"]


class CountedWords(Embeddings):
    """A vector has the number of times that each of a few words occurs."""

    def embed_query(self, text):
        return [float(text.split().count(word)) + 0.01 for word in WORDS]

    def embed_documents(self, texts):
        return [self.embed_query(text) for text in texts]


def langchain(client):
    store = Chroma(client=client, collection_name="langchain", embedding_function=CountedWords())
    documents = [Document(text, metadata={"place": place}) for place, text in enumerate(TEXTS)]
    ids = store.add_documents(documents, ids=["a", "b", "c", "d"])
    assert ids == ["a", "b", "c", "d"]
    assert [it.page_content for it in store.similarity_search("moon", k=2)] == TEXTS[:2]
    (found, distance), = store.similarity_search_with_score("deploy on friday", k=1)
    assert found.page_content == TEXTS[2] and distance < 1e-5, (found, distance)
    assert [it.id for it in store.similarity_search("moon", k=4, filter={"place": {"$gte": 2}})] == ["c", "d"]
    found = store.similarity_search("moon", k=4, where_document={"$contains": "sun"})
    assert [it.id for it in found] == ["b"], found
    spread = store.max_marginal_relevance_search("moon", k=2, fetch_k=4)
    assert spread[0].page_content == TEXTS[0], spread
    store.update_document("a", Document("dog", metadata={"place": 9}))
    assert store.similarity_search("dog", k=1)[0].metadata == {"place": 9}
    store.delete(["a"])
    assert sorted(store.get()["ids"]) == ["b", "c", "d"]
    retriever = store.as_retriever(search_kwargs={"k": 1})
    assert retriever.invoke("friday deploy")[0].id == "c"
    store.reset_collection()
    assert store.get()["ids"] == []
    store.delete_collection()


def llama_index(client):
    collection = client.create_collection("llama", embedding_function=None)
    store = ChromaVectorStore(chroma_collection=collection)
    embed = CountedWords().embed_query
    source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id="book")}
    nodes = [
        TextNode(id_=f"n{place}", text=text, embedding=embed(text), metadata={"place": place}, relationships=source)
        for place, text in enumerate(TEXTS)
    ]
    assert store.add(nodes) == ["n0", "n1", "n2", "n3"]
    found = store.query(VectorStoreQuery(query_embedding=embed("moon"), similarity_top_k=2))
    assert found.ids == ["n0", "n1"] and found.nodes[0].get_content() == TEXTS[0], found
    assert found.similarities[0] > found.similarities[1]
    only = MetadataFilters(filters=[MetadataFilter(key="place", value=3)])
    found = store.query(VectorStoreQuery(query_embedding=embed("moon"), similarity_top_k=2, filters=only))
    assert found.ids == ["n3"] and found.nodes[0].metadata == {"place": 3}, found
    assert {it.node_id for it in store.get_nodes(["n1", "n2"])} == {"n1", "n2"}
    store.delete_nodes(["n1"])
    assert collection.count() == 3
    store.delete("book")
    assert collection.count() == 0
    client.delete_collection("llama")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    with Place(parser.parse_args().program) as place, place.http("--chroma") as server:
        port = int(server["url"].removesuffix("/mcp").rsplit(":", 1)[1])
        client = chromadb.HttpClient("127.0.0.1", port, headers=token_of(server))
        langchain(client)
        llama_index(client)
    print("LangChain and LlamaIndex: ok")


if __name__ == "__main__":
    main()
