// A small project with hostile names and texts, and what the pages show of it.

import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";

/** Harmless as text, and seen at once if it is read as HTML. */
export const HOSTILE = "<img src=x onerror=alert(1)><b>bold</b>";

const write = (project, name, text) => {
  fs.mkdirSync(path.dirname(path.join(project, name)), { recursive: true });
  fs.writeFileSync(path.join(project, name), text);
};

export function fillProject(project, isolith) {
  fs.mkdirSync(project, { recursive: true });
  write(project, "greetings.py", `def greet(name):\n    """Say hello ${HOSTILE}"""\n    return part(name)\n\n\ndef part(name):\n    return name\n`);
  write(project, "<img src=x onerror=alert(2)>.py", "def hello_other():\n    return 1\n");
  write(project, "bell\u0007 and \u202e tab\t.py", `def hello_control():\n    return "\u0007\u202e"\n`);
  write(project, "pkg/__init__.py", "");
  write(project, "pkg/one.py", "from pkg import two\n\n\ndef first():\n    return two.second()\n");
  write(project, "pkg/two.py", "from pkg import one\n\n\ndef second():\n    return one.first()\n");
  const methods = Array.from({ length: 30 }, (_, at) => `    def method_${at}(self):\n        total = ${at}\n        return helper(total)\n`);
  write(project, "pkg/large.py", `class Large:\n${methods.join("\n")}\n\ndef helper(value):\n    return value\n`);
  write(project, "tests/test_large.py", "from pkg.large import Large\n\n\ndef test_large():\n    assert Large().method_1() == 1\n");
  const git = (...words) => execFileSync("git", ["-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "init.defaultBranch=main", ...words], { cwd: project, stdio: "ignore" });
  git("init");
  git("add", "--all");
  git("commit", "-m", "Begin");
  const record = { id: HOSTILE, document: `record ${HOSTILE}`, metadata: { [HOSTILE]: HOSTILE, year: 2024 } };
  const others = Array.from({ length: 60 }, (_, at) => ({ id: `r${at}`, document: `record ${at}`, metadata: { year: 2000 + at } }));
  write(project, "records.jsonl", [record, ...others].map((it) => `${JSON.stringify(it)}\n`).join(""));
  isolith("index", "--quiet");
  isolith("ingest", "records.jsonl", "--collection", "notes", "--quiet");
  isolith("memory", "add", `Deploys go out on Tuesdays. ${HOSTILE}`, "--wing", HOSTILE, "--room", "deploys");
  isolith("memory", "add", "Wrote the tests of the pages.", "--wing", "builder", "--room", "diary");
  isolith("fact", "add", HOSTILE, "works_at", "Acme", "--from", "2024-01-01");
  isolith("fact", "add", "Ada", "works_at", "Acme", "--from", "2024-03-01", "--to", "2026-08-01");
  isolith("fact", "add", "Ada", "works_at", "Initech", "--from", "2026-08-01");
  isolith("fact", "add", "Ada", "lives_in", "London", "--from", "2020-01-01");
}
