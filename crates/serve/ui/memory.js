// Memory: wings, rooms and drawers, and facts by time.

import { api } from "./api.js";
import { count, el, errorBox, faint, field, fill, into, tag, tell, time } from "./dom.js";

export const title = "Memory";

const DRAWERS = 50;
const FACTS = 100;

export function show(place, { rest: [wing, room], query }) {
  const [rooms, content] = [el("nav", { "aria-label": "Wings and rooms" }), el("div")];
  const isFacts = wing === undefined && query.has("facts");
  fill(place,
    el("p", {}, el("a", { href: "#/memory", "aria-current": isFacts ? null : "true" }, "Drawers"), " · ",
      el("a", { href: "#/memory?facts", "aria-current": isFacts ? "true" : null }, "Timeline of facts")),
    rooms, content);
  if (isFacts) {
    facts(content, query.get("entity") ?? "");
    return;
  }
  into(rooms, api("/memory/taxonomy"), (taxonomy) => tree(taxonomy, wing, room));
  drawers(content, wing, room);
}

function tree({ wings }, wing, room) {
  const names = Object.entries(wings);
  if (names.length === 0) return faint("No drawers yet. ", el("code", {}, "isolith memory add"), " stores a text.");
  const link = (path, name, number, current) => el("li", {},
    el("a", { href: `#/memory/${path.map(encodeURIComponent).join("/")}`, "aria-current": current ? "true" : null }, name),
    el("span", { class: "faint" }, ` ${number}`));
  return el("ul", { class: "tree" }, names.map(([name, rooms]) => {
    const total = Object.values(rooms).reduce((sum, number) => sum + number, 0);
    const item = link([name], name, total, name === wing && !room);
    item.append(el("ul", { class: "tree" }, Object.entries(rooms).map(([inner, number]) =>
      link([name, inner], inner, number, name === wing && inner === room))));
    return item;
  }));
}

/// A list that goes on with the next page when asked to.
function paged(place, load, show, none) {
  const list = el("div");
  const more = el("button", { type: "button", hidden: true }, "More");
  let cursor;
  const next = async () => {
    more.disabled = true;
    try {
      const answer = await load(cursor);
      cursor = answer.next_cursor;
      list.append(...show(answer));
      more.hidden = !cursor;
      more.disabled = false;
      if (!list.hasChildNodes()) list.append(none);
      tell("list loaded");
    } catch (error) {
      fill(list, errorBox(error));
    }
  };
  more.addEventListener("click", next);
  place.append(list, more);
  next();
}

function drawers(place, wing, room) {
  const heading = wing ? (room ? `${wing} / ${room}` : wing) : "All drawers, the newest first";
  fill(place, el("h2", {}, heading));
  const load = (cursor) => api("/memory/drawers", { query: { wing, room, cursor, limit: DRAWERS } });
  paged(place, load, (answer) => answer.drawers.map(drawer), faint("No drawers here."));
}

function drawer(it) {
  const metadata = Object.entries(it.metadata ?? {});
  return el("article", { class: "card" },
    el("pre", {}, it.text),
    el("p", { class: "faint" },
      tag(`${it.wing} / ${it.room}`), it.date ? tag(it.date) : null, it.author ? tag(`by ${it.author}`) : null,
      it.source ? tag(`from ${it.source}`) : null, it.tags.map((name) => tag(`#${name}`)),
      metadata.map(([key, value]) => tag(`${key}: ${typeof value === "string" ? value : JSON.stringify(value)}`)),
      "stored ", time(it.created_at), " · ", el("code", {}, it.id)));
}

function facts(place, entity) {
  const name = el("input", { type: "search", value: entity, placeholder: "all entities" });
  const form = el("form", { class: "row" }, field("Entity", name, "grow"), el("button", { class: "main" }, "Show"));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    location.hash = `#/memory?facts&entity=${encodeURIComponent(name.value.trim())}`;
  });
  const load = (cursor) => api("/facts/timeline", { query: { entity, cursor, limit: FACTS } });
  const counts = el("p", { class: "faint" });
  into(counts, api("/facts/stats"), (it) =>
    `${count(it.facts, "fact")}: ${it.current} true now, ${it.past} past, ${it.future} future, about ${count(it.entities, "entity", "entities")}`);
  fill(place, form, counts);
  paged(place, load, (answer) => (answer.facts.length ? [el("ul", { class: "timeline" }, answer.facts.map(fact))] : []),
    faint("No facts. ", el("code", {}, "isolith fact add Ada works_at Acme --from 2024-01-01"), " stores one."));
}

function fact(it) {
  const from = it.valid_from ?? "unknown start";
  const to = it.valid_to ?? (it.current ? "now" : "open");
  const about = (name) => el("a", { href: `#/memory?facts&entity=${encodeURIComponent(name)}` }, name);
  const sources = it.sources.flatMap((source) => [source.drawer && `drawer ${source.drawer}`, source.file, source.agent && `by ${source.agent}`]);
  const known = sources.filter(Boolean);
  return el("li", {},
    el("span", { class: "faint" }, `${from} – ${to} `),
    el("div", {}, about(it.subject), " ", el("strong", {}, it.predicate), " ", about(it.object), " ",
      it.current ? tag("true now", "good") : tag("not now"),
      it.confidence < 1 ? tag(`confidence ${it.confidence}`) : null,
      it.superseded_by ? tag(`replaced by ${it.superseded_by}`) : null),
    el("div", { class: "faint" }, el("code", {}, it.id), known.length ? ` from ${known.join(", ")}` : "", ", recorded ", time(it.recorded_at)));
}
