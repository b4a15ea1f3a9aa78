/** The workers as they are now, and why some died. */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { answer, api } from "../api/client";
import { events } from "../api/events";
import type { components } from "../api/schema";
import { bytes, count, duration, moment, number, seconds } from "../lib/format";
import { deaths, KEPT, lines } from "../lib/history";
import { between, percentile, sum } from "../lib/latency";
import { Chart } from "../ui/chart";
import { COLOURS, Confirmed, ErrorBox, Faint, Pairs, Show, Table, Tag, tell, Time, useAnswer } from "../ui/parts";
import { Drill } from "./drill";

type Schemas = components["schemas"];
type LiveStatus = Schemas["LiveStatus"];
type LiveStore = LiveStatus["stores"][number];
type Crash = Schemas["CrashList"]["crashes"][number];

const REPORTS = 400;
const RETRY_MS = 2_000;
const numeric = (name: string) => ({ name, number: true });

export function Workers() {
  const { moments, error } = useLive();
  const now = moments.at(-1);
  const crash = now?.stores.map((store) => store.last_crash ?? "").join() ?? "";
  const crashes = useAnswer((signal) => answer(api.GET("/v1/crashes", { params: { query: { limit: REPORTS } }, signal })), [crash]);
  const seen = useRef<string | null>(null);
  useEffect(() => {
    if (now && seen.current !== null && seen.current !== crash) tell("a worker has died; there is a new crash report");
    if (now) seen.current = crash;
  }, [crash, now === undefined]);
  return (
    <>
      {error ? <><ErrorBox error={error} /><p class="warn">Trying again every {RETRY_MS / 1000} seconds. What follows is old.</p></>
        : <Faint><span class={now ? "live" : ""}>{now ? "Live" : "Connecting…"}</span>{now ? `, as of ${moment(now.at)}` : ""}</Faint>}
      <p class="jump-list"><a href="#crashes" onClick={(event) => { event.preventDefault(); document.getElementById("crashes")?.scrollIntoView(); }}>Why workers died</a></p>
      <Charts moments={moments} />
      {now?.stores.map((store) => <Store key={store.whose} store={store} first={moments[0]?.stores.find((it) => it.whose === store.whose)} />)}
      {now?.stores.length === 0 ? <Faint>No store is open yet: workers start with the first request.</Faint> : null}
      <Quarantine changed={crash} />
      <section>
        <h2 id="crashes" tabIndex={-1}>Why workers died</h2>
        <Show of={crashes}>{(it) => <Crashes crashes={it.crashes} />}</Show>
      </section>
      <Drill />
    </>
  );
}

/** The events of the last minutes; after an error it connects again. */
function useLive(): { moments: LiveStatus[]; error: unknown } {
  const [state, setState] = useState<{ moments: LiveStatus[]; error: unknown }>({ moments: [], error: null });
  useEffect(() => {
    const own = new AbortController();
    let visible: (() => void) | null = null;
    const follow = async () => {
      while (!own.signal.aborted) {
        try {
          for await (const event of events("/v1/status/events", { signal: own.signal })) {
            if (event.event !== "status") continue;
            const status = JSON.parse(event.data) as LiveStatus;
            setState((before) => ({ moments: [...before.moments.slice(-KEPT), status], error: null }));
          }
          // The server ends the events after a while: ask again at once.
          await pause(50);
        } catch (error) {
          if (own.signal.aborted) return;
          setState((before) => ({ ...before, error }));
          await pause(RETRY_MS);
        }
      }
    };
    const pause = (ms: number) => new Promise<void>((done) => { visible = done; setTimeout(done, ms); });
    void follow();
    return () => { own.abort(); visible?.(); };
  }, []);
  return state;
}

function Charts({ moments }: { moments: LiveStatus[] }) {
  const found = useMemo(() => lines(moments), [moments]);
  if (found.times.length < 2) return null;
  return (
    <div class="charts">
      <Chart label="Jobs per second, of this server" times={found.times} unit={(it) => it.toFixed(it < 10 ? 1 : 0)} series={[{ name: "jobs/s", colour: COLOURS[0] ?? "", values: found.rate }]} />
      <Chart label="How long jobs run (over 10 s)" times={found.times} unit={seconds} series={[
        { name: "p50", colour: COLOURS[2] ?? "", values: found.p50 }, { name: "p95", colour: COLOURS[1] ?? "", values: found.p95 }, { name: "p99", colour: COLOURS[3] ?? "", values: found.p99 }]} />
    </div>
  );
}

function Store({ store, first }: { store: LiveStore; first: LiveStore | undefined }) {
  const workers = store.workers.map((worker) => [
    worker.role, worker.pid ?? "–", <Tag kind={worker.state === "busy" ? "good" : ""}>{worker.state}</Tag>, worker.job ? `${worker.job} for ${duration(worker.job_ms)}` : "",
    bytes(worker.rss_bytes), number(worker.jobs_done), duration(worker.age_ms), worker.front,
  ]);
  return (
    <section>
      <h2>{store.whose === "project" ? "Project's store" : "User's store"}</h2>
      {workers.length ? <Table caption={count(workers.length, "worker")} rows={workers}
        columns={["Role", numeric("Process"), "State", "Job", numeric("Memory"), numeric("Jobs done"), numeric("Age"), numeric("Started by")]} />
        : <Faint>No workers: they start with the first job.</Faint>}
      {store.processes.map((process) => <Pools key={process.pid} process={process} />)}
      <Latencies store={store} first={first} />
    </section>
  );
}

function Pools({ process }: { process: LiveStore["processes"][number] }) {
  if (!process.answers) return <p class="warn">Process {process.pid} does not answer.</p>;
  const failed = process.recent_jobs ? `, ${process.recent_failed} of its last ${count(process.recent_jobs, "job")} failed` : "";
  const rows = process.pools.map((pool) => [
    pool.role, pool.breaker === "closed" ? "closed" : <strong class="bad">{pool.breaker}</strong>, pool.waiting, pool.restarts,
    pool.last_death ? <span><strong>{pool.last_death.end}</strong> ({pool.last_death.class}){pool.last_death.worker_pid ? ` of process ${pool.last_death.worker_pid}` : ""}, <Time at={pool.last_death.died_at} /></span> : "none",
  ]);
  return <Table caption={`Process ${process.pid}, running for ${duration(process.age_ms)}${failed}`} columns={["Role", "Breaker", numeric("Jobs waiting"), numeric("Restarts"), "Last death"]} rows={rows} />;
}

function Latencies({ store, first }: { store: LiveStore; first: LiveStore | undefined }) {
  if (store.roles.length === 0) return null;
  const rows = store.roles.map((role) => {
    const here = between(first?.roles.find((it) => it.role === role.role)?.run, role.run);
    const at = (part: number) => seconds(percentile(role.run, part));
    const all = Object.values(role.jobs).reduce((a, b) => a + b, 0);
    const failed = all - (role.jobs["answered"] ?? 0) - (role.jobs["cancelled"] ?? 0);
    return [role.role, number(all), failed ? <strong class="bad">{failed}</strong> : 0, at(0.5), at(0.95), at(0.99), seconds(percentile(sum([role.queue]), 0.95)), number(first === store ? 0 : here.count)];
  });
  return <Table caption="Jobs of this server since it opened the store; times are estimates from a histogram" rows={rows}
    columns={["Role", numeric("Jobs"), numeric("Failed"), numeric("p50"), numeric("p95"), numeric("p99"), numeric("Waiting, p95"), numeric("Since this page")]} />;
}

function Quarantine({ changed }: { changed: string }) {
  const loaded = useAnswer((signal) => answer(api.GET("/v1/quarantine", { signal })), [changed]);
  const [news, setNews] = useState("");
  const [error, setError] = useState<unknown>(null);
  const release = async (body: { id?: string; whose?: string }) => {
    setError(null);
    try {
      const { released } = await answer(api.POST("/v1/quarantine/release", { body }));
      const text = `${count(released.length, "job")} may run again.`;
      setNews(text);
      tell(text);
    } catch (problem) {
      setError(problem);
    }
    loaded.again();
  };
  return (
    <section>
      <h2>Quarantine</h2>
      {error ? <ErrorBox error={error} /> : null}
      {news ? <p class="good">{news}</p> : null}
      <Show of={loaded}>{({ jobs }) => jobs.length === 0 ? <Faint>No jobs in quarantine.</Faint> : (
        <div class="card problem">
          <p>{jobs.length === 1 ? "1 job is skipped because it killed its workers." : `${jobs.length} jobs are skipped because they killed their workers.`}</p>
          <Table caption="Jobs in quarantine" columns={["Kind", "Role", "Class", "Since", "Id", "Action"]} rows={jobs.map((job) => [
            job.kind, job.role, job.class, <Time at={job.since} />, <code>{job.id.slice(0, 16)}</code>,
            <button type="button" onClick={() => void release({ id: job.id, whose: job.whose })}>Retry</button>])} />
          <Confirmed name="Clear all" question="Let all of them run again?" run={() => void release({})} />
        </div>
      )}</Show>
    </section>
  );
}

function Crashes({ crashes }: { crashes: Crash[] }) {
  const over = useMemo(() => deaths(crashes, Date.now() / 1000), [crashes]);
  if (crashes.length === 0) return <Faint>No worker has died.</Faint>;
  // Each is drawn over those that it is stacked on: the sum of all first.
  const stacked = over.classes.map((it, at) => ({ name: it.name, colour: COLOURS[at % COLOURS.length] ?? "", values: it.counts.map((_, time) => over.classes.slice(at).reduce((sum, other) => sum + (other.counts[time] ?? 0), 0)) }));
  const byClass = over.classes.map((it) => `${it.counts.reduce((a, b) => a + b, 0)} ${it.name}`).join(", ");
  return (
    <>
      <Faint>{count(crashes.length, "report")}, the newest first: {byClass}. Open one to see all of it.</Faint>
      <Chart label={`Deaths by class, per ${duration(over.interval * 1000)}`} times={over.times} series={stacked} unit={(it) => (Number.isInteger(it) ? String(it) : "")} bars height={150} />
      {crashes.map((crash) => <Report key={crash.whose + crash.report} crash={crash} />)}
    </>
  );
}

/** What the classes mean, in a sentence. */
const MEANINGS: Record<string, string> = {
  crash: "it ended by a signal for a fault of its own, such as a segmentation fault",
  panic: "its code panicked", out_of_memory: "it used more memory than it may", killed: "something outside of Isolith killed it", timeout: "its job took longer than its deadline, so it was killed",
  exit: "it ended by itself in the middle of a job", protocol: "it sent something that is not a reply", start_failure: "it could not start",
};

function Report({ crash }: { crash: Crash }) {
  const { job } = crash;
  const meaning = MEANINGS[crash.class];
  return (
    <details class="card">
      <summary><strong>{crash.end}</strong> ({crash.class}) · {crash.role} · {job?.kind ?? "no job"} · <Time at={crash.died_at} /></summary>
      {meaning ? <p>{`Class ${crash.class}: ${meaning}.`}</p> : null}
      <Pairs entries={[
        ["End", crash.end], ["What was done", crash.action],
        ["Job", job ? `${job.kind}, attempt ${job.attempt + 1}, ran for ${duration(job.ran_ms)}` : "none: it was idle or starting"],
        ["Hash of its input", job ? <code>{job.input_hash}</code> : null], ["Panic", crash.panic ? <pre>{crash.panic}</pre> : null], ["Protocol error", crash.violation],
        ["Worker", `process ${crash.worker_pid ?? "not started"}, ${duration(crash.age_ms)} old, ${count(crash.jobs_done, "job")} done`],
        ["Memory", bytes(crash.rss_bytes)], ["Signal", crash.signal], ["Exit code", crash.exit_code], ["Store", crash.whose], ["File", <code>crashes/{crash.report}</code>],
      ]} />
      <h3>Last output</h3>
      {crash.output.length ? <pre>{crash.output.join("\n")}</pre> : <Faint>It printed nothing.</Faint>}
    </details>
  );
}
