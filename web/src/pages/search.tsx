/** One box for code, memory and collections, answered while typing. */

import { useEffect, useRef, useState } from "preact/hooks";
import { answer, ApiError, api } from "../api/client";
import type { components } from "../api/schema";
import { count } from "../lib/format";
import { address, type Route } from "../lib/route";
import { type Children, Choice, Command, ErrorBox, Faint, Field, Tag, tell, useSettled } from "../ui/parts";
import { Actions, Source } from "../ui/source";

type Schemas = components["schemas"];
type CodeAnswer = Schemas["CodeAnswer"];
type CodeHit = CodeAnswer["hits"][number];
type MemoryAnswer = Schemas["MemoryAnswer"];
type MemoryHit = MemoryAnswer["hits"][number];
type RecordAnswer = { name: string; hits: Schemas["RecordHit"][]; degraded: string | null };

const KINDS = ["function", "method", "class", "module", "section", "text"] as const;
const MODES = [["", "by keywords and meaning"], ["keyword", "by keywords"], ["vector", "by meaning"],
  ["exact", "every match of the text"], ["regex", "every match of a regular expression"]] as const;
const PLACES = [["", "everything"], ["code", "code"], ["memory", "memory"], ["collections", "collections"]] as const;
const LIMIT = 20;
const FEW = 5;
/** Number of collections that are searched, the largest ones. */
const COLLECTIONS = 8;

const FILTERS = ["language", "path", "kind", "mode", "in"] as const;
type Filters = Record<(typeof FILTERS)[number], string>;

interface Answers {
  code: CodeAnswer | null;
  memory: MemoryAnswer | null;
  collections: RecordAnswer[] | null;
  errors: Partial<Record<"code" | "memory" | "collections", unknown>>;
}

export function Search({ route }: { route: Route }) {
  const [text, setText] = useState(route.query.get("q") ?? "");
  const [filters, setFilters] = useState<Filters>(() =>
    Object.fromEntries(FILTERS.map((name) => [name, route.query.get(name) ?? ""])) as Filters);
  const [state, setState] = useState<{ answers: Answers | null; busy: boolean }>({ answers: null, busy: false });
  const [turn, setTurn] = useState(0);
  const box = useRef<HTMLInputElement>(null);
  const place = useRef<HTMLDivElement>(null);
  const asked = useSettled(JSON.stringify({ text: text.trim(), filters }), 180);

  useEffect(() => box.current?.focus(), []);
  useEffect(() => {
    const { text, filters } = JSON.parse(asked) as { text: string; filters: Filters };
    // In the address, so that a search can be kept or sent to somebody.
    history.replaceState(null, "", address("search", [], { q: text, ...filters }));
    if (!text) {
      setState({ answers: null, busy: false });
      return;
    }
    const own = new AbortController();
    setState((before) => ({ ...before, busy: true }));
    void ask(text, filters, own.signal).then((answers) => {
      if (own.signal.aborted) return;
      setState({ answers, busy: false });
      tell(`${count(answers.code?.hits.length ?? 0, "place")} in code, ${count(answers.memory?.hits.length ?? 0, "memory", "memories")}`);
    });
    return () => own.abort();
  }, [asked, turn]);

  const set = (name: keyof Filters) => (value: string) => setFilters((before) => ({ ...before, [name]: value }));
  const typed = (name: keyof Filters) => (event: { currentTarget: HTMLInputElement }) => set(name)(event.currentTarget.value);
  return (
    <div ref={place} onKeyDown={(event) => move(event, box.current, place.current)}>
      <form role="search" onSubmit={(event) => { event.preventDefault(); setTurn((it) => it + 1); }}>
        <div class="row">
          <Field name="Search" grow>
            <input ref={box} type="search" value={text} placeholder="A question, keywords or a name" autocomplete="off" spellcheck={false}
              aria-describedby="search-help" onInput={(event) => setText(event.currentTarget.value)} />
          </Field>
        </div>
        <p class="faint" id="search-help">Press / to come here, ↓ and ↑ to move through the results.</p>
        <div class="row">
          <Field name="In"><Choice options={PLACES} value={filters.in} onChoose={set("in")} /></Field>
          <Field name="Language"><input value={filters.language} size={10} placeholder="rust" onInput={typed("language")} /></Field>
          <Field name="Path"><input value={filters.path} size={16} placeholder="src or **/*.py" onInput={typed("path")} /></Field>
          <Field name="Kind"><Choice options={[["", "any"], ...KINDS.map((it) => [it, it] as const)]} value={filters.kind} onChoose={set("kind")} /></Field>
          <Field name="How"><Choice options={MODES} value={filters.mode} onChoose={set("mode")} /></Field>
        </div>
      </form>
      <div aria-busy={state.busy}>{state.answers ? <Results answers={state.answers} /> : null}</div>
    </div>
  );
}

async function ask(text: string, filters: Filters, signal: AbortSignal): Promise<Answers> {
  const answers: Answers = { code: null, memory: null, collections: null, errors: {} };
  const isIn = (place: string) => !filters.in || filters.in === place;
  const isText = filters.mode !== "exact" && filters.mode !== "regex";
  const guarded = async <K extends "code" | "memory" | "collections">(name: K, asked: Promise<Answers[K]>) => {
    try {
      answers[name] = await asked;
    } catch (error) {
      answers.errors[name] = error;
    }
  };
  const ofCode = {
    query: text, limit: LIMIT, language: filters.language.trim() || null, path: filters.path.trim() || null,
    kind: (filters.kind || null) as (typeof KINDS)[number] | null, mode: (filters.mode || null) as "hybrid" | null,
  };
  await Promise.all([
    isIn("code") ? guarded("code", answer(api.POST("/v1/code/search", { body: ofCode, signal }))) : null,
    isIn("memory") && isText ? guarded("memory", answer(api.POST("/v1/memory/search", { body: { query: text, limit: FEW }, signal }))) : null,
    isIn("collections") && isText ? guarded("collections", inCollections(text, signal)) : null,
  ]);
  return answers;
}

async function inCollections(text: string, signal: AbortSignal): Promise<RecordAnswer[]> {
  const { collections } = await answer(api.GET("/v1/collections", { signal }));
  const largest = collections.filter((it) => it.records > 0).sort((a, b) => b.records - a.records).slice(0, COLLECTIONS);
  const found = await Promise.all(largest.map(async ({ name, model }) => {
    const body = model?.startsWith("static-") ? { text, keywords: text, limit: FEW } : { keywords: text, limit: FEW };
    const params = { path: { collection: name } };
    // One that cannot be asked does not hide the others.
    const answered = await answer(api.POST("/v1/collections/{collection}/query", { params, body, signal })).catch(() => null);
    return answered ? { name, ...answered } : null;
  }));
  return found.filter((it) => it !== null && it.hits.length > 0) as RecordAnswer[];
}

function Results({ answers: { code, memory, collections, errors } }: { answers: Answers }) {
  const aside = [
    memory || errors.memory ? <Section key="memory" name="Memory" error={errors.memory}>{memory ? <Memories answer={memory} /> : null}</Section> : null,
    collections?.length || errors.collections ? (
      <Section key="collections" name="Collections" error={errors.collections}>
        {collections?.map((it) => <RecordHits key={it.name} answer={it} />)}
      </Section>
    ) : null,
  ].filter(Boolean);
  const inCode = code || errors.code ? <Section name="Code" error={errors.code}>{code ? <CodeHits answer={code} /> : null}</Section> : null;
  return inCode && aside.length ? <div class="both">{inCode}<div>{aside}</div></div> : <>{inCode}{aside}</>;
}

function Section({ name, error, children }: { name: string; error: unknown; children: Children }) {
  const isMissing = error instanceof ApiError && error.code === "no_store";
  return (
    <section aria-label={name}>
      <h2>{name}</h2>
      {isMissing ? <><Faint>No code is indexed yet. Run this in the folder of a project:</Faint><Command text="isolith index" /></> : null}
      {error && !isMissing ? <ErrorBox error={error} /> : null}
      {children}
    </section>
  );
}

function CodeHits({ answer: it }: { answer: CodeAnswer }) {
  const total = it.matches ? `${count(it.matches.total, "match", "matches")} in ${count(it.matches.files, "file")}, ` : "";
  return (
    <>
      <Faint>{total}{count(it.hits.length, "result")} shown, {it.took_ms} ms {it.weak ? <Tag kind="warn">weak: nothing fits well</Tag> : null}</Faint>
      {it.degraded ? <p class="warn">{it.degraded}</p> : null}
      {it.notice ? <p class="warn">{it.notice}</p> : null}
      {it.missing?.length ? <p class="warn">Nothing contains: {it.missing.join(", ")}</p> : null}
      {it.hits.map((hit) => <CodeResult key={`${hit.root}/${hit.path}:${hit.line ?? hit.start_line}`} hit={hit} />)}
    </>
  );
}

function CodeResult({ hit }: { hit: CodeHit }) {
  const where = `${hit.path}:${hit.line ?? hit.start_line}`;
  const name = hit.symbol && (hit.parent ? `${hit.parent}.${hit.symbol}` : hit.symbol);
  return (
    <article class="card result" tabIndex={0} aria-label={where}>
      <div class="hit-head">
        <h3>{where}</h3>{name ? <code>{name}</code> : null}
        <span><Tag>{hit.kind}</Tag><Tag>{hit.language}</Tag>{hit.stale ? <Tag kind="warn">stale: the file has changed</Tag> : null}</span>
      </div>
      <Source parts={[{ line: hit.snippet_line, text: hit.snippet }]} language={hit.language} marked={hit.line ? [hit.line, hit.line] : null} label={where} />
      {hit.why.length ? <Faint>Why: {hit.why.join(" · ")}</Faint> : null}
      {hit.also.length ? (
        <p class="faint">Also in this file: {hit.also.map((it, at) => [at ? ", " : "", <code key={at}>{it.symbol ?? "lines"}</code>, ` ${it.start_line}–${it.end_line}`])}</p>
      ) : null}
      <Actions place={{ root: hit.root, path: hit.path, start: hit.start_line, end: hit.end_line, language: hit.language, symbol: hit.symbol, symbolLine: hit.symbol_line }} />
    </article>
  );
}

function Memories({ answer: it }: { answer: MemoryAnswer }) {
  return (
    <>
      <Faint>{count(it.hits.length, "result")} shown, {it.took_ms} ms {it.weak ? <Tag kind="warn">weak</Tag> : null}</Faint>
      {it.degraded ? <p class="warn">{it.degraded}</p> : null}
      {it.hits.map((hit) => <MemoryResult key={hit.id} hit={hit} />)}
    </>
  );
}

function MemoryResult({ hit }: { hit: MemoryHit }) {
  return (
    <article class="card result" tabIndex={0} aria-label={`memory in ${hit.wing}, ${hit.room}`}>
      <div class="hit-head">
        <h3><a href={address("memory", [hit.wing, hit.room])}>{hit.wing} / {hit.room}</a></h3>
        <span>{hit.date ? <Tag>{hit.date}</Tag> : null}{hit.author ? <Tag>{hit.author}</Tag> : null}{hit.tags.map((it) => <Tag key={it}>{it}</Tag>)}</span>
      </div>
      <pre>{hit.passage || hit.text}</pre>
      {hit.passage && hit.passage !== hit.text ? <details><summary>The whole drawer</summary><pre>{hit.text}</pre></details> : null}
      {hit.why.length ? <Faint>Why: {hit.why.join(" · ")}</Faint> : null}
    </article>
  );
}

function RecordHits({ answer: it }: { answer: RecordAnswer }) {
  return (
    <>
      <h3><a href={address("collections", [it.name])}>{it.name}</a></h3>
      {it.degraded ? <p class="warn">{it.degraded}</p> : null}
      {it.hits.map((hit) => (
        <article key={hit.id} class="card result" tabIndex={0} aria-label={`record ${hit.id}`}>
          <code>{hit.id}</code>
          <pre class="short">{hit.document ?? ""}</pre>
        </article>
      ))}
    </>
  );
}

/** Moves between the box and the results with the arrow keys. */
function move(event: KeyboardEvent, box: HTMLInputElement | null, place: HTMLElement | null) {
  if ((event.key !== "ArrowDown" && event.key !== "ArrowUp") || !box || !place) return;
  const list: HTMLElement[] = [box, ...place.querySelectorAll<HTMLElement>(".result")];
  const at = list.indexOf(document.activeElement as HTMLElement);
  if (at < 0) return;
  event.preventDefault();
  list[Math.min(list.length - 1, Math.max(0, at + (event.key === "ArrowDown" ? 1 : -1)))]?.focus();
}
