#!/usr/bin/env python3
"""The clients that come from npm: the Inspector lists and calls, the conformance suite asks for everything that the
protocol requires of a server."""
import argparse, json, os, pathlib, re, subprocess, sys

from place import Place, token_of

REVISIONS = ("2025-11-25", "2026-07-28")


def inspect(modules, server, *method):
    """One run of the Inspector's command line."""
    command = [modules / ".bin/mcp-inspector", "--cli", *server, "--method", *method]
    env = {**os.environ, "PATH": f"{modules}/.bin:{os.environ['PATH']}", "MCP_CATALOG_PATH": os.devnull}
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=60)
    if done.returncode:
        sys.exit(f"inspector {' '.join(method)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return json.loads(done.stdout)


def inspector(modules, program):
    with Place(program) as place, place.http() as told:
        place.run("memory", "add", "Deployments are frozen in December", "--wing", "team", "--room", "rules")
        headers = [f"{name}: {value}" for name, value in token_of(told).items()]
        server = [told["url"], "--transport", "http", "--header", *headers]
        tools = inspect(modules, server, "tools/list")["tools"]
        assert len(tools) >= 25, [tool["name"] for tool in tools]
        found = inspect(
            modules, server, "tools/call", "--tool-name", "memory_search", "--tool-arg", "query=when may we not ship"
        )
        hits = found["structuredContent"]["hits"]
        assert hits[0]["text"] == "Deployments are frozen in December", found
        print(f"  inspector: {len(tools)} tools listed, memory_search called")


def conformance(modules, program, revision):
    env = {**os.environ, "PATH": f"{modules}/.bin:{os.environ['PATH']}"}
    # The suite cannot send a token.
    with Place(program) as place, place.http("--conformance", "--no-token") as told:
        command = [modules / ".bin/conformance", "server", "--url", told["url"], "--requirements", revision]
        done = subprocess.run(command, capture_output=True, text=True, env=env, cwd=place.folder, timeout=600)
    if done.returncode:
        sys.exit(f"conformance {revision}: exit {done.returncode}\n{done.stdout[-6000:]}{done.stderr[-2000:]}")
    summary, _, unscored = done.stdout.partition("=== SUMMARY ===")[2].partition("Not scored for")
    optional = set(re.findall(r"^  [✓✗] (\S+)", unscored, re.MULTILINE))
    scenarios = re.findall(r"^([✓✗]) (\S+): (\d+) passed", summary, re.MULTILINE)
    required = [(sign, int(checks)) for sign, name, checks in scenarios if name not in optional]
    assert required and all(sign == "✓" for sign, _ in required), done.stdout[-6000:]
    checks = sum(checks for _, checks in required)
    print(f"  conformance {revision}: {len(required)} required scenarios, {checks} checks passed")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("modules", type=pathlib.Path, help="the node_modules folder")
    arguments = parser.parse_args()
    modules = arguments.modules.resolve()
    inspector(modules, arguments.program)
    for revision in REVISIONS:
        conformance(modules, arguments.program, revision)


if __name__ == "__main__":
    main()
