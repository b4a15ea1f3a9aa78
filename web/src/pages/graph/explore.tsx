/** From symbol to symbol: what calls it, what it needs, what a change may break. */

import Graph from "graphology";
import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { answer, api } from "../../api/client";
import { count } from "../../lib/format";
import { address } from "../../lib/route";
import { add, edgeFacts, facts, fromRows, fromSteps, MAX_EDGES, MAX_NODES, type NodeFacts, nothing, ofSymbol, type Piece } from "../../lib/model";
import { ErrorBox, Faint, Field, Pairs, Tag, tell, useSettled } from "../../ui/parts";
import { colourOf, Drawing, type Marks } from "./drawing";

/** What one step can add. */
const STEP = 300;
const IMPACT = 1_900;

const STEPS: [string, string][] = [
  ["Callers", "<-[r:CALLS]-(m)"],
  ["Callees", "-[r:CALLS]->(m)"],
  ["Imports", "-[r:IMPORTS]-(m)"],
  ["Inheritance", "-[r:INHERITS|IMPLEMENTS]-(m)"],
  ["Tests", "<-[r:TESTS]-(m)"],
  ["Contents", "-[r:CONTAINS]-(m)"],
  ["References", "-[r:REFERENCES]-(m)"],
];

const NO_MARKS: Marks = { selected: null, impact: null, path: null, hideTests: false, hideCandidates: true };

/** What is kept while another page is looked at. */
let kept: { graph: Graph; marks: Marks } | null = null;

export function Explore({ start }: { start: string | null }) {
  const graph = useMemo(() => kept?.graph ?? new Graph({ multi: true, type: "directed" }), []);
  const [marks, setMarks] = useState<Marks>(kept?.marks ?? NO_MARKS);
  const [change, setChange] = useState(0);
  const [news, setNews] = useState("");
  const [error, setError] = useState<unknown>(null);
  const [from, setFrom] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const turn = useRef(0);
  kept = { graph, marks };

  const insert = useCallback((piece: Piece, what: string) => {
    const added = add(graph, piece);
    const left = added.nodesLeftOut + added.edgesLeftOut;
    const text = `${what}: ${count(added.nodes, "new node")}.${left ? ` The drawing holds ${MAX_NODES.toLocaleString("en")} nodes and ${MAX_EDGES.toLocaleString("en")} edges: ${count(added.nodesLeftOut, "node")} and ${count(added.edgesLeftOut, "edge")} were left out.` : ""}`;
    setNews(text);
    tell(text);
    setChange((it) => it + 1);
  }, [graph]);
  const run = useCallback(async (work: () => Promise<void>) => {
    const own = (turn.current += 1);
    setBusy(true);
    setError(null);
    try {
      await work();
    } catch (problem) {
      if (own === turn.current) setError(problem);
    }
    if (own === turn.current) setBusy(false);
  }, []);
  const choose = useCallback((node: string | null) => setMarks((before) => ({ ...before, selected: node })), []);
  /** A symbol by its id, its name or a position, with what calls it. */
  const open = useCallback((name: string) => run(async () => {
    const found = await answer(api.GET("/v1/graph/callers", { params: { query: { symbol: name, limit: STEP } } }));
    insert(fromSteps(found.symbol, found.found, true), `Callers of ${found.symbol.qualified_name}`);
    setMarks((before) => ({ ...before, selected: found.symbol.id, impact: null, path: null }));
  }), [run, insert]);
  const step = useCallback((node: string, [name, pattern]: [string, string]) => run(async () => {
    const it = facts(graph, node);
    const by = it.symbol === null ? "id(n) = $id" : "n.id = $id";
    const query = `MATCH (n)${pattern} WHERE ${by} RETURN n, r, m LIMIT ${STEP}`;
    const body = { query, params: { id: it.symbol ?? Number(node.slice(1)) }, limit: STEP };
    const { rows } = await answer(api.POST("/v1/graph/query", { body }));
    insert(fromRows(rows), `${name} of ${it.label}${rows.length === STEP ? ` (the first ${STEP})` : ""}`);
  }), [run, insert, graph]);
  const impact = (node: string) => run(async () => {
    const found = await answer(api.GET("/v1/graph/impact", { params: { query: { symbol: facts(graph, node).symbol ?? "", limit: IMPACT } } }));
    const steps = [...found.impact, ...found.tests];
    insert(fromSteps(found.symbol, steps, true), `A change of ${found.symbol.qualified_name} may break ${count(found.impact.length, "place")} and ${count(found.tests.length, "test")}${found.more ? ", and more" : ""}`);
    const away = new Map(steps.map((it) => [it.id, it.depth]));
    away.set(node, 0).set(found.symbol.id, 0);
    setMarks((before) => ({ ...before, impact: away, path: null }));
  });
  const path = (a: string, b: string) => run(async () => {
    const found = await answer(api.GET("/v1/graph/path", { params: { query: { from: facts(graph, a).symbol ?? "", to: facts(graph, b).symbol ?? "" } } }));
    const steps = found.path;
    setFrom(null);
    if (!steps) {
      setNews(`There is no path of dependencies from ${found.from.qualified_name} to ${found.to.qualified_name}; try the other direction.`);
      return;
    }
    insert(fromSteps(found.from, steps, false), `From ${found.from.qualified_name} to ${found.to.qualified_name} in ${count(steps.length, "step")}`);
    setMarks((before) => ({ ...before, path: new Set([found.from.id, ...steps.map((it) => it.id)]), impact: null }));
  });
  useEffect(() => { if (start) void open(start); }, [start]);
  const clear = () => {
    graph.clear();
    setMarks({ ...marks, selected: null, impact: null, path: null });
    setNews("");
    setFrom(null);
    setChange((it) => it + 1);
  };
  const selected = marks.selected !== null && graph.hasNode(marks.selected) ? marks.selected : null;
  return (
    <div class="explore">
      <Find open={(it) => void open(it)} />
      <div class="row">
        <label class="check"><input type="checkbox" checked={!marks.hideTests} onChange={(event) => setMarks({ ...marks, hideTests: !event.currentTarget.checked })} /> Tests</label>
        <label class="check"><input type="checkbox" checked={!marks.hideCandidates} onChange={(event) => setMarks({ ...marks, hideCandidates: !event.currentTarget.checked })} /> Candidates (not certain)</label>
        {marks.impact || marks.path ? <button type="button" onClick={() => setMarks({ ...marks, impact: null, path: null })}>Colours by kind</button> : null}
        {graph.order ? <button type="button" onClick={clear}>Clear</button> : null}
        <span class="faint" aria-busy={busy}>{count(graph.order, "node")}, {count(graph.size, "edge")}</span>
      </div>
      {error ? <ErrorBox error={error} /> : null}
      {news ? <p class="news">{news}</p> : null}
      {graph.order === 0 ? <Start insert={insert} run={run} open={open} /> : (
        <div class="beside">
          <Drawing graph={graph} change={change} marks={marks} choose={choose} expand={(node) => void step(node, STEPS[0] ?? ["", ""])} />
          <aside aria-label="Selected node">
            {selected === null ? <Nodes graph={graph} choose={choose} /> : (
              <Selected node={selected} it={facts(graph, selected)} graph={graph} choose={choose}
                step={(it) => void step(selected, it)} impact={() => void impact(selected)} from={from} setFrom={setFrom} path={(a) => void path(a, selected)} />
            )}
          </aside>
        </div>
      )}
    </div>
  );
}

/** Symbols whose names begin with what is typed, or contain it. */
function Find({ open }: { open: (id: string) => void }) {
  const [text, setText] = useState("");
  const [found, setFound] = useState<{ id: string; name: string; kind: string; path: string }[]>([]);
  const asked = useSettled(text.trim(), 200);
  useEffect(() => {
    setFound([]);
    if (asked.length < 2) return;
    const own = new AbortController();
    const query = `MATCH (n) WHERE n.id IS NOT NULL AND toLower(n.name) CONTAINS toLower($text) AND n.kind <> 'variable'
RETURN n.id, coalesce(n.qualified_name, n.path), coalesce(n.kind, 'file'), n.path
ORDER BY CASE WHEN toLower(n.name) = toLower($text) THEN 0 WHEN toLower(n.name) STARTS WITH toLower($text) THEN 1 ELSE 2 END, size(n.name), n.id LIMIT 12`;
    answer(api.POST("/v1/graph/query", { body: { query, params: { text: asked }, limit: 12 }, signal: own.signal })).then(
      ({ rows }) => { setFound((rows as [string, string, string, string][]).map(([id, name, kind, path]) => ({ id, name, kind, path }))); tell(count(rows.length, "symbol")); },
      () => undefined);
    return () => own.abort();
  }, [asked]);
  const take = (id: string) => { setText(""); setFound([]); open(id); };
  return (
    <form role="search" onSubmit={(event) => { event.preventDefault(); const first = found[0]?.id ?? text.trim(); if (first) take(first); }}>
      <div class="row">
        <Field name="Find a symbol" grow>
          <input type="search" value={text} autocomplete="off" spellcheck={false} placeholder="a function, class or file; or src/a.py:12" onInput={(event) => setText(event.currentTarget.value)} />
        </Field>
        <button class="main">Show</button>
      </div>
      {found.length ? <ul class="found">{found.map((it) => <li key={it.id}><button type="button" onClick={() => take(it.id)}><code>{it.name}</code> <span class="faint">{it.kind} in {it.path}</span></button></li>)}</ul> : null}
    </form>
  );
}

function Start({ insert, run, open }: { insert: (piece: Piece, what: string) => void; run: (work: () => Promise<void>) => Promise<void>; open: (name: string) => void }) {
  const hotspots = () => run(async () => {
    const { hotspots } = await answer(api.GET("/v1/graph/hotspots", { params: { query: { by: "callers", limit: 12 } } }));
    const piece = nothing();
    for (const it of hotspots) piece.nodes.set(it.id, ofSymbol(it));
    insert(piece, "The most called");
    if (hotspots[0]) open(hotspots[0].id);
  });
  const imports = () => run(async () => {
    const query = "MATCH (a:File)-[r:IMPORTS]->(b:File) RETURN a, r, b LIMIT 5000";
    const { rows } = await answer(api.POST("/v1/graph/query", { body: { query, limit: 5000 } }));
    insert(fromRows(rows), "Files and their imports");
  });
  const calls = () => run(async () => {
    const query = "MATCH (a)-[r:CALLS]->(b) RETURN a, r, b LIMIT 5000";
    const { rows } = await answer(api.POST("/v1/graph/query", { body: { query, limit: 5000 } }));
    insert(fromRows(rows), "Calls");
  });
  return (
    <div class="card">
      <p>Find a function, a class or a file above to see what calls it; then go on from node to node. Or begin with:</p>
      <div class="row">
        <button type="button" onClick={() => void hotspots()}>The most called symbols</button>
        <button type="button" onClick={() => void imports()}>Files and their imports</button>
        <button type="button" onClick={() => void calls()}>Calls</button>
      </div>
    </div>
  );
}

interface SelectedProperties {
  node: string;
  it: NodeFacts;
  graph: Graph;
  choose: (node: string | null) => void;
  step: (step: [string, string]) => void;
  impact: () => void;
  from: string | null;
  setFrom: (node: string | null) => void;
  path: (from: string) => void;
}

function Selected({ node, it, graph, choose, step, impact, from, setFrom, path }: SelectedProperties) {
  const isFrom = from === node;
  return (
    <div class="card">
      <h2><code>{it.label}</code></h2>
      <Pairs entries={[
        ["Kind", <>{it.kind}{it.test ? <> <Tag>test</Tag></> : null}</>],
        ["Place", it.path ? `${it.path}${it.line ? `:${it.line}` : ""}` : null],
        ["Signature", typeof it.properties["signature"] === "string" ? <code>{it.properties["signature"]}</code> : null],
      ]} />
      <div class="row">{STEPS.map((one) => <button key={one[0]} type="button" onClick={() => step(one)}>{one[0]}</button>)}</div>
      {it.symbol ? (
        <div class="row">
          <button type="button" onClick={impact}>What may break</button>
          {from !== null && !isFrom && graph.hasNode(from)
            ? <button type="button" class="main" onClick={() => path(from)}>Path from {facts(graph, from).label} to here</button>
            : <button type="button" aria-pressed={isFrom} onClick={() => setFrom(isFrom ? null : node)}>{isFrom ? "Now select where the path ends" : "Path from here…"}</button>}
        </div>
      ) : null}
      <div class="row">
        {it.path ? <a href={address("map", [], { at: it.path })}>In the code map</a> : null}
        {it.symbol ? <a href={address("search", [], { q: it.label, in: "code" })}>Search for it</a> : null}
        <button type="button" class="link" onClick={() => choose(null)}>All nodes</button>
      </div>
      <Connected node={node} graph={graph} choose={choose} />
    </div>
  );
}

/** The edges of a node as a list, which needs no pointer and no colours. */
function Connected({ node, graph, choose }: { node: string; graph: Graph; choose: (node: string) => void }) {
  const edges = graph.edges(node).slice(0, 60);
  if (edges.length === 0) return <Faint>No edges on screen yet.</Faint>;
  return (
    <ul class="tree">{edges.map((edge) => {
      const isOut = graph.source(edge) === node;
      const other = isOut ? graph.target(edge) : graph.source(edge);
      const { type, certainty } = edgeFacts(graph, edge);
      return (
        <li key={edge}><span class="faint">{isOut ? `${type} →` : `← ${type}`}</span>{" "}
          <button type="button" class="link" onClick={() => choose(other)}>{facts(graph, other).label}</button>{certainty === "candidate" ? <Tag>candidate</Tag> : null}</li>
      );
    })}</ul>
  );
}

function Nodes({ graph, choose }: { graph: Graph; choose: (node: string) => void }) {
  const nodes = graph.nodes().sort((a, b) => graph.degree(b) - graph.degree(a)).slice(0, 100);
  return (
    <div class="card">
      <h2>Nodes</h2>
      <Faint>Select one here or in the drawing; a double click adds its callers. {graph.order > nodes.length ? `The ${nodes.length} with the most edges:` : ""}</Faint>
      <ul class="tree nodes">{nodes.map((node) => {
        const it = facts(graph, node);
        return <li key={node}><svg viewBox="0 0 2 2" aria-hidden="true"><circle cx="1" cy="1" r="1" fill={colourOf(it.kind)} /></svg><button type="button" class="link" onClick={() => choose(node)}>{it.label}</button> <span class="faint">{it.kind}</span></li>;
      })}</ul>
    </div>
  );
}
