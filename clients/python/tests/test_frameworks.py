"""The stores for frameworks, without the frameworks."""

from __future__ import annotations

from typing import Any

import pytest

from isolith._operation import run
from isolith._records import Records
from support import run_python


class Server:
    """Answers all calls with the same reply."""

    def __init__(self, reply: dict[str, Any]) -> None:
        self._reply = reply

    def resolve(self, path: str) -> str:
        return path

    def run_call(self, call: Any) -> Any:
        return call.parse(self._reply)


def test_incomplete_answers_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    server = Server({"hits": [{"id": "a"}], "degraded": "vector index rebuilding"})
    (hit,) = run(server, Records("notes", None, False).search({"text": "words"}, 3))
    assert hit.id == "a"
    assert caplog.messages == ["notes: vector index rebuilding"]


@pytest.mark.parametrize(
    ("module", "framework", "message"),
    [
        (
            "isolith.langchain",
            "langchain_core",
            "isolith.langchain needs langchain-core: pip install isolith[langchain]",
        ),
        (
            "isolith.llama_index",
            "llama_index",
            "isolith.llama_index needs llama-index-core: pip install isolith[llama-index]",
        ),
    ],
)
def test_the_error_names_the_extra(module: str, framework: str, message: str) -> None:
    program = f"import sys\nsys.modules[{framework!r}] = None\n"
    program += f"try:\n    import {module}\nexcept ImportError as error:\n    print(error)\n"
    assert run_python(program).strip() == message


def test_the_package_does_not_import_frameworks() -> None:
    program = "import isolith, isolith.aio, isolith.client, sys\n"
    program += "print([n for n in sys.modules if n.startswith(('langchain', 'llama_index'))])"
    assert run_python(program).strip() == "[]"
