/** A treemap of the code: folders, files and definitions by their lines. */

import { useEffect, useMemo, useState } from "preact/hooks";
import { answer, api } from "../api/client";
import type { MappedFile } from "../api/schema";
import { type Definition, definitions } from "../lib/definitions";
import { ago, bytes, count, number } from "../lib/format";
import { address, type Route } from "../lib/route";
import { find, leaves, type MapNode, tiles, tree } from "../lib/treemap";
import { type Children, Choice, COLOURS, ErrorBox, Faint, Field, Pairs, Show, Table, useAnswer, useWidth } from "../ui/parts";
import { Actions } from "../ui/source";

const MANY = 20_000;
/** Rows of the list below the map. */
const ROWS = 50;

const COLOURINGS = [["language", "language"], ["age", "time of the last change"], ["calls", "calls from other files"],
  ["cycles", "import cycles"], ["author", "last author"]] as const;
type Colouring = (typeof COLOURINGS)[number][0];

export function CodeMap({ route }: { route: Route }) {
  const loaded = useAnswer((signal) => answer(api.GET("/v1/code/map", { params: { query: { limit: MANY } }, signal })), []);
  return <Show of={loaded}>{({ files, left_out }) => <Map files={files} leftOut={left_out} route={route} />}</Show>;
}

function Map({ files, leftOut, route }: { files: MappedFile[]; leftOut: number; route: Route }) {
  const [colouring, setColouring] = useState<Colouring>("language");
  const [tests, setTests] = useState(true);
  const roots = useMemo(() => [...new Set(files.map((it) => it.root))], [files]);
  const shown = useMemo(() => files.filter((it) => tests || !isTest(it.path)).map((file) => {
    const path = roots.length > 1 ? `${nameOfRoot(file.root)}/${file.path}` : file.path;
    return { ...file, path, place: file };
  }), [files, tests, roots]);
  const whole = useMemo(() => tree(shown, (it) => it.lines), [shown]);
  const here = route.query.get("at") ?? "";
  const node = find(whole, here) ?? whole;
  const colour = useMemo(() => colours(colouring, shown), [colouring, shown]);
  const go = (path: string) => { location.hash = address("map", [], { at: path }); };
  const inside = leaves(node);
  return (
    <>
      <form class="row" onSubmit={(event) => event.preventDefault()}>
        <Field name="Colour by"><Choice options={COLOURINGS} value={colouring} onChoose={(value) => setColouring(value as Colouring)} /></Field>
        <label class="check"><input type="checkbox" checked={tests} onChange={(event) => setTests(event.currentTarget.checked)} /> Tests</label>
        <span class="faint">{count(inside.length, "file")}, {count(node.size, "line")}; the larger, the more lines</span>
      </form>
      {leftOut ? <p class="warn">{count(leftOut, "file")} are left out, the shortest ones.</p> : null}
      <Crumbs path={node.path} />
      {node.leaf ? <FileMap file={node.leaf.place} /> : (
        <>
          <Treemap node={node} colour={colour.of} describe={describe} choose={(it) => go(it.path)} label={`Treemap of ${node.path || "the project"}`} />
          <Legend entries={colour.legend} />
          <Largest node={node} />
        </>
      )}
    </>
  );
}

const isTest = (path: string) => /(^|\/)(tests?|__tests__|spec|testing)(\/|$)|(_test|\.test|\.spec|_spec)\.\w+$|(^|\/)test_[^/]*$/.test(path);
const nameOfRoot = (root: string) => root.split("/").filter(Boolean).at(-1) ?? root;

interface Shown extends MappedFile {
  place: MappedFile;
}

function describe(node: MapNode<Shown>): string {
  const size = `${node.path}: ${count(node.size, "line")}`;
  const file = node.leaf;
  if (!file) return size;
  return `${size}, ${file.language}${file.calls ? `, ${count(file.calls, "call")} from other files` : ""}${file.cycle ? `, in import cycle ${file.cycle}` : ""}${file.changed_at ? `, changed ${ago(file.changed_at)}` : ""}`;
}

interface Colours<T> {
  of: (item: T) => string;
  legend: [string, string][];
}

/** A scale from pale to strong; both ends can be told from the ground in light and dark. */
const shade = (part: number) => `hsl(212 ${Math.round(25 + 50 * part)}% ${Math.round(72 - 38 * part)}%)`;
const GREY = "#8c8f94";

function colours(by: Colouring, files: Shown[]): Colours<Shown> {
  switch (by) {
    case "language": return named(files, (it) => it.language);
    case "author": return named(files, (it) => it.author ?? "unknown");
    case "calls": {
      const most = Math.max(1, ...files.map((it) => it.calls));
      const part = (it: Shown) => Math.log1p(it.calls) / Math.log1p(most);
      return { of: (it) => (it.calls ? shade(part(it)) : GREY), legend: [["none", GREY], ["few", shade(0.2)], [`up to ${number(most)}`, shade(1)]] };
    }
    case "age": {
      const times = files.flatMap((it) => (it.changed_at ? [Date.parse(it.changed_at)] : [])).sort((a, b) => a - b);
      // By rank, as most files of old projects are old.
      const rank = (it: Shown) => rankOf(times, Date.parse(it.changed_at ?? ""));
      return {
        of: (it) => (it.changed_at ? shade(rank(it)) : GREY),
        legend: times.length ? [["unknown", GREY], [`oldest (${ago(new Date(times[0] ?? 0).toISOString())})`, shade(0)], [`newest (${ago(new Date(times.at(-1) ?? 0).toISOString())})`, shade(1)]] : [["unknown: no git history", GREY]],
      };
    }
    case "cycles": {
      const known = [...new Set(files.flatMap((it) => (it.cycle ? [it.cycle] : [])))].sort((a, b) => a - b);
      const colour = (cycle: number) => COLOURS[known.indexOf(cycle) % (COLOURS.length - 1)] ?? GREY;
      return { of: (it) => (it.cycle ? colour(it.cycle) : GREY), legend: [["in no cycle", GREY], ...known.slice(0, 8).map((it): [string, string] => [`cycle ${it}`, colour(it)])] };
    }
  }
}

/** The part of sorted values that is smaller. */
function rankOf(sorted: number[], value: number): number {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((sorted[middle] ?? 0) < value) low = middle + 1;
    else high = middle;
  }
  return sorted.length > 1 ? low / (sorted.length - 1) : 1;
}

function named(files: Shown[], name: (file: Shown) => string): Colours<Shown> {
  const lines = new globalThis.Map<string, number>();
  for (const file of files) lines.set(name(file), (lines.get(name(file)) ?? 0) + file.lines);
  const most = [...lines].sort((a, b) => b[1] - a[1]).slice(0, COLOURS.length - 1).map(([it]) => it);
  const colour = (it: string) => (most.includes(it) ? (COLOURS[most.indexOf(it)] ?? GREY) : GREY);
  const legend = most.map((it): [string, string] => [it, colour(it)]);
  return { of: (it) => colour(name(it)), legend: lines.size > most.length ? [...legend, ["others", GREY]] : legend };
}

function Legend({ entries }: { entries: [string, string][] }) {
  return <p class="legend">{entries.map(([name, colour]) => <span key={name}><svg viewBox="0 0 1 1" aria-hidden="true"><rect width="1" height="1" fill={colour} /></svg>{name}</span>)}</p>;
}

function Crumbs({ path }: { path: string }) {
  const parts = path ? path.split("/") : [];
  return (
    <nav class="crumbs" aria-label="Folder">
      <a href="#/map">project</a>
      {parts.map((part, at) => <span key={at}> / {at === parts.length - 1 ? <strong>{part}</strong> : <a href={address("map", [], { at: parts.slice(0, at + 1).join("/") })}>{part}</a>}</span>)}
    </nav>
  );
}

interface TreemapProperties<T> {
  node: MapNode<T>;
  colour: (item: T) => string;
  describe: (node: MapNode<T>) => string;
  choose: (node: MapNode<T>) => void;
  label: string;
  height?: number;
}

/** Folders can be reached with the keyboard; the list below the map has everything else. */
function Treemap<T>({ node, colour, describe, choose, label, height }: TreemapProperties<T>) {
  const [place, width] = useWidth();
  const [pointed, setPointed] = useState<MapNode<T> | null>(null);
  const tall = height ?? Math.round(Math.min(640, Math.max(320, width * 0.58)));
  const all = useMemo(() => (width ? tiles(node, width, tall) : []), [node, width, tall]);
  useEffect(() => setPointed(null), [node]);
  const at = (event: MouseEvent) => {
    const index = (event.target as Element).closest<SVGElement>("[data-tile]")?.dataset["tile"];
    return index === undefined ? null : (all[Number(index)]?.node ?? null);
  };
  return (
    <div ref={place} class="treemap">
      <svg width={width} height={tall} role="group" aria-label={label}
        onMouseMove={(event) => setPointed(at(event))} onMouseLeave={() => setPointed(null)}
        onClick={(event) => { const hit = at(event); if (hit) choose(hit); }}>
        {all.map(({ node: it, x, y, width: w, height: h, depth }, index) => {
          const fits = w > 34 && h > 13;
          const reachable = depth === 1 ? { tabindex: 0, role: "button" as const, "aria-label": describe(it), onKeyDown: (event: KeyboardEvent) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(it); } } } : {};
          return (
            <g key={it.path} data-tile={index} {...reachable}>
              <rect class={it.leaf === null ? "folder" : "leaf"} x={x} y={y} width={Math.max(0, w)} height={Math.max(0, h)} fill={it.leaf === null ? undefined : colour(it.leaf)} />
              {fits ? <svg x={x} y={y} width={w - 2} height={h}><text class={it.leaf === null ? "folder" : "leaf"} x={3} y={12}>{it.name}</text></svg> : null}
            </g>
          );
        })}
      </svg>
      <p class="faint pointed">{pointed ? describe(pointed) : "Point at a tile to see what it is; click to go into it."}</p>
    </div>
  );
}

function Largest({ node }: { node: MapNode<Shown> }) {
  const rows = node.children.slice(0, ROWS).map((child) => {
    const files = leaves(child);
    const calls = files.reduce((sum, it) => sum + it.calls, 0);
    return [
      <a href={address("map", [], { at: child.path })}>{child.name}{child.leaf ? "" : "/"}</a>,
      number(child.size), `${((100 * child.size) / Math.max(1, node.size)).toFixed(1)} %`, child.leaf ? "" : number(files.length), number(calls),
    ];
  });
  const numeric = (name: string) => ({ name, number: true });
  const more = node.children.length - rows.length;
  return (
    <>
      <h2>Largest in {node.path || "the project"}</h2>
      <Table caption={`${count(node.children.length, "entry", "entries")}, the largest first${more > 0 ? `; ${more} smaller ones are not listed` : ""}`}
        columns={["Name", numeric("Lines"), numeric("Share"), numeric("Files"), numeric("Calls from other files")]} rows={rows} />
    </>
  );
}

/** A file: its definitions by size, and the source of the one that is chosen. */
function FileMap({ file }: { file: MappedFile }) {
  const loaded = useAnswer((signal) => definitions(file.path, signal), [file.path]);
  const [chosen, setChosen] = useState<Definition | null>(null);
  const whole = { root: file.root, path: file.path, start: 1, end: 0, language: file.language };
  const below = chosen ? (
    <section aria-live="polite">
      <h2><code>{chosen.name}</code></h2>
      <Faint>{chosen.kind}, lines {chosen.start}–{chosen.end}, {count(chosen.callers, "place calls", "places call")} it</Faint>
      <Actions key={chosen.path} place={{ ...whole, start: chosen.start, end: chosen.end, symbol: chosen.name, symbolLine: chosen.line }} />
    </section>
  ) : <Actions place={whole} />;
  return (
    <>
      <Pairs entries={[
        ["Language", file.language], ["Size", `${count(file.lines, "line")}, ${bytes(file.bytes)}`],
        ["Changed", file.changed_at ? `${ago(file.changed_at)}${file.author ? ` by ${file.author}` : ""}` : null],
        ["Calls from other files", number(file.calls)], ["Import cycle", file.cycle ? <a href="#/map">number {file.cycle}: colour the map by import cycles</a> : null],
      ]} />
      {loaded.error ? <ErrorBox error={loaded.error} /> : null}
      {loaded.data && loaded.data.length > 0 ? <Definitions all={loaded.data} choose={setChosen}>{below}</Definitions> : below}
      {loaded.data?.length === 0 ? <Faint>The graph has no definitions of this file.</Faint> : null}
    </>
  );
}

function Definitions({ all, choose, children }: { all: Definition[]; choose: (it: Definition) => void; children: Children }) {
  const root = useMemo(() => nested(all), [all]);
  const kinds = [...new Set(all.map((it) => it.kind))];
  const colour = (it: Definition) => COLOURS[kinds.indexOf(it.kind) % COLOURS.length] ?? GREY;
  const rows = [...all].sort((a, b) => b.end - b.start - (a.end - a.start)).slice(0, ROWS).map((it) => [
    <button type="button" class="link" onClick={() => choose(it)}><code>{it.name}</code></button>, it.kind, it.start, number(it.end - it.start + 1), number(it.callers),
  ]);
  const numeric = (name: string) => ({ name, number: true });
  return (
    <>
      <Treemap node={root} colour={colour} label="Treemap of the definitions" height={280}
        describe={(it) => `${it.name}: ${count(it.size, "line")}${it.leaf ? `, ${it.leaf.kind}` : ""}`}
        choose={(it) => { const hit = it.leaf ?? all.find((one) => one.path === it.path); if (hit) choose(hit); }} />
      <Legend entries={kinds.slice(0, 8).map((it) => [it, COLOURS[kinds.indexOf(it) % COLOURS.length] ?? GREY])} />
      {children}
      <Table caption={`${count(all.length, "definition")}, the longest first`} columns={["Name", "Kind", numeric("Line"), numeric("Lines"), numeric("Calls of it")]} rows={rows} />
    </>
  );
}

/** Definitions inside of others: a class is a folder of its methods, and of its own lines. */
function nested(all: Definition[]): MapNode<Definition> {
  const root: MapNode<Definition> = { path: "", name: "", size: 0, children: [], leaf: null };
  const open: { node: MapNode<Definition>; it: Definition }[] = [];
  for (const it of [...all].sort((a, b) => a.start - b.start || b.end - a.end)) {
    while (open.length && (open.at(-1)?.it.end ?? 0) < it.end) open.pop();
    const node: MapNode<Definition> = { path: it.path, name: it.name.split(".").at(-1) ?? it.name, size: it.end - it.start + 1, children: [], leaf: it };
    const around = open.at(-1);
    if (around && around.node.leaf) {
      // It becomes a folder.
      around.node.leaf = null;
    }
    (around?.node ?? root).children.push(node);
    open.push({ node, it });
  }
  root.size = root.children.reduce((sum, child) => sum + child.size, 0);
  return root;
}
