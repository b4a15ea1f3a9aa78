/** The stores: what needs attention, then what there is. */

import { answer, api } from "../api/client";
import type { CollectionStatus, Root, Status, StoreStatus } from "../api/schema";
import { ago, bytes, count, number } from "../lib/format";
import { address } from "../lib/route";
import { Command, Faint, Pairs, Show, Table, Tag, Time, useAnswer } from "../ui/parts";

/** Problems of which the page of workers shows more. */
const OF_WORKERS = ["worker_died", "breaker_open", "start_failure", "quarantined"];

/** Indexes older than this are pointed out. */
const OLD = 7 * 86_400_000;

export function Overview() {
  const loaded = useAnswer(async (signal) => {
    const [status, index] = await Promise.all([
      answer(api.GET("/v1/status", { signal })),
      answer(api.GET("/v1/code/index", { signal })).catch(() => null),
    ]);
    const watched = new Map((index?.roots ?? []).map((root) => [root.root, root.watched]));
    return { status, watched };
  }, []);
  return (
    <Show of={loaded}>
      {({ status, watched }) => (
        <>
          <Attention status={status} />
          {status.stores.length === 0 ? <NoStores /> : status.stores.map((store) => <Store key={store.whose} store={store} watched={watched} />)}
          <div class="row">
            <button type="button" onClick={loaded.again}>Refresh</button>
            <span class="faint">Isolith {status.version}</span>
          </div>
        </>
      )}
    </Show>
  );
}

function NoStores() {
  return (
    <div class="card">
      <p>There is no store yet. To index the code of a project, run this in its folder:</p>
      <Command text="isolith index" />
      <p>Memory gets a store with the first one:</p>
      <Command text='isolith memory add "Deploys go out on Tuesdays." --wing acme --room deploys' />
    </div>
  );
}

/** What is wrong in all stores, the worst first, with what to do. */
function Attention({ status }: { status: Status }) {
  const failed = status.stores.filter((store) => store.error && store.problems.length === 0);
  const problems = status.stores.flatMap((store) => store.problems.map((problem) => ({ store, problem })));
  if (problems.length + failed.length === 0) {
    return (
      <div class="card fine">
        <strong class="good">No problems found</strong>
        <span class="faint"> in the counts, workers and recent jobs of all stores. </span>
        <code>isolith doctor --full</code><span class="faint"> reads and checks everything.</span>
      </div>
    );
  }
  return (
    <section>
      <h2>Needs attention</h2>
      {failed.map((store) => <div key={store.whose}><Tag>{store.whose}</Tag><Refusal store={store} /></div>)}
      {problems.map(({ store, problem }) => (
        <div key={`${store.whose} ${problem.message}`} class="card problem">
          <p><Tag>{store.whose}</Tag><strong class="warn">{problem.code}</strong>: {problem.message}</p>
          {OF_WORKERS.includes(problem.code) ? <p><a href="#/workers">Why workers died, and jobs in quarantine</a></p> : null}
          {problem.command ? <Command text={problem.command} /> : null}
        </div>
      ))}
    </section>
  );
}

function Refusal({ store }: { store: StoreStatus }) {
  if (!store.error) return null;
  return (
    <div class="card error" role="alert">
      <p><strong class="bad">{store.error.code}</strong>: {store.error.message}</p>
      <p>{store.error.hint}</p>
    </div>
  );
}

function Store({ store, watched }: { store: StoreStatus; watched: Map<string, string | null | undefined> }) {
  const name = store.whose === "project" ? "Project's store" : "User's store";
  if (store.error) return <section><h2>{name}</h2><code>{store.store}</code><Refusal store={store} /></section>;
  // Those that need attention are above already.
  const warnings = store.warnings.filter((it) => !store.problems.some((problem) => problem.message === it));
  const deaths = Object.entries(store.crashes).map(([kind, number]) => `${number} ${kind}`).join(", ");
  return (
    <section>
      <h2>{name}</h2>
      <Pairs entries={[
        ["Folder", <code>{store.store}</code>],
        ["Size", `${bytes(store.disk_bytes)}, including ${bytes(store.wal_bytes)} of write-ahead log`],
        ["Memory", store.drawers ? <a href="#/memory">{count(store.drawers, "drawer")} in {count(store.wings, "wing")}</a> : null],
        ["Graph", graphSize(store)],
        ["Open in", store.processes.map((it) => `process ${it.pid}${it.answers ? "" : " (does not answer)"}`).join(", ")],
        ["Worker deaths", deaths ? <a href="#/workers">{deaths}</a> : "none"],
        ["Quarantine", store.quarantine ? <a href="#/workers">{count(store.quarantine, "job")}</a> : null],
      ]} />
      {warnings.length ? <ul>{warnings.map((it) => <li key={it} class="warn">{it}</li>)}</ul> : null}
      {store.roots.length ? <Roots roots={store.roots} watched={watched} /> : null}
      <CollectionTable collections={store.collections} />
    </section>
  );
}

/** The page of the graph shows that of the project. */
function graphSize(store: StoreStatus) {
  if (!store.nodes) return null;
  const size = `${count(store.nodes, "node")}, ${count(store.relationships, "relationship")}`;
  return store.whose === "project" ? <a href="#/graph">{size}</a> : size;
}

const WATCHED: Record<string, string> = { here: "watched by this server", elsewhere: "watched by another process" };

function Roots({ roots, watched }: { roots: Root[]; watched: Map<string, string | null | undefined> }) {
  const rows = roots.map((root) => {
    const by = watched.get(root.root);
    const isStale = root.indexed_at !== null && Date.now() - Date.parse(root.indexed_at) > OLD && !by;
    const indexed = root.indexed_at === null ? <span class="warn">not completely yet</span>
      : <span class={isStale ? "warn" : ""}>{ago(root.indexed_at)} (<Time at={root.indexed_at} />)</span>;
    return [<code>{root.root}</code>, number(root.files), number(root.chunks), indexed, by ? (WATCHED[by] ?? by) : "not watched"];
  });
  return (
    <>
      <Table caption="Indexed code" columns={["Folder", { name: "Files", number: true }, { name: "Chunks", number: true }, "Indexed", "Updates"]} rows={rows} />
      <p><a href="#/map">Which files and folders are largest: the code map</a></p>
    </>
  );
}

function CollectionTable({ collections }: { collections: CollectionStatus[] }) {
  if (collections.length === 0) return <Faint>No collections.</Faint>;
  const rows = collections.map((it) => [
    it.name.startsWith("@") ? <span><code>{it.name}</code><span class="faint"> (internal)</span></span> : <a href={address("collections", [it.name])}>{it.name}</a>,
    number(it.records), it.generation, it.tail, bytes(it.segment_bytes),
    it.rebuild_due ? <Tag kind="warn">rebuild due</Tag> : it.fold_due ? <Tag>fold due</Tag> : "up to date",
  ]);
  const numeric = (name: string) => ({ name, number: true });
  return <Table caption="Collections" columns={["Name", numeric("Records"), numeric("Generation"), numeric("Tail"), numeric("Segments"), "State"]} rows={rows} />;
}
