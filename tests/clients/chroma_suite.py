#!/usr/bin/env python3
"""Chroma's own tests, which its package contains, against `isolith serve --chroma`."""
import argparse, importlib.util, os, pathlib, subprocess, sys

from place import Place

# What is left out, and why.
LEFT_OUT = {
    "property": "random histories, which take hours",
    "stress": "load on local clients",
    "distributed": "needs Kubernetes",
    "ef": "embedding functions, which run in the client and download models",
    "test_cli.py": "Chroma's own command line",
}

# The default embedding function would download its model. It runs in the client.
PLUGIN = '''
from chromadb.utils.embedding_functions.onnx_mini_lm_l6_v2 import ONNXMiniLM_L6_V2
import numpy

ONNXMiniLM_L6_V2.__call__ = lambda self, input: [
    numpy.random.default_rng(len(text)).random(384, dtype="f4") for text in input
]
'''


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    tests = pathlib.Path(importlib.util.find_spec("chromadb").origin).parent / "test"
    with Place(parser.parse_args().program) as place, place.http("--chroma", "--no-token", "--allow-reset") as server:
        (place.folder / "no_download.py").write_text(PLUGIN)
        port = server["url"].removesuffix("/mcp").rsplit(":", 1)[1]
        env = os.environ | {
            "CHROMA_INTEGRATION_TEST_ONLY": "1",
            "CHROMA_SERVER_HOST": "localhost",
            "CHROMA_SERVER_HTTP_PORT": port,
            "PYTHONPATH": str(place.folder),
        }
        ignored = [f"--ignore={tests / name}" for name in LEFT_OUT]
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no_download", "-p", "no:cacheprovider", tests, *ignored]
        status = subprocess.run(command, env=env, cwd=tests.parent.parent).returncode
    for name, reason in LEFT_OUT.items():
        print(f"left out: {name}: {reason}")
    sys.exit(status)


if __name__ == "__main__":
    main()
