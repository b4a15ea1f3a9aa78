/** Memory: wings, rooms and drawers, and facts by time. */

import { useEffect, useRef, useState } from "preact/hooks";
import { answer, api } from "../api/client";
import type { components } from "../api/schema";
import { count, textOf } from "../lib/format";
import { address, type Route } from "../lib/route";
import { Confirmed, ErrorBox, Faint, Field, Show, Tabs, Tag, tell, Time, useAnswer } from "../ui/parts";
import { Facts } from "./facts";

type Drawer = components["schemas"]["FullDrawer"];

const DRAWERS = 50;
/** The room of a wing that is an agent's diary. */
const DIARY = "diary";

export function Memory({ route }: { route: Route }) {
  const isFacts = route.rest.length === 0 && route.query.has("facts");
  return (
    <>
      <Tabs name="Kinds of memory" tabs={[["#/memory", "Drawers and diaries"], ["#/memory?facts=all", "Facts over time"]]} current={isFacts ? "#/memory?facts=all" : "#/memory"} />
      {isFacts ? <Facts entity={route.query.get("entity") ?? ""} /> : <Rooms wing={route.rest[0]} room={route.rest[1]} />}
    </>
  );
}

function Rooms({ wing, room }: { wing: string | undefined; room: string | undefined }) {
  const taxonomy = useAnswer((signal) => answer(api.GET("/v1/memory/taxonomy", { signal })), []);
  const heading = wing ? (room ? (room === DIARY ? `Diary of ${wing}` : `${wing} / ${room}`) : wing) : "All drawers, the newest first";
  return (
    <div class="rooms">
      <nav aria-label="Wings and rooms">
        <Show of={taxonomy}>{({ wings }) => {
          const names = Object.entries(wings);
          if (names.length === 0) return <Faint>No drawers yet. <code>isolith memory add</code> stores a text.</Faint>;
          return (
            <ul class="tree">
              <li><a href="#/memory" aria-current={wing ? undefined : "true"}>All</a></li>
              {names.map(([name, rooms]) => (
                <li key={name}>
                  <a href={address("memory", [name])} aria-current={name === wing && !room ? "true" : undefined}>{name}</a>
                  <span class="faint"> {Object.values(rooms).reduce((sum, it) => sum + it, 0)}</span>
                  <ul class="tree">{Object.entries(rooms).map(([inner, number]) => (
                    <li key={inner}><a href={address("memory", [name, inner])} aria-current={name === wing && inner === room ? "true" : undefined}>{inner}</a>
                      {inner === DIARY ? <Tag>diary</Tag> : null}<span class="faint"> {number}</span></li>
                  ))}</ul>
                </li>
              ))}
            </ul>
          );
        }}</Show>
      </nav>
      <section>
        <h2>{heading}</h2>
        <Drawers key={`${wing ?? ""}/${room ?? ""}`} wing={wing} room={room} changed={taxonomy.again} />
      </section>
    </div>
  );
}

/** What was just done, and how to undo it. */
interface Done {
  text: string;
  undo: () => Promise<void>;
}

function Drawers({ wing, room, changed }: { wing: string | undefined; room: string | undefined; changed: () => void }) {
  const [all, setAll] = useState<{ drawers: Drawer[]; total: number; next: string | null } | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [done, setDone] = useState<Done | null>(null);
  const attempt = async (work: () => Promise<void>) => {
    setError(null);
    try {
      await work();
    } catch (problem) {
      setError(problem);
    }
  };
  const load = (cursor: string | null) => attempt(async () => {
    const query = { ...(wing ? { wing } : {}), ...(room ? { room } : {}), ...(cursor ? { cursor } : {}), limit: DRAWERS };
    const page = await answer(api.GET("/v1/memory/drawers", { params: { query } }));
    setAll((before) => ({ drawers: [...(cursor ? (before?.drawers ?? []) : []), ...page.drawers], total: page.total, next: page.next_cursor ?? null }));
  });
  useEffect(() => { void load(null); }, []);
  const refresh = async () => { await load(null); changed(); };
  const remove = (it: Drawer) => attempt(async () => {
    await answer(api.DELETE("/v1/memory/drawers/{id}", { params: { path: { id: it.id } } }));
    const undo = async () => {
      const { text, wing, room, source, author, date, tags, metadata } = it;
      await answer(api.POST("/v1/memory/drawers", { body: { text, wing, room, source, author, date, tags, metadata } }));
    };
    setDone({ text: `A drawer of ${it.wing} / ${it.room} was deleted.`, undo });
    tell("deleted");
    await refresh();
  });
  const edit = (it: Drawer, changes: { text: string; wing: string; room: string; tags: string[] }) => attempt(async () => {
    const params = { path: { id: it.id } };
    await answer(api.PATCH("/v1/memory/drawers/{id}", { params, body: changes }));
    const { text, wing, room, tags } = it;
    setDone({ text: "The drawer was changed.", undo: async () => { await answer(api.PATCH("/v1/memory/drawers/{id}", { params, body: { text, wing, room, tags } })); } });
    tell("changed");
    await refresh();
  });
  const undo = (it: Done) => attempt(async () => {
    await it.undo();
    setDone(null);
    tell("undone");
    await refresh();
  });
  return (
    <>
      {error ? <ErrorBox error={error} /> : null}
      {done ? <div class="card fine undo" role="status">{done.text} <button type="button" onClick={() => void undo(done)}>Undo</button></div> : null}
      {all === null ? (error ? null : <Faint>Loading…</Faint>) : all.drawers.length === 0 ? <Faint>No drawers here.</Faint> : (
        <>
          <Faint>{all.drawers.length} of {count(all.total, "drawer")}</Faint>
          {all.drawers.map((it) => <Card key={it.id + it.updated_at} it={it} remove={() => void remove(it)} edit={(changes) => void edit(it, changes)} />)}
          {all.next ? <button type="button" onClick={() => void load(all.next)}>More</button> : null}
        </>
      )}
    </>
  );
}

function Card({ it, remove, edit }: { it: Drawer; remove: () => void; edit: (changes: { text: string; wing: string; room: string; tags: string[] }) => void }) {
  const [editing, setEditing] = useState(false);
  if (editing) return <Editor it={it} cancel={() => setEditing(false)} edit={(changes) => { setEditing(false); edit(changes); }} />;
  return (
    <article class="card">
      <pre>{it.text}</pre>
      <p class="faint">
        <Tag>{it.wing} / {it.room}</Tag>{it.date ? <Tag>{it.date}</Tag> : null}{it.author ? <Tag>by {it.author}</Tag> : null}{it.source ? <Tag>from {it.source}</Tag> : null}
        {it.tags.map((name) => <Tag key={name}>#{name}</Tag>)}{Object.entries(it.metadata).map(([key, value]) => <Tag key={key}>{key}: {textOf(value)}</Tag>)}
        stored <Time at={it.created_at} /> · <code>{it.id}</code>
      </p>
      <div class="row">
        <button type="button" onClick={() => setEditing(true)}>Edit</button>
        <Confirmed name="Delete" question="Delete this drawer?" run={remove} />
      </div>
    </article>
  );
}

function Editor({ it, cancel, edit }: { it: Drawer; cancel: () => void; edit: (changes: { text: string; wing: string; room: string; tags: string[] }) => void }) {
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => form.current?.querySelector("textarea")?.focus(), []);
  const submit = (event: Event) => {
    event.preventDefault();
    const data = new FormData(form.current ?? undefined);
    const value = (name: string) => String(data.get(name) ?? "");
    const tags = value("tags").split(",").map((tag) => tag.trim()).filter(Boolean);
    edit({ text: value("text"), wing: value("wing").trim(), room: value("room").trim(), tags });
  };
  return (
    <form ref={form} class="card" onSubmit={submit}>
      <textarea name="text" rows={Math.min(20, it.text.split("\n").length + 2)} aria-label="Text" required>{it.text}</textarea>
      <div class="row">
        <Field name="Wing"><input name="wing" defaultValue={it.wing} required /></Field>
        <Field name="Room"><input name="room" defaultValue={it.room} required /></Field>
        <Field name="Tags, with commas"><input name="tags" defaultValue={it.tags.join(", ")} /></Field>
      </div>
      <div class="row"><button class="main">Save</button><button type="button" onClick={cancel}>Cancel</button></div>
    </form>
  );
}
