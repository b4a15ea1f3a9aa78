"""Every Python block of the page about Chroma and pipelines."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import isolith
from pipeline.pipeline_files import ready

pytest.importorskip("chromadb", reason="needs chromadb-client or chromadb")

ROOT = Path(__file__).parents[2]
PAGE = ROOT.parents[1] / "docs" / "python-chroma.md"
EXAMPLES = ROOT / "examples"

if not PAGE.exists():
    pytest.skip("the tests run without the documentation", allow_module_level=True)

# These sections have parts of the examples, which have tests of their own.
EXCERPTS = {"## Prefect": "prefect_flow.py", "## Kafka": "kafka_consumer.py"}


def blocks(text: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)


def test_the_page_runs(tmp_path: Path, served: Callable[..., isolith.Client]) -> None:
    text = PAGE.read_text().partition("## Prefect")[0]
    port = served()._transport.server.running.port  # type: ignore[union-attr]
    assert text.count("port=8000") == 1
    program = "\n".join(blocks(text)).replace("port=8000", f"port={port}")
    ready(tmp_path / "embeddings.json", range(10))
    (tmp_path / "outbox").mkdir()
    for part in range(3):
        ready(tmp_path / "outbox" / f"{part}.json", range(5 + part * 10, 25 + part * 10))
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=50
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[:3] == ["[['cats']]", "[]", "10 documents"]
    assert sorted(lines[3:]) == [f"outbox/{part}.json True" for part in range(3)]


@pytest.mark.parametrize("heading", EXCERPTS)
def test_excerpts_are_those_of_the_examples(heading: str) -> None:
    section = PAGE.read_text().partition(heading)[2].partition("\n## ")[0]
    (excerpt,) = blocks(section)
    assert excerpt in (EXAMPLES / EXCERPTS[heading]).read_text()
