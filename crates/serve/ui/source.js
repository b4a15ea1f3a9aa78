// Code with line numbers, and what can be asked about a place in it.

import { api } from "./api.js";
import { count, el, faint, into, tag } from "./dom.js";

/// Lines of code from a first line on; those of a hit are marked.
export function source(parts, { marked = null, label = "Code" } = {}) {
  const body = el("tbody");
  let next = null;
  for (const { line, text } of parts) {
    const lines = text.replace(/\n$/, "").split("\n");
    // Parts of a file can overlap, and blank lines between them are not stored.
    const skipped = next === null ? 0 : Math.max(0, next - line);
    if (next !== null && line > next) body.append(el("tr", {}, el("td", { class: "number" }, "⋮"), el("td")));
    lines.slice(skipped).forEach((content, at) => {
      const number = line + skipped + at;
      const isHit = marked && number >= marked[0] && number <= marked[1];
      body.append(el("tr", { class: isHit ? "hit" : null },
        el("td", { class: "number" }, number), el("td", {}, content)));
    });
    next = Math.max(next ?? 0, line + lines.length);
  }
  return el("div", { class: "source", tabindex: "0", role: "region", "aria-label": label }, el("table", {}, body));
}

const fullPath = (hit) => `${hit.root}/${hit.path}`;

/// The file around a hit, scrolled to it.
async function file(hit) {
  const found = await api("/code/chunks", { query: { path: fullPath(hit), line: 1, end_line: 1_000_000 } });
  const parts = found.chunks.map((chunk) => ({ line: chunk.start_line, text: chunk.text }));
  return { found, parts, marked: [hit.start_line, hit.end_line] };
}

function showFile({ found, parts, marked }) {
  const view = source(parts, { marked, label: `The file ${found.path}` });
  requestAnimationFrame(() => {
    const row = view.querySelector("tr.hit");
    if (row) view.scrollTop = row.offsetTop - 60;
  });
  return [
    found.stale ? el("p", { class: "warn" }, "The file has changed since it was indexed.") : null,
    found.truncated ? faint("The file is long; this is its beginning.") : null,
    view,
  ];
}

function showSimilar(answer) {
  if (answer.hits.length === 0) return faint("Nothing similar was found.");
  return el("ul", { class: "tree" }, answer.hits.map((hit) => el("li", {},
    el("details", {},
      el("summary", {}, el("code", {}, `${hit.path}:${hit.start_line}`), " ", hit.symbol ?? "", " ", tag(hit.kind)),
      source([{ line: hit.snippet_line, text: hit.snippet }], { label: `${hit.path}:${hit.start_line}` })))));
}

function showNeighbours(answer, direction) {
  const heading = faint(`${count(answer.found.length, direction.slice(0, -1))} of ${answer.symbol.qualified_name}`,
    answer.more ? ", and more" : "",
    answer.likely ? `; ${count(answer.likely, "likely one")} not certain` : "", ".");
  if (answer.found.length === 0) {
    return faint(`No ${direction} of ${answer.symbol.qualified_name} found. Calls inside macros and through dynamic dispatch are not seen.`);
  }
  return [heading, el("ul", { class: "tree" }, answer.found.map((step) => el("li", {},
    el("code", {}, step.qualified_name), " ",
    el("span", { class: "faint" }, `${step.path}:${direction === "callers" ? step.via_line ?? step.line : step.line}`), " ",
    step.certainty === "resolved" ? null : tag(step.certainty), step.test ? tag("test") : null)))];
}

/// Buttons for the file around a hit, similar code, callers and callees.
export function actions(hit) {
  const panel = el("div", { "aria-live": "polite" });
  // A position names a symbol without doubt, where several have the same name.
  const symbol = hit.symbol && `${hit.path}:${hit.symbol_line ?? hit.start_line}`;
  const neighbours = (direction) => [
    direction[0].toUpperCase() + direction.slice(1),
    () => api(`/graph/${direction}`, { query: { symbol } }),
    (answer) => showNeighbours(answer, direction),
  ];
  const all = [
    ["File", () => file(hit), showFile],
    ["Similar", () => api("/code/similar", { query: { path: fullPath(hit), line: hit.symbol_line ?? hit.start_line } }), showSimilar],
    ...(symbol ? [neighbours("callers"), neighbours("callees")] : []),
  ];
  const buttons = all.map(([name, ask, show]) => {
    const button = el("button", { type: "button", "aria-expanded": "false" }, name);
    button.addEventListener("click", () => {
      const wasOpen = button.getAttribute("aria-expanded") === "true";
      for (const other of buttons) other.setAttribute("aria-expanded", "false");
      if (wasOpen) {
        panel.replaceChildren();
        return;
      }
      button.setAttribute("aria-expanded", "true");
      panel.textContent = "Loading…";
      into(panel, ask(), show);
    });
    return button;
  });
  return [el("div", { class: "row" }, buttons), panel];
}
