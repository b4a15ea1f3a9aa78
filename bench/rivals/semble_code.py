"""Measures semble and model2vec: runs one phase and prints one line of JSON.

    semble_code.py model STEM FOLDER      write our embedding model in model2vec's format
    semble_code.py embed MODEL TEXTS      embed a JSON list of texts
    semble_code.py ask REPO QUESTIONS ROUNDS
                                          ask a JSON list of questions, with the index in memory

`ask` reads the index that semble's own command left in its cache. CPU time is that of the whole
process, including native threads.
"""

import json
import struct
import sys
import time
from pathlib import Path


def model(stem, folder):
    """Converts the model: the same vocabulary and rows, with BERT's pre-tokenizer."""
    import numpy
    from model2vec import StaticModel
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    data = Path(stem).read_bytes()
    dimension, rows, _, length = struct.unpack_from("<4I", data, 8)
    pieces = data[24 : 24 + length].decode().split("\n")
    scales_start = -(-(24 + length) // 64) * 64
    scales = numpy.frombuffer(data, "<f4", rows, scales_start)
    table = numpy.frombuffer(data, numpy.int8, rows * dimension, scales_start + 4 * rows)
    vectors = table.reshape(rows, dimension).astype(numpy.float32) * scales[:, None]
    vocabulary = {piece: row for row, piece in enumerate(pieces)}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    StaticModel(vectors, tokenizer, normalize=True).save_pretrained(folder)
    return {}


def embed(folder, texts):
    from model2vec import StaticModel

    static = StaticModel.from_pretrained(folder)
    texts = json.loads(Path(texts).read_text())
    static.encode(texts[:100], max_length=None)
    cpu = time.process_time()
    # With the arguments that semble uses.
    static.encode(texts, use_multiprocessing=False, max_length=None)
    return {"cpu_seconds": time.process_time() - cpu, "texts": len(texts)}


def ask(repo, questions, rounds):
    from semble import SembleIndex

    index = SembleIndex.from_path(repo)
    questions = json.loads(questions)
    for question in questions:
        index.search(question, top_k=10)
    took = []
    cpu = time.process_time()
    for _ in range(int(rounds)):
        for question in questions:
            started = time.perf_counter()
            index.search(question, top_k=10)
            took.append(time.perf_counter() - started)
    cpu = time.process_time() - cpu
    took.sort()
    return {
        "p50_seconds": took[len(took) // 2],
        "p99_seconds": took[min(len(took) - 1, len(took) * 99 // 100)],
        "cpu_seconds": cpu / len(took),
        "chunks": len(index.chunks),
        "files": index.stats.indexed_files,
    }


def main():
    phase, *arguments = sys.argv[1:]
    print(json.dumps({"model": model, "embed": embed, "ask": ask}[phase](*arguments)))


if __name__ == "__main__":
    main()
