/** Collections: their records by page, filtered, by a query, near another one, and as a picture. */

import { useEffect, useState } from "preact/hooks";
import { answer, ApiError, api } from "../api/client";
import type { components } from "../api/schema";
import { count, number, textOf } from "../lib/format";
import { address, type Route } from "../lib/route";
import { type Children, ErrorBox, Faint, Field, Pairs, Show, Table, Tabs, Tag, tell, useAnswer } from "../ui/parts";
import { lazy } from "../ui/lazy";

const Projection = lazy(async () => (await import("./projection")).Projection);

type Collection = components["schemas"]["Collection"];
type StoredRecord = components["schemas"]["Record"];
type Hit = components["schemas"]["RecordHit"];

const PAGE = 25;
const HITS = 20;

export function Collections({ route }: { route: Route }) {
  const name = route.rest[0];
  return name ? <One key={name} name={name} route={route} /> : <List />;
}

function List() {
  const loaded = useAnswer((signal) => answer(api.GET("/v1/collections", { signal })), []);
  const numeric = (name: string) => ({ name, number: true });
  return (
    <Show of={loaded}>{({ collections }) => collections.length === 0 ? <Faint>No collections. <code>isolith ingest FILE</code> loads one.</Faint> : (
      <Table caption={count(collections.length, "collection")} columns={["Name", numeric("Records"), numeric("Dimension"), "Metric", "Model", "Store"]}
        rows={collections.map((it) => [<a href={address("collections", [it.name])}>{it.name}</a>, number(it.records), it.dimension ?? "–", it.metric, it.model ?? "none", it.store])} />
    )}</Show>
  );
}

function One({ name, route }: { name: string; route: Route }) {
  const loaded = useAnswer((signal) => answer(api.GET("/v1/collections/{collection}", { params: { path: { collection: name } }, signal })), [name]);
  const isPicture = route.rest[1] === "picture";
  const here = address("collections", [name]);
  const picture = address("collections", [name, "picture"]);
  return (
    <>
      <p><a href="#/collections">All collections</a></p>
      <Show of={loaded}>{(it) => (
        <>
          <h2>{it.name}</h2>
          <Pairs entries={[
            ["Records", number(it.records)], ["Vectors", `${it.dimension ?? "no dimension yet"}, ${it.metric}`],
            ["Model", it.model ?? "none: queries need a vector or keywords"], ["Store", it.store], ["Generation", `${it.generation}; ${count(it.tail, "change")} since`],
          ]} />
          <Tabs name="Views of the collection" tabs={[[here, "Records"], [picture, "Picture"]]} current={isPicture ? picture : here} />
          {isPicture ? <Projection name={it.name} near={(id) => { location.hash = address("collections", [name], { near: id }); }} /> : <Records of={it} near={route.query.get("near")} />}
        </>
      )}</Show>
    </>
  );
}

/** Whether texts of a collection are embedded by the program itself. */
const isBuiltIn = (it: Collection) => it.model?.startsWith("static-") ?? false;

interface Asked {
  text: string;
  words: string;
  where: string;
  offset: number;
}

type Found = { kind: "page"; records: StoredRecord[]; offset: number } | { kind: "hits"; hits: Hit[]; degraded: string | null };

function Records({ of, near }: { of: Collection; near: string | null }) {
  const [typed, setTyped] = useState<Asked>({ text: "", words: "", where: "", offset: 0 });
  const [asked, setAsked] = useState<Asked>(typed);
  const loaded = useAnswer((signal) => (near === null ? search(of, asked, signal) : neighbours(of, near, signal)), [asked, near]);
  const show = (changes: Partial<Asked>) => {
    setAsked({ ...asked, ...changes });
    if (near !== null) location.hash = address("collections", [of.name]);
  };
  useEffect(() => { if (loaded.data) tell("loaded"); }, [loaded.data]);
  return (
    <>
      <form onSubmit={(event) => { event.preventDefault(); show({ ...typed, offset: 0 }); }}>
        {isBuiltIn(of) ? <div class="row"><Field name="Text" grow><input type="search" value={typed.text} placeholder="the records nearest to this text" onInput={(event) => setTyped({ ...typed, text: event.currentTarget.value })} /></Field></div> : null}
        <div class="row">
          <Field name="Keywords" grow><input type="search" value={typed.words} placeholder="words in documents" onInput={(event) => setTyped({ ...typed, words: event.currentTarget.value })} /></Field>
          <Field name="Filter: where (JSON)" grow><input class="mono" value={typed.where} placeholder='{"year": {"$gte": 2020}}' spellcheck={false} onInput={(event) => setTyped({ ...typed, where: event.currentTarget.value })} /></Field>
          <button class="main">Show</button>
        </div>
      </form>
      {near === null ? null : <p class="news">The nearest neighbours of <code>{near}</code>. <a href={address("collections", [of.name])}>All records</a></p>}
      <div aria-busy={loaded.loading}>
        {loaded.error ? <ErrorBox error={loaded.error} /> : null}
        {loaded.data ? <Results found={loaded.data} of={of} turn={(by) => show({ offset: Math.max(0, asked.offset + by) })} /> : null}
      </div>
    </>
  );
}

async function search(of: Collection, { text, words, where, offset }: Asked, signal: AbortSignal): Promise<Found> {
  const params = { path: { collection: of.name } };
  const filter = where.trim() ? { where: parse(where) } : {};
  const question = { ...(isBuiltIn(of) && text.trim() ? { text: text.trim() } : {}), ...(words.trim() ? { keywords: words.trim() } : {}) };
  if (Object.keys(question).length === 0) {
    const { records } = await answer(api.POST("/v1/collections/{collection}/get", { params, body: { ...filter, limit: PAGE + 1, offset }, signal }));
    return { kind: "page", records, offset };
  }
  const { hits, degraded } = await answer(api.POST("/v1/collections/{collection}/query", { params, body: { ...filter, ...question, limit: HITS }, signal }));
  return { kind: "hits", hits, degraded: degraded ?? null };
}

async function neighbours(of: Collection, id: string, signal: AbortSignal): Promise<Found> {
  const path = { collection: of.name, id };
  const { vector } = await answer(api.GET("/v1/collections/{collection}/records/{id}", { params: { path }, signal }));
  if (!vector) throw new ApiError(0, "bad_input", "this record has no vector", "");
  const body = { vector, limit: HITS + 1 };
  const { hits, degraded } = await answer(api.POST("/v1/collections/{collection}/query", { params: { path: { collection: of.name } }, body, signal }));
  return { kind: "hits", hits: hits.filter((it) => it.id !== id).slice(0, HITS), degraded: degraded ?? null };
}

function parse(text: string): Record<string, unknown> {
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch (error) {
    throw new ApiError(0, "bad_input", error instanceof Error ? error.message : "not JSON", 'a filter is JSON, such as {"year": 2024}');
  }
}

function Results({ found, of, turn }: { found: Found; of: Collection; turn: (by: number) => void }) {
  if (found.kind === "hits") {
    const [first] = found.hits;
    if (!first) return <Faint>Nothing found.</Faint>;
    const kind = first.fused !== null ? "Fused score" : first.distance !== null ? "Distance" : "Score";
    return (
      <>
        {found.degraded ? <p class="warn">{found.degraded}</p> : null}
        <Table caption={`${count(found.hits.length, "hit")}, the best first`} columns={["Id", { name: kind, number: true }, "Document", "Metadata", "Neighbours"]}
          rows={found.hits.map((hit) => { const [id, ...rest] = row(hit, of); return [id, (hit.fused ?? hit.distance ?? hit.score)?.toPrecision(4) ?? "", ...rest]; })} />
      </>
    );
  }
  const shown = found.records.slice(0, PAGE);
  if (shown.length === 0) return <Faint>{found.offset ? "No more records." : "No records match."}</Faint>;
  return (
    <>
      <Table caption={`Records ${found.offset + 1} to ${found.offset + shown.length}`} columns={["Id", "Document", "Metadata", "Neighbours"]} rows={shown.map((it) => row(it, of))} />
      <div class="row">
        <button type="button" disabled={found.offset === 0} onClick={() => turn(-PAGE)}>Previous</button>
        <button type="button" disabled={found.records.length <= PAGE} onClick={() => turn(PAGE)}>Next</button>
      </div>
    </>
  );
}

function row(record: { id: string; document: string | null; metadata: Record<string, unknown> }, of: Collection): Children[] {
  return [
    <code>{record.id}</code>, record.document ?? <span class="faint">none</span>,
    Object.entries(record.metadata).map(([key, value]) => <Tag key={key}>{key}: {textOf(value)}</Tag>),
    of.dimension ? <a href={address("collections", [of.name], { near: record.id })} aria-label={`Nearest neighbours of ${record.id}`}>Nearest</a> : "",
  ];
}
