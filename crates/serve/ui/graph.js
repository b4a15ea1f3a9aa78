// Cypher: a table of rows, and a drawing of the nodes and relationships in them.

import { api, latest } from "./api.js";
import { choice, count, el, errorBox, faint, field, fill, table, tell } from "./dom.js";
import { collect, drawing } from "./drawing.js";

export const title = "Graph";

const EXAMPLES = [
  ["", "Examples"],
  ["MATCH (a:Class)-[r:INHERITS]->(b:Class) RETURN a, r, b LIMIT 100", "Classes and what they inherit from"],
  ["MATCH (a:Function)-[r:CALLS]->(b:Function) RETURN a, r, b LIMIT 150", "Functions and what they call"],
  ["MATCH (a:File)-[r:IMPORTS]->(b:File) RETURN a, r, b LIMIT 150", "Files and what they import"],
  ["MATCH (f:Function)<-[:CALLS]-(c) RETURN f.name, f.path, count(c) AS callers ORDER BY callers DESC LIMIT 20", "Functions that are called most"],
];

/// The last query, so that it is there after a look at another page. A link cannot set it: a query
/// can write, and must be a person's own.
let lastQuery = EXAMPLES[1][0];

export function show(place) {
  const box = el("textarea", { rows: 4, spellcheck: "false", "aria-label": "Cypher query" });
  box.value = lastQuery;
  const examples = choice(EXAMPLES, "", { "aria-label": "Examples" });
  const limit = choice([["100", "100"], ["300", "300"], ["1000", "1,000"]], "300");
  const run = el("button", { class: "main" }, "Run");
  const [results, size] = [el("div"), el("p", { class: "faint" })];
  const ask = latest();

  const query = async (next) => {
    lastQuery = box.value;
    if (!box.value.trim()) return;
    run.disabled = true;
    const body = next ? { next, limit: Number(limit.value) } : { query: box.value, limit: Number(limit.value) };
    try {
      const answer = await ask((signal) => api("/graph/query", { method: "POST", body, signal }));
      if (answer) fill(results, view(answer, query));
    } catch (error) {
      fill(results, errorBox(error));
    }
    run.disabled = false;
  };
  const form = el("form", {}, box,
    el("div", { class: "row" }, run, field("Rows", limit), field("Examples", examples),
      el("span", { class: "faint" }, "Ctrl+Enter runs the query. It can also change the graph.")));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    query();
  });
  box.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      query();
    }
  });
  examples.addEventListener("change", () => {
    if (examples.value) box.value = examples.value;
  });
  fill(place, size, form, results);
  api("/graph/stats").then(
    (it) => fill(size, `${count(it.nodes, "node")}, ${count(it.edges, "relationship")}. `, labels(it)),
    (error) => fill(size, errorBox(error)));
  return () => ask.cancel();
}

function labels(stats) {
  const named = stats.labels.filter((it) => it.label).slice(0, 8);
  const types = [...new Set(stats.types.map((it) => it.type))].slice(0, 10);
  return `Labels: ${named.map((it) => it.label).join(", ") || "none"}. Types: ${types.join(", ") || "none"}.`;
}

function view(answer, query) {
  const changed = Object.entries(answer.stats ?? {}).filter(([, number]) => number > 0);
  tell(count(answer.rows.length, "row"));
  const found = collect(answer.rows);
  return [
    answer.degraded ? el("p", { class: "warn" }, answer.degraded) : null,
    changed.length ? el("p", { class: "good" }, changed.map(([name, number]) => `${name.replaceAll("_", " ")}: ${number}`).join(", ")) : null,
    found.nodes.size ? [el("h2", {}, "Drawing"), drawing(found)] : null,
    el("h2", {}, "Rows"),
    answer.columns.length
      ? table(count(answer.rows.length, "row"), answer.columns, answer.rows.map((row) => row.map(cell)))
      : faint("The query returns nothing."),
    answer.next ? el("button", { type: "button", onclick: () => query(answer.next) }, "Next rows") : null,
  ];
}

/// A node or relationship in short, with everything inside; any other value as it is.
function cell(value) {
  if (value === null) return el("span", { class: "faint" }, "null");
  if (typeof value !== "object") return String(value);
  const json = JSON.stringify(value, null, 1);
  if (Array.isArray(value)) return el("code", {}, JSON.stringify(value));
  const short = value.labels ? `(${value.properties.name ?? value.id} :${value.labels.join(":")})`
    : value.type ? `[:${value.type}] ${value.start} → ${value.end}`
      : value.nodes ? `path with ${count(value.nodes.length, "node")}` : null;
  if (!short) return el("code", {}, JSON.stringify(value));
  return el("details", {}, el("summary", {}, el("code", {}, short)), el("pre", {}, json));
}
