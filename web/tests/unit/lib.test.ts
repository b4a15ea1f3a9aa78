import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import Graph from "graphology";
import { describe, expect, it } from "vitest";
import { EventParser } from "../../src/api/events";
import { complete } from "../../src/lib/cypher";
import { bytes, count, duration, seconds } from "../../src/lib/format";
import { highlight } from "../../src/lib/highlight";
import { deaths, lines } from "../../src/lib/history";
import { between, type Distribution, percentile, sum } from "../../src/lib/latency";
import { add, fromRows, fromSteps, MAX_NODES, nothing, ofSymbol, toDot, toGraphMl, toSvg } from "../../src/lib/model";
import { address, parse } from "../../src/lib/route";
import { holds, span, ticks } from "../../src/lib/time";
import { find, leaves, tiles, tree } from "../../src/lib/treemap";
import { numbered } from "../../src/ui/source";

const HOSTILE = "<img src=x onerror=alert(1)>\"'&\u0000\u0007";

describe("the sources", () => {
  it("never turn text into HTML", () => {
    const sources = readdirSync("src", { recursive: true, encoding: "utf8" }).filter((name) => /\.tsx?$/.test(name) && !name.endsWith("schema.d.ts"));
    expect(sources.length).toBeGreaterThan(20);
    for (const name of sources) {
      const text = readFileSync(path.join("src", name), "utf8");
      for (const bad of ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "https://"]) {
        expect(text.includes(bad), `${name}: ${bad}`).toBe(false);
      }
    }
  });
});

describe("server-sent events", () => {
  it("are found however they arrive", () => {
    const text = 'event: job\r\ndata: {"id":"1"}\n\n: alive\n\nevent: progress\ndata: a\ndata: b\n\n';
    const whole = [{ event: "job", data: '{"id":"1"}' }, { event: "progress", data: "a\nb" }];
    expect(new EventParser().push(text)).toEqual(whole);
    const parser = new EventParser();
    expect([...text].flatMap((letter) => parser.push(letter))).toEqual(whole);
  });
});

describe("latencies", () => {
  const of = (...buckets: number[]): Distribution => ({ count: buckets.reduce((a, b) => a + b, 0), sum_seconds: 0, buckets });
  it("are estimated within the bucket", () => {
    expect(percentile(of(0, 0, 0), 0.5)).toBeNull();
    const median = percentile(of(0, 0, 10, 0), 0.5) ?? 0;
    expect(median).toBeGreaterThan(4e-6);
    expect(median).toBeLessThan(16e-6);
    expect(percentile(of(90, 0, 0, 10, 0), 0.99)).toBeGreaterThan(16e-6);
    // The last bucket has no bound: at least what the one before it ends with.
    expect(percentile(of(0, 0, 0, 5), 0.5)).toBeCloseTo(16e-6);
  });
  it("of an interval are the difference", () => {
    expect(between(of(1, 2), of(2, 5))).toEqual(of(1, 3));
    expect(between(of(10, 0), of(1, 0)), "the server was started again").toEqual(of(1, 0));
    expect(sum([of(1, 2), of(0, 1, 4)]).buckets).toEqual([1, 3, 4]);
  });
  it("and rates come from the moments", () => {
    const moment = (second: number, jobs: number) => ({
      at: new Date(second * 1000).toISOString(), stores: [{ whose: "project", roles: [{ role: "r", jobs: { answered: jobs }, run: of(jobs) }] }],
    });
    expect(lines([moment(1, 0), moment(2, 10), moment(4, 10), moment(5, 3)]).rate).toEqual([10, 0, null]);
  });
});

describe("deaths", () => {
  it("are counted by class and time", () => {
    const at = (minute: number, kind: string) => ({ died_at: new Date(minute * 60_000).toISOString(), class: kind });
    const found = deaths([at(1, "crash"), at(1, "oom"), at(5, "crash")], 10 * 60);
    expect(found.interval).toBe(60);
    expect(found.classes.map((it) => [it.name, it.counts.reduce((a, b) => a + b, 0)])).toEqual([["crash", 2], ["oom", 1]]);
    expect(deaths([], 1_000_000).classes).toEqual([]);
  });
});

describe("the treemap", () => {
  const files = [{ path: "a/b/one.py", lines: 30 }, { path: "a/b/two.py", lines: 10 }, { path: "c.py", lines: 60 }, { path: "a/empty", lines: 0 }];
  const root = tree(files, (it) => it.lines);
  it("adds up folders, the largest first", () => {
    expect([root.size, root.children.map((it) => it.name)]).toEqual([100, ["c.py", "a"]]);
    expect(find(root, "a/b")?.size).toBe(40);
    const chain = tree([{ path: "x/y/z/one.py", lines: 3 }, { path: "two.py", lines: 1 }], (it) => it.lines);
    expect(chain.children.map((it) => it.name), "folders with one folder are one").toEqual(["x/y/z", "two.py"]);
    expect([find(chain, "x")?.path, find(chain, "x/y/z/one.py")?.size]).toEqual(["x/y/z", 3]);
    expect(find(root, "a/b/two.py")?.leaf?.lines).toBe(10);
    expect(find(root, "a/bc")).toBeNull();
    expect(leaves(root)).toHaveLength(4);
  });
  it("places everything inside", () => {
    for (const it of tiles(root, 400, 300)) {
      expect(it.x >= 0 && it.y >= 0 && it.x + it.width <= 400 && it.y + it.height <= 300, it.node.path).toBe(true);
    }
    const area = (path: string) => tiles(root, 400, 300).filter((it) => it.node.path === path).map((it) => it.width * it.height)[0] ?? 0;
    expect(area("c.py")).toBeGreaterThan(area("a"));
  });
});

describe("facts in time", () => {
  const fact = (valid_from: string | null, valid_to: string | null) => ({ valid_from, valid_to });
  it("hold from their start to before their end", () => {
    const at = Date.parse("2026-05-15T00:00:00Z");
    for (const [it, expected] of [
      [fact("2026-05-15", null), true], [fact(null, "2026-05-15"), false], [fact(null, null), true], [fact("2026-05-16", null), false],
      [fact("2026-01-01T10:00:00Z", "2026-05-15T00:00:01Z"), true],
    ] as const) expect(holds(it, at), JSON.stringify(it)).toBe(expected);
  });
  it("have an axis with few round names", () => {
    const range = span([fact("2019-03-01", "2026-02-01")], Date.parse("2026-06-01"));
    const named = ticks(range, 8);
    expect(named.length).toBeGreaterThan(2);
    expect(named.length).toBeLessThan(10);
    expect(named.every((it) => /^\d{4}$/.test(it.text) && it.at >= range[0] && it.at <= range[1])).toBe(true);
    expect(ticks(span([], Date.parse("2026-06-01")), 5)[0]?.text).toMatch(/^2026-0[56]-\d\d$/);
  });
});

describe("completion", () => {
  const words = { labels: ["Function", "File"], types: ["CALLS", "CONTAINS"] };
  it("knows where labels, types and properties stand", () => {
    for (const [text, expected] of [
      ["MATCH (a:F", ["Function", "File"]], ["MATCH (a)-[r:C", ["CALLS", "CONTAINS"]], ["MATCH (a)-[r:CALLS|CO", ["CONTAINS"]], ["RETURN a.sig", ["signature"]],
      ["MA", ["MATCH", "max("]], ["WHERE a.name = 'fil", []], ["x", []],
    ] as const) expect(complete(text, text.length, words).options, text).toEqual(expected);
    expect(complete("MATCH (a:Fu) RETURN a", 11, words)).toEqual({ from: 9, options: ["Function"] });
  });
});

describe("the graph", () => {
  const node = (id: number, name: string) => ({ id, labels: ["Function"], properties: { id: `a.py#${name}`, name, path: "a.py" } });
  const rows = [[node(1, "one"), { id: 7, type: "CALLS", start: 1, end: 2, properties: { certainty: "candidate" } }, node(2, HOSTILE)]];
  const made = () => {
    const graph = new Graph({ multi: true, type: "directed" });
    add(graph, fromRows(rows));
    return graph;
  };
  it("collects nodes and relationships of rows", () => {
    const graph = made();
    expect([graph.order, graph.size]).toEqual([2, 1]);
    expect(add(graph, fromRows(rows)).nodes, "nothing twice").toBe(0);
  });
  it("has edges of steps in the direction of the use", () => {
    const symbol = (name: string) => ({ id: `a.py#${name}`, qualified_name: name, label: "Function", path: "a.py", line: 1, test: false, kind: "function", language: "python" });
    const step = { ...symbol("caller"), type: "CALLS", certainty: "resolved", via: "a.py#callee" };
    const [edge] = fromSteps(symbol("callee"), [step], true).edges.values();
    expect([edge?.from, edge?.to]).toEqual(["a.py#caller", "a.py#callee"]);
  });
  it("says what does not fit", () => {
    const piece = nothing();
    const facts = ofSymbol({ id: "x", qualified_name: "x", label: "Function", path: "a", line: 1, test: false, kind: "function", language: "python" });
    for (let at = 0; at < MAX_NODES + 5; at += 1) piece.nodes.set(`n${at}`, facts);
    const graph = new Graph({ multi: true, type: "directed" });
    expect(add(graph, piece)).toEqual({ nodes: MAX_NODES, nodesLeftOut: 5, edgesLeftOut: 0 });
  });
  it("is saved as text that cannot be read as anything else", () => {
    const graph = made();
    const look = { back: "#fff", text: "#000", line: "#888", colour: () => "#123", size: () => 4, isHidden: () => false };
    for (const text of [toSvg(graph, look), toGraphMl(graph)]) {
      expect(text).not.toContain("<img");
      expect(text).not.toMatch(/[\u0000-\u0008]/);
    }
    expect(toDot(graph)).toContain('[label="CALLS"]');
    expect(toDot(graph)).toContain('onerror=alert(1)>\\"');
  });
});

describe("addresses", () => {
  it("keep any name", () => {
    const hash = address("memory", ["a/b?c#", HOSTILE], { q: "x&y", none: "" });
    const { page, rest, query } = parse(hash);
    expect([page, rest, query.get("q"), query.has("none")]).toEqual(["memory", ["a/b?c#", HOSTILE], "x&y", false]);
    expect(parse("#/search/%zz").rest).toEqual(["%zz"]);
  });
});

describe("source", () => {
  it("is highlighted line by line", () => {
    const found = highlight('def a():\n    """one\n    two"""', "python");
    expect(found.map((line) => line.map((it) => it.text).join(""))).toEqual(["def a():", '    """one', '    two"""']);
    expect(found[0]?.[0]).toEqual({ text: "def", kind: "hljs-keyword" });
    expect(found[2]?.[0]?.kind).toBe("hljs-string");
    expect(highlight(HOSTILE, "nothing known")[0]).toEqual([{ text: HOSTILE, kind: "" }]);
  });
  it("has each line once, and a mark for gaps", () => {
    const rows = numbered([{ line: 1, text: "a\nb" }, { line: 2, text: "b\nc" }, { line: 9, text: "z" }], () => null);
    expect(rows.map((it) => [it.line, it.spans[0]?.text])).toEqual([[1, "a"], [2, "b"], [3, "c"], [null, undefined], [9, "z"]]);
  });
});

describe("numbers", () => {
  it("are short and agree with their nouns", () => {
    expect([count(1, "file"), count(2_000, "memory", "memories")]).toEqual(["1 file", "2,000 memories"]);
    expect([bytes(999), bytes(1_500), bytes(25_000_000)]).toEqual(["999 B", "1.5 kB", "25 MB"]);
    expect([duration(20), duration(61_000), duration(7_300_000)]).toEqual(["20 ms", "61 s", "2 h"]);
    expect([seconds(null), seconds(5e-5), seconds(0.0123), seconds(2)]).toEqual(["–", "50 µs", "12.3 ms", "2.00 s"]);
  });
});
