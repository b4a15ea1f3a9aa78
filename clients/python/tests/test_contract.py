"""The package has all operations of the server, with all of their arguments."""

from __future__ import annotations

import ast
import importlib
import json
import pkgutil
from pathlib import Path
from typing import Any

import isolith
import isolith.api
from isolith._call import Endpoint

# Operations that the package does not call, and why.
NOT_CALLED = {
    "GET /code/search": "POST takes the same, of any length",
    "GET /memory/search": "POST takes the same, of any length",
    "GET /collections/{collection}/records": "POST /collections/{collection}/get takes the same",
    "GET /collections/{collection}/values": "POST takes the same, and filters",
    "GET /jobs/{id}/events": "a call that starts a job gets its events itself",
    "GET /code/map": "for the pages, which draw it",
    "GET /collections/{collection}/projection": "for the pages, which draw it",
    "GET /status/events": "for the pages; `status` has the same",
    "POST /drill": "for the pages; `isolith drill` does the same",
    "POST /quarantine/release": "for the pages; `isolith doctor --quarantine` does the same",
}

# Arguments that no method passes on, and why.
NOT_PASSED: dict[tuple[str, str], str] = {}


def modules() -> list[Any]:
    """The modules with endpoints."""
    names = [module.name for module in pkgutil.iter_modules(isolith.api.__path__)]
    return [importlib.import_module(f"isolith.api.{name}") for name in names]


def endpoints() -> dict[str, Endpoint]:
    """The endpoints that the package calls."""
    found = {}
    for module in modules():
        for value in vars(module).values():
            if isinstance(value, Endpoint):
                found[f"{value.method} {value.path}"] = value
    return found


def passed_arguments() -> dict[str, set[str]]:
    """The arguments that the code passes to each endpoint, from its syntax tree."""
    passed: dict[str, set[str]] = {}
    for module in modules():
        tree = ast.parse(Path(module.__file__).read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                endpoint = getattr(module, node.func.id, None)
                if isinstance(endpoint, Endpoint):
                    names = {keyword.arg for keyword in node.keywords if keyword.arg}
                    key = f"{endpoint.method} {endpoint.path}"
                    passed.setdefault(key, set()).update(names)
    return passed


def described(db: isolith.Client) -> dict[str, Any]:
    """The operations of the server's own description."""
    call = Endpoint("GET", "/openapi.json")(lambda reply: reply)
    description = db.run_call(call)
    return {
        f"{method.upper()} {path[len('/v1') :]}": operation
        for path, operations in description["paths"].items()
        for method, operation in operations.items()
    }


def test_every_operation_is_called(db: isolith.Client) -> None:
    known, called = described(db), endpoints()
    missing = known.keys() - called.keys() - NOT_CALLED.keys()
    assert not missing, f"the package lacks {sorted(missing)}"
    assert not called.keys() - known.keys(), "the server does not have them"
    assert not NOT_CALLED.keys() - known.keys(), "the server does not have them any more"
    assert not NOT_CALLED.keys() & called.keys(), "they are called after all"


def test_writes_with_keys_and_jobs_are_known_as_such(db: isolith.Client) -> None:
    called = endpoints()
    for name, operation in described(db).items():
        if name in called:
            headers = [it["name"] for it in operation["parameters"] if it["in"] == "header"]
            assert called[name].is_keyed == ("Idempotency-Key" in headers), name
            assert called[name].is_job == ("202" in operation["responses"]), name


def test_every_argument_is_passed_on(db: isolith.Client) -> None:
    passed = passed_arguments()
    # Those that are built by loops or shared helpers.
    passed["POST /collections/{collection}/get"] |= {
        "where",
        "where_document",
        "limit",
        "offset",
        "sort",
        "descending",
    }
    passed["GET /graph/path"] |= {"from", "to"}
    for name in ("PUT", "POST", "PATCH"):
        passed.setdefault(f"{name} /collections/{{collection}}/records", set()).update(
            {"records", "collection"}
        )
    for name, operation in described(db).items():
        if name not in passed:
            assert name in NOT_CALLED, name
            continue
        arguments = {it["name"] for it in operation["parameters"] if it["in"] != "header"}
        body = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
        arguments |= body.get("schema", {}).get("properties", {}).keys()
        missing = {it for it in arguments - passed[name] if (name, it) not in NOT_PASSED}
        assert not missing, f"{name}: no method passes on {sorted(missing)}"


def test_the_version_is_that_of_the_project() -> None:
    project = Path(__file__).parents[1] / "pyproject.toml"
    version = [line for line in project.read_text().splitlines() if line.startswith("version")]
    assert version == [f'version = "{isolith.__version__}"']
    assert json.dumps(isolith.__version__)
