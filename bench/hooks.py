#!/usr/bin/env python3
"""How long hooks keep a client waiting: SessionStart from a large store, Stop with a large transcript, and the
background process killed in between. Prints JSON.

    python3 bench/hooks.py target/release/isolith [--drawers 50000] [--megabytes 50]
"""
import argparse, json, os, pathlib, resource, shutil, signal, statistics, subprocess, sys, tempfile, time

WORDS = "the store keeps records and retries every request until the deadline passes so that no write is lost".split()


def text(number, length):
    """Words that differ by number."""
    words = [WORDS[(number * 7 + at * at) % len(WORDS)] for at in range(length)]
    return f"Turn {number}: " + " ".join(words) + f" about topic{number % 997}."


class Place:
    """A home folder of its own."""

    def __init__(self, program):
        self.program = str(pathlib.Path(program).resolve())
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="isolith-hooks-"))
        self.project = self.folder / "shop"
        self.project.mkdir()
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("ISOLITH_", "XDG_"))}
        self.env["HOME"] = str(self.folder)

    def run(self, *arguments, input=None):
        done = subprocess.run([self.program, *arguments], input=input, capture_output=True, text=True, env=self.env, cwd=self.project)
        if done.returncode:
            sys.exit(f"{arguments}: exit {done.returncode}\n{done.stderr}")
        return done.stdout

    def hook(self, event, transcript):
        """Wall and CPU time of a hook in milliseconds, and its answer."""
        said = json.dumps({"session_id": "s", "transcript_path": str(transcript), "cwd": str(self.project), "hook_event_name": event})
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        answer = self.run("hook", event, input=said)
        wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return wall * 1e3, cpu * 1e3, answer

    def workers(self):
        """The background processes of this home folder."""
        found = []
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                line = (folder / "cmdline").read_bytes()
            except OSError:
                continue
            if b"--work" in line and str(self.folder).encode() in line:
                found.append(int(folder.name))
        return found

    def waiting(self):
        return [it for it in (self.folder / ".local/state/isolith/hooks").glob("*/*") if it.suffix in (".todo", ".taken")]

    def settle(self):
        began = time.perf_counter()
        while self.workers() or self.waiting():
            time.sleep(0.01)
            if not self.workers() and self.waiting():
                break
        return time.perf_counter() - began

    def drawers(self, wing):
        return json.loads(self.run("memory", "list", "--wing", wing, "--limit", "1", "--json"))["total"]


def event(number, kind, content):
    return json.dumps({
        "type": kind, "uuid": f"u{number}", "sessionId": "s", "cwd": "/home/me/shop", "timestamp": "2026-04-08T13:10:56Z",
        "message": {"role": kind, "content": content},
    }) + "\n"


def write_transcript(path, megabytes):
    """One turn of words for nine results of tools, as in long sessions; returns the number of turns."""
    turns, number, size = 0, 0, 0
    with path.open("w") as file:
        while size < megabytes << 20:
            number += 1
            if number % 10:
                line = event(number, "user", [{"type": "tool_result", "content": text(number, 400)}])
            else:
                turns += 1
                line = event(number, "assistant", [{"type": "text", "text": text(number, 80)}])
            size += len(line)
            file.write(line)
    return turns


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--drawers", type=int, default=50_000)
    parser.add_argument("--megabytes", type=int, default=50)
    options = parser.parse_args()
    place = Place(options.program)
    try:
        rows = place.folder / "rows.jsonl"
        with rows.open("w") as file:
            for number in range(options.drawers):
                wing = "shop" if number % 5 == 0 else f"wing{number % 40}"
                file.write(json.dumps({"text": text(number, 40), "wing": wing, "room": f"room{number % 50}", "source": f"s{number}"}) + "\n")
        place.run("memory", "import", str(rows), "--format", "drawers", "--quiet")
        place.run("memory", "checkpoint", input=json.dumps({"wing": "shop", "drawers": [{"room": "decisions", "text": "We decided to use SQLite."}], "facts": [{"subject": "shop", "predicate": "uses", "object": f"part{n}"} for n in range(50)], "diary": "Next step: retries."}))
        starts = [place.hook("session-start", "/none") for _ in range(21)]
        assert "SQLite" in starts[0][2]
        transcript = place.folder / "s.jsonl"
        turns = write_transcript(transcript, options.megabytes)
        before = place.drawers("shop")
        stops = [place.hook("stop", transcript)]
        saved_in = place.settle()
        rounds = 1
        while place.waiting():
            stops.append(place.hook("stop", transcript))
            saved_in += place.settle()
            rounds += 1
        saved = place.drawers("shop") - before
        stops += [place.hook("stop", transcript) for _ in range(9)]
        place.settle()
        # The same again, with the background process killed in between.
        other = place.folder / "t.jsonl"
        other.write_text(transcript.read_text().replace('"sessionId": "s"', '"sessionId": "t"'))
        kills = 0
        for pause in (0.3, 0.8, 1.5, 2.5):
            place.hook("stop", other)
            time.sleep(pause)
            for pid in place.workers():
                os.kill(pid, signal.SIGKILL)
                kills += 1
            while place.workers():
                time.sleep(0.01)
        place.hook("stop", other)
        place.settle()
        while place.waiting():
            place.hook("stop", other)
            place.settle()
        saved_after_kills = place.drawers("shop") - before - saved
        median = lambda runs, at: round(statistics.median(run[at] for run in runs), 1)
        print(json.dumps({
            "drawers": options.drawers, "session_start_ms": {"wall": median(starts, 0), "cpu": median(starts, 1)},
            "transcript_bytes": transcript.stat().st_size, "turns": turns, "stop_ms": {"wall": median(stops, 0), "worst": round(max(it[0] for it in stops), 1)},
            "saved": saved, "saved_in_s": round(saved_in, 1), "hooks_until_saved": rounds, "kills": kills, "saved_after_kills": saved_after_kills,
            "load": os.getloadavg()[0],
        }))
    finally:
        shutil.rmtree(place.folder, ignore_errors=True)


if __name__ == "__main__":
    main()
