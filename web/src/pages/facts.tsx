/** Facts as bars over time, and what was true at a moment. */

import { useEffect, useMemo, useState } from "preact/hooks";
import { answer, api } from "../api/client";
import type { Fact } from "../api/schema";
import { count } from "../lib/format";
import { address } from "../lib/route";
import { holds, span, start, ticks } from "../lib/time";
import { Confirmed, ErrorBox, Faint, Field, tell, useSettled, useWidth } from "../ui/parts";

const DAY = 86_400_000;
const PAGE = 1_000;
/** Facts that are loaded at most, and bars that are drawn. */
const MOST = 5_000;
const BARS = 200;
const ROW = 22;
const NAMES = 250;

export function Facts({ entity }: { entity: string }) {
  const [typed, setTyped] = useState(entity);
  const [loaded, setLoaded] = useState<{ facts: Fact[]; more: boolean } | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [turn, setTurn] = useState(0);
  const names = useNames(typed);
  useEffect(() => setTyped(entity), [entity]);
  useEffect(() => {
    const own = new AbortController();
    all(entity, own.signal).then((it) => { setLoaded(it); setError(null); tell(count(it.facts.length, "fact")); }, (problem: unknown) => { if (!own.signal.aborted) setError(problem); });
    return () => own.abort();
  }, [entity, turn]);
  const show = (event: Event) => {
    event.preventDefault();
    location.hash = address("memory", [], { facts: "all", entity: typed.trim() });
  };
  return (
    <>
      <form class="row" onSubmit={show}>
        <Field name="Entity" grow>
          <input type="search" value={typed} placeholder="all entities" list="entities" onInput={(event) => setTyped(event.currentTarget.value)} />
          <datalist id="entities">{names.map((it) => <option key={it} value={it} />)}</datalist>
        </Field>
        <button class="main">Show</button>
        {entity ? <a href="#/memory?facts=all">All entities</a> : null}
      </form>
      {error ? <ErrorBox error={error} /> : null}
      {loaded === null ? (error ? null : <Faint>Loading…</Faint>) : loaded.facts.length === 0
        ? <Faint>{entity ? `No facts about ${entity}.` : <>No facts. <code>isolith fact add Ada works_at Acme --from 2024-01-01</code> stores one.</>}</Faint>
        : <Timeline facts={loaded.facts} more={loaded.more} again={() => setTurn((it) => it + 1)} />}
    </>
  );
}

async function all(entity: string, signal: AbortSignal): Promise<{ facts: Fact[]; more: boolean }> {
  const facts: Fact[] = [];
  let cursor: string | null = null;
  do {
    const query = { limit: PAGE, ...(entity ? { entity } : {}), ...(cursor ? { cursor } : {}) };
    const page: { facts: Fact[]; next_cursor?: string | null } = await answer(api.GET("/v1/facts/timeline", { params: { query }, signal }));
    facts.push(...page.facts);
    cursor = page.next_cursor ?? null;
  } while (cursor && facts.length < MOST);
  return { facts, more: cursor !== null };
}

/** Names of entities that contain what is typed. */
function useNames(typed: string): string[] {
  const asked = useSettled(typed.trim(), 200);
  const [names, setNames] = useState<string[]>([]);
  useEffect(() => {
    const own = new AbortController();
    const query = { limit: 20, ...(asked ? { like: asked } : {}) };
    answer(api.GET("/v1/facts/entities", { params: { query }, signal: own.signal })).then(({ entities }) => setNames(entities.map((it) => it.name)), () => undefined);
    return () => own.abort();
  }, [asked]);
  return names;
}

const dayOf = (at: number) => new Date(at).toISOString().slice(0, 10);

function Timeline({ facts, more, again }: { facts: Fact[]; more: boolean; again: () => void }) {
  const now = useMemo(() => Date.now(), [facts]);
  const range = useMemo(() => span(facts, now), [facts, now]);
  const [at, setAt] = useState(now);
  const [onlyTrue, setOnlyTrue] = useState(false);
  const isTrue = (fact: Fact) => holds(fact, at);
  const trueNow = facts.filter(isTrue);
  const shown = (onlyTrue ? trueNow : facts).slice(0, BARS);
  const isToday = dayOf(at) === dayOf(now);
  const date = (text: string) => { const moment = start(text); if (moment !== null) setAt(moment + DAY / 2); };
  return (
    <>
      <div class="card asof">
        <div class="row">
          <Field name="As of, by date"><input type="date" value={dayOf(at)} onInput={(event) => date(event.currentTarget.value)} /></Field>
          <Field name="As of, by slider" grow>
            <input type="range" min={range[0]} max={range[1]} step={DAY} value={at} aria-valuetext={dayOf(at)} onInput={(event) => setAt(Number(event.currentTarget.value))} />
          </Field>
          {isToday ? null : <button type="button" onClick={() => setAt(now)}>Today</button>}
          <label class="check"><input type="checkbox" checked={onlyTrue} onChange={(event) => setOnlyTrue(event.currentTarget.checked)} /> Only what was true then</label>
        </div>
        <p aria-live="polite"><strong>{trueNow.length}</strong> of {count(facts.length, "fact")} {isToday ? "are true today" : `were true on ${dayOf(at)}`}.{more ? ` There are more: these are the first ${facts.length}.` : ""}</p>
      </div>
      <Bars facts={shown} range={range} at={at} now={now} setAt={setAt} />
      {facts.length > BARS && !onlyTrue ? <Faint>The first {BARS} facts are drawn; all are below.</Faint> : null}
      <h2>{isToday ? "True today" : `True on ${dayOf(at)}`}</h2>
      {trueNow.length ? <ul class="facts-list">{trueNow.map((fact) => <Item key={fact.id} fact={fact} again={again} />)}</ul> : <Faint>Nothing that is recorded here.</Faint>}
      {trueNow.length < facts.length ? (
        <details open={facts.length < 60}><summary>Not true {isToday ? "today" : "then"}: {count(facts.length - trueNow.length, "fact")}</summary>
          <ul class="facts-list">{facts.filter((it) => !isTrue(it)).map((fact) => <Item key={fact.id} fact={fact} again={again} />)}</ul></details>
      ) : null}
    </>
  );
}

function Bars({ facts, range, at, now, setAt }: { facts: Fact[]; range: [number, number]; at: number; now: number; setAt: (at: number) => void }) {
  const [place, width] = useWidth();
  const names = Math.min(NAMES, width * 0.38);
  const room = Math.max(50, width - names - 8);
  const x = (moment: number) => names + ((moment - range[0]) / (range[1] - range[0])) * room;
  const height = facts.length * ROW + 24;
  const chars = Math.floor(names / 6.6);
  const click = (event: MouseEvent) => {
    const box = (event.currentTarget as SVGElement).getBoundingClientRect();
    const part = (event.clientX - box.left - names) / room;
    if (part >= 0 && part <= 1) setAt(range[0] + part * (range[1] - range[0]));
  };
  return (
    <div ref={place} class="bars">
      <svg width={width} height={height} role="img" aria-label={`Timeline of ${count(facts.length, "fact")}; the lists below have the same`} onClick={click}>
        {width ? ticks(range, Math.max(2, Math.floor(room / 90))).map((tick) => (
          <g key={tick.at} class="tick"><line x1={x(tick.at)} x2={x(tick.at)} y1={18} y2={height} /><text x={x(tick.at) + 2} y={12}>{tick.text}</text></g>
        )) : null}
        {facts.map((fact, index) => {
          const [from, to] = [start(fact.valid_from) ?? range[0], start(fact.valid_to) ?? range[1]];
          const name = `${fact.subject} ${fact.predicate} ${fact.object}`;
          const y = index * ROW + 22;
          return (
            <g key={fact.id}>
              <title>{`${name}: ${fact.valid_from ?? "unknown start"} – ${fact.valid_to ?? "open"}`}</title>
              <text class="name" x={0} y={y + 12}>{name.length > chars ? `${name.slice(0, chars - 1)}…` : name}</text>
              <rect class={holds(fact, at) ? "true" : "past"} x={x(from)} y={y + 2} width={Math.max(3, x(to) - x(from))} height={ROW - 8} rx={3} />
            </g>
          );
        })}
        <line class="now" x1={x(now)} x2={x(now)} y1={16} y2={height} />
        <line class="at" x1={x(at)} x2={x(at)} y1={0} y2={height} />
      </svg>
    </div>
  );
}

/** A fact; ending it and replacing it keep what was true before. */
function Item({ fact, again }: { fact: Fact; again: () => void }) {
  const [replacing, setReplacing] = useState<string | null>(null);
  const [error, setError] = useState<unknown>(null);
  const attempt = async (work: Promise<unknown>) => {
    try {
      await work;
      setReplacing(null);
      again();
    } catch (problem) {
      setError(problem);
    }
  };
  const about = (name: string) => <a href={address("memory", [], { facts: "all", entity: name })}>{name}</a>;
  const sources = fact.sources.flatMap((it) => [it.drawer && `drawer ${it.drawer}`, it.file, it.agent && `by ${it.agent}`]).filter(Boolean);
  const replace = (event: Event) => {
    event.preventDefault();
    void attempt(answer(api.POST("/v1/facts/supersede", { body: { id: fact.id, object: replacing ?? "" } })));
  };
  return (
    <li>
      <div>{about(fact.subject)} <strong>{fact.predicate}</strong> {about(fact.object)}</div>
      <div class="faint">{fact.valid_from ?? "unknown start"} – {fact.valid_to ?? (fact.current ? "now" : "open")}
        {fact.confidence < 1 ? `, confidence ${fact.confidence}` : ""}{fact.superseded_by ? ", replaced by a later fact" : ""}{sources.length ? `, from ${sources.join(", ")}` : ""} · <code>{fact.id}</code></div>
      {error ? <ErrorBox error={error} /> : null}
      {fact.current ? (
        <div class="row small">
          {replacing === null ? <button type="button" onClick={() => setReplacing("")}>Replace…</button> : (
            <form class="row" onSubmit={replace}>
              <Field name={`${fact.subject} ${fact.predicate} (from now on)`}><input value={replacing} required onInput={(event) => setReplacing(event.currentTarget.value)} /></Field>
              <button class="main">Replace</button><button type="button" onClick={() => setReplacing(null)}>Cancel</button>
            </form>
          )}
          <Confirmed name="End now" question="No longer true from now on? It stays in the timeline; a new fact can say the opposite."
            run={() => void attempt(answer(api.POST("/v1/facts/invalidate", { body: { id: fact.id } })))} />
        </div>
      ) : null}
    </li>
  );
}
