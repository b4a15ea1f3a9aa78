"""A project, a home and servers of their own for each run."""
import contextlib, json, os, pathlib, shutil, subprocess, sys, tempfile

from mcp import StdioServerParameters

CODE = '''def greet(name):
    """Say hello to somebody."""
    return f"hello {name}"


def part(name):
    """Say goodbye to somebody."""
    return f"goodbye {name}"
'''
RECORDS = [
    {"id": "one", "embedding": [1, 0, 0], "document": "the first of three", "metadata": {"n": 1}},
    {"id": "two", "embedding": [0, 1, 0], "document": "the second", "metadata": {"n": 2}},
]


class Place:
    """Folders that are gone afterwards."""

    def __init__(self, program):
        self.program = str(pathlib.Path(program).resolve())
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="isolith-clients-"))
        self.project = self.folder / "project"
        self.project.mkdir()
        (self.project / "greetings.py").write_text(CODE)
        (self.project / "records.jsonl").write_text("".join(json.dumps(r) + "\n" for r in RECORDS))
        (self.project / "notes.md").write_text("# Office\n\nThe office is in Bonn.\n")
        (self.folder / "secret.txt").write_text("not for agents\n")
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("ISOLITH_")}
        self.env |= {"HOME": str(self.folder), "XDG_DATA_HOME": str(self.folder / "data"), "XDG_STATE_HOME": str(self.folder / "state")}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder, ignore_errors=True)

    def stdio(self):
        return StdioServerParameters(command=self.program, args=["mcp", "--tools", "all"], env=self.env, cwd=self.project)

    def run(self, *arguments):
        done = subprocess.run([self.program, *arguments], capture_output=True, text=True, env=self.env, cwd=self.project)
        if done.returncode:
            sys.exit(f"isolith {' '.join(arguments)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    @contextlib.contextmanager
    def http(self, *flags, listen="127.0.0.1:0"):
        """A server, by default on a free port; what it says about itself."""
        command = [self.program, "serve", "--json", "--tools", "all", "--listen", listen, *flags]
        server = subprocess.Popen(command, env=self.env, cwd=self.project, stdout=subprocess.PIPE, text=True)
        try:
            if not (line := server.stdout.readline()):
                sys.exit(f"isolith serve ended with {server.wait()} before it was ready")
            yield json.loads(line) | {"pid": server.pid}
        finally:
            server.terminate()
            if (code := server.wait(20)) != 143:
                sys.exit(f"isolith serve: exit {code} after SIGTERM, not 143")


def token_of(server):
    """The header that a server's clients have to send."""
    return {"Authorization": f"Bearer {pathlib.Path(server['token_file']).read_text().strip()}"}


def children_of(*pids):
    """Worker processes of these processes."""
    found = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError):
            fields = stat.read_text().rpartition(")")[2].split()
            if fields[0] != "Z" and int(fields[1]) in pids:
                found.append(int(stat.parent.name))
    return found
