"""The examples of docs/python-frameworks.md run, and print what they say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support import run_python

PAGE = Path(__file__).resolve().parents[3] / "docs" / "python-frameworks.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S) if PAGE.exists() else []

# Examples may not reach the network.
OFFLINE = """
import socket
def refuse(*arguments, **options):
    raise AssertionError(f"network access: {arguments}")
socket.getaddrinfo = socket.create_connection = refuse
"""


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_example(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    example = EXAMPLES[number]
    for module, framework, package in (
        ("isolith.langchain", "langchain_core", "langchain-core"),
        ("isolith.llama_index", "llama_index.core", "llama-index-core"),
    ):
        if module in example:
            pytest.importorskip(framework, reason=f"{package} is not installed")
    monkeypatch.chdir(tmp_path)
    (said,) = re.findall(r"print\(.*\)  # (.*)", example)
    assert run_python(OFFLINE + example).splitlines() == [said]
