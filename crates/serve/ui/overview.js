// The stores: what needs attention, then what there is.

import { api } from "./api.js";
import { ago, bytes, command, count, el, errorBox, faint, into, pairs, table, tag, time } from "./dom.js";

export const title = "Overview";

/// Problems of which the page of workers shows more.
const OF_WORKERS = ["worker_died", "breaker_open", "start_failure", "quarantined"];

/// Indexes older than this are pointed out.
const OLD = 7 * 86_400_000;

export function show(place) {
  const load = async () => {
    const [status, index] = await Promise.all([api("/status"), api("/code/index").catch(() => null)]);
    return { status, index };
  };
  const again = () => into(place, load(), (loaded) => view(loaded, again));
  place.textContent = "Loading…";
  again();
}

function view({ status, index }, again) {
  const reload = el("button", { type: "button", onclick: again }, "Refresh");
  const watched = new Map((index?.roots ?? []).map((root) => [root.root, root.watched]));
  return [
    attention(status),
    status.stores.length === 0 ? noStores() : status.stores.map((store) => storeCard(store, watched)),
    el("div", { class: "row" }, reload, el("span", { class: "faint" }, `Isolith ${status.version}`)),
  ];
}

function noStores() {
  return el("div", { class: "card" },
    el("p", {}, "There is no store yet. To index the code of a project, run this in its folder:"),
    command("isolith index"),
    el("p", {}, "Memory gets a store with the first one:"),
    command('isolith memory add "Deploys go out on Tuesdays." --wing acme --room deploys'));
}

/// What is wrong in all stores, the worst first, with what to do.
function attention(status) {
  const cards = status.stores.flatMap((store) => store.problems.map((problem) =>
    el("div", { class: "card problem" },
      el("p", {}, tag(storeName(store)), el("strong", { class: "warn" }, problem.code), ": ", problem.message),
      OF_WORKERS.includes(problem.code) ? el("p", {}, el("a", { href: "#/workers" }, "Workers and crash reports")) : null,
      problem.command ? command(problem.command) : null)));
  const failed = status.stores.filter((store) => store.error && store.problems.length === 0);
  const unread = failed.map((store) => [el("p", {}, tag(storeName(store))), errorBox(store.error)]);
  if (cards.length + failed.length === 0) {
    return el("div", { class: "card fine" }, el("strong", { class: "good" }, "No problems found"),
      el("span", { class: "faint" }, " in the counts, workers and recent jobs of all stores. "),
      el("code", {}, "isolith doctor --full"), el("span", { class: "faint" }, " reads and checks everything."));
  }
  return el("section", {}, el("h2", {}, "Needs attention"), unread, cards);
}

const storeName = (store) => (store.whose === "project" ? "project" : "user");

function storeCard(store, watched) {
  const name = store.whose === "project" ? "Project's store" : "User's store";
  if (store.error) {
    return el("section", {}, el("h2", {}, name), el("code", {}, store.store), errorBox(store.error));
  }
  // Those that need attention are above already.
  const warnings = store.warnings.filter((it) => !store.problems.some((problem) => problem.message === it));
  return el("section", {},
    el("h2", {}, name),
    pairs([
      ["Folder", el("code", {}, store.store)],
      ["Size", `${bytes(store.disk_bytes)}, including ${bytes(store.wal_bytes)} of write-ahead log`],
      ["Memory", store.drawers ? `${count(store.drawers, "drawer")} in ${count(store.wings, "wing")}` : null],
      ["Graph", store.nodes ? `${count(store.nodes, "node")}, ${count(store.relationships, "relationship")}` : null],
      ["Open in", store.processes.map((it) => `process ${it.pid}${it.answers ? "" : " (does not answer)"}`).join(", ")],
      ["Worker deaths", Object.entries(store.crashes).map(([kind, number]) => `${number} ${kind}`).join(", ") || "none"],
      ["Quarantine", store.quarantine ? count(store.quarantine, "job") : null],
    ]),
    warnings.length ? el("ul", {}, warnings.map((it) => el("li", { class: "warn" }, it))) : null,
    store.roots.length ? table("Indexed code", ["Folder", ">Files", ">Chunks", "Indexed", "Updates"],
      store.roots.map((root) => rootRow(root, watched.get(root.root)))) : null,
    collectionTable(store));
}

function rootRow(root, watched) {
  const stale = root.indexed_at && Date.now() - Date.parse(root.indexed_at) > OLD && !watched;
  const indexed = root.indexed_at
    ? el("span", { class: stale ? "warn" : null }, ago(root.indexed_at), " (", time(root.indexed_at), ")")
    : el("span", { class: "warn" }, "not completely yet");
  const updates = { here: "watched by this server", elsewhere: "watched by another process" };
  return [el("code", {}, root.root), root.files.toLocaleString("en"), root.chunks.toLocaleString("en"),
    indexed, updates[watched] ?? watched ?? "not watched"];
}

function collectionTable(store) {
  if (store.collections.length === 0) return faint("No collections.");
  const rows = store.collections.map((it) => [
    it.name.startsWith("@") ? el("span", {}, el("code", {}, it.name), el("span", { class: "faint" }, " (internal)"))
      : el("a", { href: `#/collections/${encodeURIComponent(it.name)}` }, it.name),
    it.records.toLocaleString("en"), it.generation, it.tail, bytes(it.segment_bytes),
    it.rebuild_due ? tag("rebuild due", "warn") : it.fold_due ? tag("fold due") : "up to date",
  ]);
  return table("Collections", ["Name", ">Records", ">Generation", ">Tail", ">Segments", "State"], rows);
}
