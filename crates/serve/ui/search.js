// One box for code and memory, answered while typing.

import { api, latest } from "./api.js";
import { choice, command, count, debounced, el, errorBox, faint, field, fill, tag, tell } from "./dom.js";
import { actions, source } from "./source.js";

export const title = "Search";

const KINDS = ["function", "method", "class", "module", "section", "text"];
const MODES = [["", "by keywords and meaning"], ["keyword", "by keywords"], ["vector", "by meaning"],
  ["exact", "every match of the text"], ["regex", "every match of a regular expression"]];
const LIMIT = 20;
const MEMORIES = 5;

export function show(place, { query }) {
  const box = el("input", { type: "search", value: query.get("q") ?? "", placeholder: "A question, keywords or a name",
    autocomplete: "off", spellcheck: "false", "aria-describedby": "search-help" });
  const language = el("input", { value: query.get("language") ?? "", size: 10, placeholder: "rust" });
  const path = el("input", { value: query.get("path") ?? "", size: 16, placeholder: "src or **/*.py" });
  const kind = choice([["", "any"], ...KINDS.map((it) => [it, it])], query.get("kind"));
  const mode = choice(MODES, query.get("mode"));
  const where = choice([["", "code and memory"], ["code", "code"], ["memory", "memory"]], query.get("in"));
  const filters = { language, path, kind, mode, in: where };
  const results = el("div");
  const ask = latest();

  const search = async () => {
    const text = box.value.trim();
    remember(text, filters);
    if (!text) {
      ask.cancel();
      fill(results);
      return;
    }
    results.setAttribute("aria-busy", "true");
    const answer = await ask((signal) => both(text, filters, signal));
    if (!answer) return;
    results.removeAttribute("aria-busy");
    fill(results, view(answer));
    tell(`${count(answer.code?.hits?.length ?? 0, "place")} in code, ${count(answer.memory?.hits?.length ?? 0, "memory", "memories")}`);
  };
  const soon = debounced(search, 180);
  const form = el("form", { role: "search" },
    el("div", { class: "row" }, field("Search", box, "grow")),
    el("p", { class: "faint", id: "search-help" }, "Press / to come here, ↓ and ↑ to move through the results."),
    el("div", { class: "row" }, field("In", where), field("Language", language), field("Path", path),
      field("Kind", kind), field("How", mode)));
  form.addEventListener("input", soon);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    soon.cancel();
    search();
  });
  place.addEventListener("keydown", (event) => move(event, box, results));
  fill(place, form, results);
  box.focus();
  if (box.value) search();
  return () => {
    soon.cancel();
    ask.cancel();
  };
}

/// Keeps the question in the address, so that it can be sent to somebody.
function remember(text, filters) {
  const parameters = new URLSearchParams();
  if (text) parameters.set("q", text);
  for (const [name, input] of Object.entries(filters)) {
    if (input.value.trim()) parameters.set(name, input.value.trim());
  }
  history.replaceState(null, "", `#/search${parameters.size ? `?${parameters}` : ""}`);
}

async function both(text, filters, signal) {
  const inCode = filters.in.value !== "memory";
  const ofCode = {
    query: text, limit: LIMIT,
    language: filters.language.value.trim() || undefined, path: filters.path.value.trim() || undefined,
    kind: filters.kind.value || undefined, mode: filters.mode.value || undefined,
  };
  const inMemory = filters.in.value !== "code" && !["exact", "regex"].includes(filters.mode.value);
  const guarded = (promise) => promise.catch((error) => {
    if (error.name === "AbortError") throw error;
    return { error };
  });
  const [code, memory] = await Promise.all([
    inCode ? guarded(api("/code/search", { method: "POST", body: ofCode, signal })) : null,
    inMemory ? guarded(api("/memory/search", { method: "POST", body: { query: text, limit: MEMORIES }, signal })) : null,
  ]);
  return { code, memory };
}

function view({ code, memory }) {
  const memories = memory && (memory.error || memory.hits.length > 0 || !code) ? section("Memory", memory, memoryHit) : null;
  const inCode = code ? section("Code", code, codeHit) : null;
  if (!inCode || !memories) return inCode ?? memories;
  const jump = el("button", { type: "button", class: "link jump", onclick: () => memories.scrollIntoView() },
    `In memory: ${count(memory.hits?.length ?? 0, "result")}`);
  return [jump, el("div", { class: "both" }, inCode, memories)];
}

function section(name, answer, show) {
  if (answer.error?.code === "no_store") {
    return el("section", {}, el("h2", {}, name), faint("No code is indexed yet. Run this in the folder of a project:"), command("isolith index"));
  }
  if (answer.error) return el("section", {}, el("h2", {}, name), errorBox(answer.error));
  const total = answer.matches
    ? `${count(answer.matches.total, "match", "matches")} in ${count(answer.matches.files, "file")}, `
    : "";
  return el("section", { "aria-label": name },
    el("h2", {}, name, " ", answer.weak ? tag("weak: nothing fits well", "warn") : null),
    faint(total, `${count(answer.hits.length, "result")} shown, ${answer.took_ms} ms`),
    answer.degraded ? el("p", { class: "warn" }, answer.degraded) : null,
    answer.notice ? el("p", { class: "warn" }, answer.notice) : null,
    answer.missing?.length ? el("p", { class: "warn" }, `Nothing contains: ${answer.missing.join(", ")}`) : null,
    answer.hits.map(show));
}

function codeHit(hit) {
  const where = `${hit.path}:${hit.line ?? hit.start_line}`;
  const name = hit.symbol && (hit.parent ? `${hit.parent}.${hit.symbol}` : hit.symbol);
  const marked = hit.line ? [hit.line, hit.line] : null;
  return el("article", { class: "card result", tabindex: "0", "aria-label": where },
    el("div", { class: "hit-head" }, el("h3", {}, where), name ? el("code", {}, name) : null,
      el("span", {}, tag(hit.kind), tag(hit.language), hit.stale ? tag("stale: the file has changed", "warn") : null)),
    source([{ line: hit.snippet_line, text: hit.snippet }], { marked, label: where }),
    hit.why.length ? faint("Why: ", hit.why.join(" · ")) : null,
    hit.also.length ? el("p", { class: "faint" }, "Also in this file: ", hit.also.map((it, at) =>
      [at ? ", " : "", el("code", {}, it.symbol ?? "lines"), ` ${it.start_line}–${it.end_line}`])) : null,
    actions(hit));
}

function memoryHit(hit) {
  return el("article", { class: "card result", tabindex: "0", "aria-label": `memory in ${hit.wing}, ${hit.room}` },
    el("div", { class: "hit-head" },
      el("h3", {}, el("a", { href: `#/memory/${encodeURIComponent(hit.wing)}/${encodeURIComponent(hit.room)}` }, `${hit.wing} / ${hit.room}`)),
      el("span", {}, hit.date ? tag(hit.date) : null, hit.author ? tag(hit.author) : null, (hit.tags ?? []).map((it) => tag(it)))),
    el("pre", {}, hit.passage || hit.text),
    hit.passage && hit.passage !== hit.text ? el("details", {}, el("summary", {}, "The whole drawer"), el("pre", {}, hit.text)) : null,
    hit.why.length ? faint("Why: ", hit.why.join(" · ")) : null);
}

/// Moves between the box and the results with the arrow keys.
function move(event, box, results) {
  if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
  const here = document.activeElement;
  const list = [box, ...results.querySelectorAll(".result")];
  const at = list.indexOf(here);
  if (at < 0) return;
  event.preventDefault();
  list[Math.min(list.length - 1, Math.max(0, at + (event.key === "ArrowDown" ? 1 : -1)))].focus();
}
