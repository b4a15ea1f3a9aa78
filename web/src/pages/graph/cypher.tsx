/** Cypher with completion; results as a table or as a drawing. */

import Graph from "graphology";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { answer, api } from "../../api/client";
import { complete, type Completion } from "../../lib/cypher";
import { count, textOf } from "../../lib/format";
import { add, fromRows, MAX_EDGES, MAX_NODES } from "../../lib/model";
import { type Children, Choice, ErrorBox, Faint, Field, Table, tell, useAnswer } from "../../ui/parts";
import { Drawing, type Marks } from "./drawing";

const EXAMPLES = [
  ["", "Examples"],
  ["MATCH (a:Class)-[r:INHERITS]->(b:Class) RETURN a, r, b LIMIT 100", "Classes and what they inherit from"],
  ["MATCH (a:Function)-[r:CALLS]->(b:Function) RETURN a, r, b LIMIT 150", "Functions and what they call"],
  ["MATCH (a:File)-[r:IMPORTS]->(b:File) RETURN a, r, b LIMIT 150", "Files and what they import"],
  ["MATCH (f:Function)<-[:CALLS]-(c) RETURN f.name, f.path, count(c) AS callers ORDER BY callers DESC LIMIT 20", "Functions that are called most"],
] as const;

/** The last query, so that it is there after a look at another page. A link cannot set it: a query can write, and must be a person's own. */
let lastQuery: string = EXAMPLES[1][0];

interface Result {
  columns: string[];
  rows: unknown[][];
  changes: [string, number][];
  degraded: string | null;
  next: string | null;
}

export function Cypher() {
  const [text, setText] = useState(lastQuery);
  const [limit, setLimit] = useState("1000");
  const [state, setState] = useState<{ result: Result | null; error: unknown; busy: boolean }>({ result: null, error: null, busy: false });
  const size = useAnswer((signal) => answer(api.GET("/v1/graph/stats", { signal })), []);
  const words = useMemo(() => ({
    labels: (size.data?.labels ?? []).flatMap((it) => (it.label ? [it.label] : [])), types: [...new Set((size.data?.types ?? []).map((it) => it.type))],
  }), [size.data]);
  lastQuery = text;

  const run = async (next?: string) => {
    if (!text.trim()) return;
    setState((before) => ({ ...before, busy: true, error: null }));
    try {
      const body = next ? { next, limit: Number(limit) } : { query: text, limit: Number(limit) };
      const it = await answer(api.POST("/v1/graph/query", { body }));
      const changes = Object.entries(it.stats as Record<string, number>).filter(([, number]) => number > 0);
      setState({ result: { columns: it.columns, rows: it.rows as unknown[][], changes, degraded: it.degraded ?? null, next: it.next ?? null }, error: null, busy: false });
      tell(count(it.rows.length, "row"));
    } catch (error) {
      setState({ result: null, error, busy: false });
    }
  };
  return (
    <>
      <Faint>{size.data ? `${count(size.data.nodes, "node")}, ${count(size.data.edges, "relationship")}. Labels: ${words.labels.slice(0, 9).join(", ") || "none"}. Types: ${words.types.slice(0, 10).join(", ") || "none"}.` : ""}</Faint>
      {size.error ? <ErrorBox error={size.error} /> : null}
      <form onSubmit={(event) => { event.preventDefault(); void run(); }}>
        <Editor text={text} setText={setText} words={words} run={() => void run()} />
        <div class="row">
          <button class="main" disabled={state.busy}>Run</button>
          <Field name="Rows"><Choice options={[["100", "100"], ["1000", "1,000"], ["5000", "5,000"]]} value={limit} onChoose={setLimit} /></Field>
          <Field name="Examples"><Choice options={EXAMPLES} value="" onChoose={(it) => { if (it) setText(it); }} /></Field>
          <span class="faint">Ctrl+Enter runs the query. It can also change the graph.</span>
        </div>
      </form>
      <div aria-busy={state.busy}>
        {state.error ? <ErrorBox error={state.error} /> : null}
        {state.result ? <Rows result={state.result} next={(it) => void run(it)} /> : null}
      </div>
    </>
  );
}

/** The query, and below it what can be typed next: Tab or Enter takes an option, Escape closes the list. */
function Editor({ text, setText, words, run }: { text: string; setText: (text: string) => void; words: { labels: string[]; types: string[] }; run: () => void }) {
  const box = useRef<HTMLTextAreaElement>(null);
  const [offer, setOffer] = useState<Completion>({ from: 0, options: [] });
  const [at, setAt] = useState(0);
  const look = () => {
    const element = box.current;
    if (!element) return;
    setOffer(complete(element.value, element.selectionStart, words));
    setAt(0);
  };
  const take = (option: string) => {
    const element = box.current;
    if (!element) return;
    const after = element.value.slice(element.selectionStart);
    const before = element.value.slice(0, offer.from) + option;
    setText(before + after);
    setOffer({ from: 0, options: [] });
    requestAnimationFrame(() => { element.focus(); element.setSelectionRange(before.length, before.length); });
  };
  const key = (event: KeyboardEvent) => {
    const { options } = offer;
    const chosen = options[at];
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) run();
    else if (options.length === 0) return;
    else if (event.key === "ArrowDown") setAt((at + 1) % options.length);
    else if (event.key === "ArrowUp") setAt((at + options.length - 1) % options.length);
    else if ((event.key === "Tab" || event.key === "Enter") && chosen) take(chosen);
    else if (event.key === "Escape") setOffer({ from: 0, options: [] });
    else return;
    event.preventDefault();
  };
  const isOpen = offer.options.length > 0;
  return (
    <div class="editor">
      <textarea ref={box} rows={4} spellcheck={false} value={text} aria-label="Cypher query" aria-autocomplete="list"
        aria-controls="completions" aria-activedescendant={isOpen ? `completion-${at}` : undefined}
        onInput={(event) => { setText(event.currentTarget.value); look(); }} onKeyDown={key} onBlur={() => setTimeout(() => setOffer({ from: 0, options: [] }), 150)} />
      <ul id="completions" class="completions" role="listbox" aria-label="Completions" hidden={!isOpen}>
        {offer.options.map((option, index) => (
          <li key={option} id={`completion-${index}`} role="option" aria-selected={index === at} onMouseDown={(event) => { event.preventDefault(); take(option); }}>{option}</li>
        ))}
      </ul>
    </div>
  );
}

function Rows({ result, next }: { result: Result; next: (token: string) => void }) {
  const found = useMemo(() => fromRows(result.rows), [result]);
  const [asGraph, setAsGraph] = useState(found.nodes.size > 0);
  useEffect(() => setAsGraph(found.nodes.size > 0), [found]);
  return (
    <>
      {result.degraded ? <p class="warn">{result.degraded}</p> : null}
      {result.changes.length ? <p class="good">{result.changes.map(([name, number]) => `${name.replaceAll("_", " ")}: ${number}`).join(", ")}</p> : null}
      {found.nodes.size ? (
        <div class="row" role="group" aria-label="Show as">
          <button type="button" aria-pressed={asGraph} onClick={() => setAsGraph(true)}>Graph</button>
          <button type="button" aria-pressed={!asGraph} onClick={() => setAsGraph(false)}>Table</button>
        </div>
      ) : null}
      {asGraph && found.nodes.size ? <Picture key={count(result.rows.length, "row") + [...found.nodes.keys()].slice(0, 20).join()} found={found} /> : result.columns.length
        ? <Table caption={count(result.rows.length, "row")} columns={result.columns} rows={result.rows.map((row) => row.map((value, at) => <Cell key={at} value={value} />))} />
        : <Faint>The query returns nothing.</Faint>}
      {result.next ? <button type="button" onClick={() => next(result.next ?? "")}>Next rows</button> : null}
    </>
  );
}

function Picture({ found }: { found: ReturnType<typeof fromRows> }) {
  const [graph, added] = useMemo(() => {
    const graph = new Graph({ multi: true, type: "directed" });
    return [graph, add(graph, found)] as const;
  }, [found]);
  const [marks, setMarks] = useState<Marks>({ selected: null, impact: null, path: null, hideTests: false, hideCandidates: false });
  const left = added.nodesLeftOut + added.edgesLeftOut;
  return (
    <>
      {left ? <p class="warn">At most {MAX_NODES.toLocaleString("en")} nodes and {MAX_EDGES.toLocaleString("en")} edges are drawn: {count(added.nodesLeftOut, "node")} and {count(added.edgesLeftOut, "edge")} were left out.</p> : null}
      {found.nodes.size > 1 && found.edges.size === 0 ? <Faint>Relationships appear if the query returns them: MATCH (a)-[r]-&gt;(b) RETURN a, r, b.</Faint> : null}
      <Drawing graph={graph} change={0} marks={marks} choose={(selected) => setMarks({ ...marks, selected })} expand={() => undefined} />
      {marks.selected ? <Cell value={{ properties: found.nodes.get(marks.selected)?.properties }} /> : null}
    </>
  );
}

/** A node or relationship in short, with everything inside; any other value as it is. */
function Cell({ value }: { value: unknown }): Children {
  if (value === null || value === undefined) return <span class="faint">null</span>;
  if (typeof value !== "object") return String(value);
  if (Array.isArray(value)) return <code>{JSON.stringify(value)}</code>;
  const it = value as { labels?: string[]; properties?: Record<string, unknown>; id?: number; type?: string; start?: number; end?: number; nodes?: unknown[] };
  const short = it.labels ? `(${textOf(it.properties?.["name"] ?? it.id)} :${it.labels.join(":")})`
    : it.type ? `[:${it.type}] ${it.start} → ${it.end}` : it.nodes ? `path with ${count(it.nodes.length, "node")}` : null;
  if (!short) return <code>{JSON.stringify(value)}</code>;
  return <details><summary><code>{short}</code></summary><pre>{JSON.stringify(value, null, 1)}</pre></details>;
}
