/** Code with line numbers, and what can be asked about a place in it. */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { answer, api } from "../api/client";
import type { Symbol as CodeSymbol } from "../api/schema";
import type { Span } from "../lib/highlight";
import { count } from "../lib/format";
import { address } from "../lib/route";
import { type Children, Faint, Show, Tag, useAnswer } from "./parts";

export interface Part {
  line: number;
  text: string;
}

type Highlight = (text: string, language: string) => Span[][];
let highlighter: Highlight | null = null;

/** Plain until the highlighter is there. */
function useHighlight(): Highlight | null {
  const [known, setKnown] = useState<Highlight | null>(() => highlighter);
  useEffect(() => {
    if (highlighter) return;
    // Without it, code is shown in one colour.
    import("../lib/highlight").then((it) => { highlighter = it.highlight; setKnown(() => it.highlight); }, () => undefined);
  }, []);
  return known;
}

/** Lines of code from a first line on; those of a hit are marked. */
export function Source({ parts, language = "", marked = null, label = "Code", scrolls = false }: {
  parts: Part[]; language?: string; marked?: [number, number] | null; label?: string; scrolls?: boolean;
}) {
  const highlight = useHighlight();
  const place = useRef<HTMLDivElement>(null);
  const rows = useMemo(() => numbered(parts, (text) => highlight?.(text, language) ?? null), [parts, language, highlight]);
  useEffect(() => {
    const row = scrolls ? place.current?.querySelector<HTMLElement>("tr.hit") : null;
    if (row && place.current) place.current.scrollTop = row.offsetTop - 60;
  }, [rows, scrolls]);
  const isHit = (line: number) => marked !== null && line >= marked[0] && line <= marked[1];
  return (
    <div ref={place} class="source" tabIndex={0} role="region" aria-label={label}>
      <table><tbody>{rows.map(({ line, spans }, at) => line === null
        ? <tr key={at}><td class="number">⋮</td><td /></tr>
        : <tr key={at} class={isHit(line) ? "hit" : undefined}><td class="number">{line}</td><td>{spans.map((it, index) => it.kind ? <span key={index} class={it.kind}>{it.text}</span> : it.text)}</td></tr>)}
      </tbody></table>
    </div>
  );
}

/** Lines with their numbers; a line without one stands for what is not stored between parts. */
export function numbered(parts: Part[], highlight: (text: string) => Span[][] | null): { line: number | null; spans: Span[] }[] {
  const rows: { line: number | null; spans: Span[] }[] = [];
  let next: number | null = null;
  for (const { line, text } of parts) {
    const plain = text.replace(/\n$/, "");
    const lines = highlight(plain) ?? plain.split("\n").map((it) => [{ text: it, kind: "" }]);
    // Parts of a file can overlap, and blank lines between them are not stored.
    const skipped: number = next === null ? 0 : Math.max(0, next - line);
    if (next !== null && line > next) rows.push({ line: null, spans: [] });
    lines.slice(skipped).forEach((spans, at) => rows.push({ line: line + skipped + at, spans }));
    next = Math.max(next ?? 0, line + lines.length);
  }
  return rows;
}

/** A place in an indexed file. */
export interface Place {
  /** The indexed folder. */
  root: string;
  path: string;
  start: number;
  end: number;
  language: string;
  /** The line that names a symbol without doubt, where several have the same name. */
  symbolLine?: number | null;
  symbol?: string | null;
}

export function FileView({ place }: { place: Place }) {
  const path = `${place.root}/${place.path}`;
  const loaded = useAnswer((signal) => answer(api.GET("/v1/code/chunks", { params: { query: { path, line: 1, end_line: 1_000_000 } }, signal })), [path]);
  return (
    <Show of={loaded}>{(found) => (
      <>
        {found.stale ? <p class="warn">The file has changed since it was indexed.</p> : null}
        {found.truncated ? <Faint>The file is long; this is its beginning.</Faint> : null}
        <Source parts={found.chunks.map((chunk) => ({ line: chunk.start_line, text: chunk.text }))} language={place.language}
          marked={[place.start, place.end]} label={`The file ${place.path}`} scrolls />
      </>
    )}</Show>
  );
}

function Similar({ place }: { place: Place }) {
  const query = { path: `${place.root}/${place.path}`, line: place.symbolLine ?? place.start };
  const loaded = useAnswer((signal) => answer(api.GET("/v1/code/similar", { params: { query }, signal })), [query.path, query.line]);
  return (
    <Show of={loaded}>{({ hits }) => hits.length === 0 ? <Faint>Nothing similar was found.</Faint> : (
      <ul class="tree">{hits.map((hit) => (
        <li key={`${hit.path}:${hit.start_line}`}><details>
          <summary><code>{hit.path}:{hit.start_line}</code> {hit.symbol ?? ""} <Tag>{hit.kind}</Tag></summary>
          <Source parts={[{ line: hit.snippet_line, text: hit.snippet }]} language={hit.language} label={`${hit.path}:${hit.start_line}`} />
        </details></li>
      ))}</ul>
    )}</Show>
  );
}

const UNSEEN = "Calls inside macros and through dynamic dispatch are not seen.";

/** What calls a symbol, or what it calls. */
export function Neighbours({ symbol, direction }: { symbol: string; direction: "callers" | "callees" }) {
  const loaded = useAnswer((signal) => {
    const params = { query: { symbol, limit: 200 } };
    return answer(direction === "callers" ? api.GET("/v1/graph/callers", { params, signal }) : api.GET("/v1/graph/callees", { params, signal }));
  }, [symbol, direction]);
  return (
    <Show of={loaded}>{(it) => it.found.length === 0
      ? <Faint>No {direction} of {it.symbol.qualified_name} found. {UNSEEN} {it.likely ? `${count(it.likely, "call")} may be one, but the type is not known.` : ""}</Faint>
      : (
        <>
          <Faint>{count(it.found.length, direction.slice(0, -1))} of <code>{it.symbol.qualified_name}</code>{it.more ? ", and more" : ""}
            {it.likely ? `; ${count(it.likely, "likely one")} not certain` : ""}.</Faint>
          <ul class="tree">{it.found.map((step) => (
            <li key={step.id}><SymbolLink symbol={step} />{" "}
              <span class="faint">{step.path}:{direction === "callers" ? (step.via_line ?? step.line) : step.line}</span>{" "}
              {step.certainty === "resolved" ? null : <Tag>{step.certainty}</Tag>}{step.test ? <Tag>test</Tag> : null}</li>
          ))}</ul>
        </>
      )}</Show>
  );
}

export const SymbolLink = ({ symbol }: { symbol: Pick<CodeSymbol, "id" | "qualified_name"> }) =>
  <a href={address("graph", ["explore"], { symbol: symbol.id })} title="Show in the graph"><code>{symbol.qualified_name}</code></a>;

/** Buttons for the file around a place, similar code, callers and callees. */
export function Actions({ place }: { place: Place }) {
  const [open, setOpen] = useState<string | null>(null);
  const symbol = place.symbol ? `${place.path}:${place.symbolLine ?? place.start}` : null;
  const all: [string, () => Children][] = [
    ["File", () => <FileView place={place} />],
    ["Similar", () => <Similar place={place} />],
  ];
  if (symbol) {
    all.push(["Callers", () => <Neighbours symbol={symbol} direction="callers" />], ["Callees", () => <Neighbours symbol={symbol} direction="callees" />]);
  }
  const shown = all.find(([name]) => name === open)?.[1];
  return (
    <>
      <div class="row">
        {all.map(([name]) => <button key={name} type="button" aria-expanded={open === name} onClick={() => setOpen(open === name ? null : name)}>{name}</button>)}
        {symbol ? <a href={address("graph", ["explore"], { symbol })}>Show in the graph</a> : null}
      </div>
      <div aria-live="polite">{shown ? <div key={open}>{shown()}</div> : null}</div>
    </>
  );
}
