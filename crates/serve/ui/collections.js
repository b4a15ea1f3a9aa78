// Collections: their records by page, filtered, or by a query.

import { api, latest } from "./api.js";
import { count, el, errorBox, faint, field, fill, into, pairs, table, tag, tell } from "./dom.js";

export const title = "Collections";

const PAGE = 25;
const HITS = 20;

export function show(place, { rest: [name] }) {
  place.textContent = "Loading…";
  if (name) {
    into(place, api(`/collections/${encodeURIComponent(name)}`), one);
  } else {
    into(place, api("/collections"), list);
  }
}

function list({ collections }) {
  if (collections.length === 0) return faint("No collections. ", el("code", {}, "isolith ingest FILE"), " loads one.");
  return table(count(collections.length, "collection"),
    ["Name", ">Records", ">Dimension", "Metric", "Model", "Store"],
    collections.map((it) => [
      el("a", { href: `#/collections/${encodeURIComponent(it.name)}` }, it.name),
      it.records.toLocaleString("en"), it.dimension ?? "–", it.metric, it.model ?? "none", it.store,
    ]));
}

/// Whether texts of a collection are embedded by the program itself.
const isBuiltIn = (collection) => collection.model?.startsWith("static-") ?? false;

function one(collection) {
  const base = `/collections/${encodeURIComponent(collection.name)}`;
  const where = el("input", { class: "mono", placeholder: '{"year": {"$gte": 2020}}', spellcheck: "false" });
  const text = el("input", { type: "search", placeholder: "the records nearest to this text" });
  const words = el("input", { type: "search", placeholder: "words in documents" });
  const results = el("div");
  const ask = latest();
  let offset = 0;

  const load = async () => {
    try {
      const filter = where.value.trim() ? parse(where.value) : undefined;
      const question = { text: isBuiltIn(collection) ? text.value.trim() : "", keywords: words.value.trim() };
      const searches = question.text || question.keywords;
      const body = searches
        ? { where: filter, limit: HITS, text: question.text || undefined, keywords: question.keywords || undefined }
        : { where: filter, limit: PAGE + 1, offset };
      const answer = await ask((signal) => api(`${base}/${searches ? "query" : "get"}`, { method: "POST", body, signal }));
      if (!answer) return;
      fill(results, searches ? hits(answer) : page(answer, offset, turn));
    } catch (error) {
      fill(results, errorBox(error));
    }
  };
  const turn = (by) => {
    offset = Math.max(0, offset + by);
    load();
  };
  const form = el("form", {},
    isBuiltIn(collection) ? el("div", { class: "row" }, field("Text", text, "grow")) : null,
    el("div", { class: "row" }, field("Keywords", words, "grow"),
      field("Filter: where (JSON)", where, "grow"), el("button", { class: "main" }, "Show")));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    offset = 0;
    load();
  });
  load();
  return [
    el("p", {}, el("a", { href: "#/collections" }, "All collections")),
    el("h2", {}, collection.name),
    pairs([
      ["Records", collection.records.toLocaleString("en")],
      ["Vectors", `${collection.dimension ?? "no dimension yet"}, ${collection.metric}`],
      ["Model", collection.model ?? "none: queries need a vector or keywords"],
      ["Store", collection.store],
      ["Generation", `${collection.generation}; ${count(collection.tail, "change")} since`],
    ]),
    form, results,
  ];
}

function parse(text) {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw Object.assign(new Error(error.message), { code: "bad_input", hint: 'a filter is JSON, such as {"year": 2024}' });
  }
}

function page({ records }, offset, turn) {
  const shown = records.slice(0, PAGE);
  const button = (name, by, possible) =>
    el("button", { type: "button", disabled: !possible, onclick: () => turn(by) }, name);
  tell(count(shown.length, "record"));
  if (shown.length === 0) return faint(offset ? "No more records." : "No records match.");
  return [
    table(`Records ${offset + 1} to ${offset + shown.length}`, ["Id", "Document", "Metadata"], shown.map(row)),
    el("div", { class: "row" }, button("Previous", -PAGE, offset > 0), button("Next", PAGE, records.length > PAGE)),
  ];
}

function hits(answer) {
  tell(count(answer.hits.length, "hit"));
  if (answer.hits.length === 0) return faint("Nothing found.");
  const score = (hit) => {
    const number = hit.fused ?? hit.distance ?? hit.score;
    return number === null ? "" : number.toPrecision(4);
  };
  const kind = answer.hits[0].fused !== null ? "Fused score" : answer.hits[0].distance !== null ? "Distance" : "Score";
  return [
    answer.degraded ? el("p", { class: "warn" }, answer.degraded) : null,
    table(`${count(answer.hits.length, "hit")}, the best first`, ["Id", `>${kind}`, "Document", "Metadata"],
      answer.hits.map((hit) => [row(hit)[0], score(hit), ...row(hit).slice(1)])),
  ];
}

function row(record) {
  const metadata = Object.entries(record.metadata ?? {});
  return [
    el("code", {}, record.id),
    record.document ?? el("span", { class: "faint" }, "none"),
    metadata.map(([key, value]) => tag(`${key}: ${typeof value === "string" ? value : JSON.stringify(value)}`)),
  ];
}
