// Worker processes, refreshed every two seconds while the page is visible, and crash reports.

import { api } from "./api.js";
import { bytes, command, count, duration, el, errorBox, faint, fill, pairs, table, tag, tell, time } from "./dom.js";

export const title = "Workers";

const INTERVAL = 2000;
const REPORTS = 100;

export function show(place) {
  const state = el("p", { class: "faint" }, "Loading…");
  const [live, crashes] = [el("div"), el("div")];
  fill(place, state, live, el("h2", {}, "Crash reports"), crashes);
  let [timer, stopped, listed] = [0, false, null];

  const refresh = async () => {
    clearTimeout(timer);
    if (stopped || document.hidden) return;
    try {
      const [status, reports, skipped] = await Promise.all([
        api("/status"), api("/crashes", { query: { limit: REPORTS } }), api("/quarantine")]);
      if (stopped) return;
      fill(live, status.stores.map((store) => storeView(store, skipped.jobs)));
      // An open report stays open while nothing is new.
      const names = JSON.stringify(reports.crashes.map((crash) => crash.report));
      if (names !== listed) {
        if (listed !== null) tell("there is a new crash report");
        listed = names;
        fill(crashes, crashList(reports.crashes));
      }
      fill(state, "Live: refreshed every 2 seconds while this page is visible.");
    } catch (error) {
      if (stopped) return;
      fill(state, errorBox(error), "Trying again every 2 seconds. What follows is old.");
    }
    timer = setTimeout(refresh, INTERVAL);
  };
  document.addEventListener("visibilitychange", refresh);
  refresh();
  return () => {
    stopped = true;
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", refresh);
  };
}

function storeView(store, skipped) {
  const name = store.whose === "project" ? "Project's store" : "User's store";
  if (store.error) return el("section", {}, el("h2", {}, name), errorBox(store.error));
  return el("section", {},
    el("h2", {}, name),
    workerTable(store),
    store.processes.map(poolTable),
    deaths(store),
    quarantine(store, skipped.filter((job) => job.whose === store.whose)));
}

function workerTable(store) {
  if (store.workers.length === 0) return faint("No workers: they start with the first job.");
  const rows = store.workers.map((worker) => [
    worker.role, worker.pid ?? "–", stateTag(worker.state),
    worker.job ? `${worker.job} for ${duration(worker.job_ms)}` : "",
    bytes(worker.rss_bytes), worker.jobs_done.toLocaleString("en"), duration(worker.age_ms), worker.front,
  ]);
  const columns = ["Role", ">Process", "State", "Job", ">Memory", ">Jobs done", ">Age", ">Started by"];
  return table(`${count(rows.length, "worker")}`, columns, rows);
}

const stateTag = (state) => tag(state, state === "busy" ? "good" : "");

function poolTable(process) {
  const failed = process.recent_jobs
    ? `, ${process.recent_failed} of its last ${count(process.recent_jobs, "job")} failed` : "";
  if (!process.answers) return el("p", { class: "warn" }, `Process ${process.pid} does not answer.`);
  const rows = process.pools.map((pool) => [
    pool.role, pool.breaker === "closed" ? "closed" : el("strong", { class: "bad" }, pool.breaker),
    pool.waiting, pool.restarts, pool.last_death ? lastDeath(pool.last_death) : "none",
  ]);
  return table(`Process ${process.pid}, running for ${duration(process.age_ms)}${failed}`,
    ["Role", "Breaker", ">Jobs waiting", ">Restarts", "Last death"], rows);
}

function lastDeath(death) {
  const process = death.worker_pid ? ` of process ${death.worker_pid}` : "";
  return el("span", {}, el("strong", {}, death.end), `${process}, `, time(death.died_at));
}

function deaths(store) {
  const classes = Object.entries(store.crashes);
  if (classes.length === 0) return faint("No worker has died.");
  return table("Deaths by class, of all processes", ["Class", ">Number"], classes);
}

function quarantine(store, jobs) {
  if (!store.quarantine) return faint("No jobs in quarantine.");
  const folder = `'${store.store.replaceAll("'", String.raw`'\''`)}'`;
  return el("div", { class: "card problem" },
    el("p", {}, store.quarantine === 1 ? "1 job is skipped because it killed its workers."
      : `${store.quarantine} jobs are skipped because they killed their workers.`),
    table("Jobs in quarantine", ["Kind", "Role", "Class", "Since", "Id"],
      jobs.map((job) => [job.kind, job.role, job.class, time(job.since), el("code", {}, job.id)])),
    el("p", {}, "To let one run again, with its id:"),
    command(`isolith doctor --quarantine retry ${jobs.length === 1 ? jobs[0].id : "ID"} --store ${folder}`));
}

function crashList(crashes) {
  if (crashes.length === 0) return faint("None.");
  return [faint(`${count(crashes.length, "report")}, the newest first.`), crashes.map(crashView)];
}

function crashView(crash) {
  const job = crash.job;
  return el("details", { class: "card" },
    el("summary", {}, el("strong", {}, crash.class), ` · ${crash.role} · ${job?.kind ?? "no job"} · `, time(crash.died_at)),
    pairs([
      ["End", crash.end],
      ["What was done", crash.action],
      ["Job", job ? `${job.kind}, attempt ${job.attempt + 1}, ran for ${duration(job.ran_ms)}` : "none"],
      ["Hash of its input", job ? el("code", {}, job.input_hash) : null],
      ["Panic", crash.panic ? el("pre", {}, crash.panic) : null],
      ["Protocol error", crash.violation],
      ["Worker", `process ${crash.worker_pid ?? "not started"}, ${duration(crash.age_ms)} old, ${count(crash.jobs_done, "job")} done`],
      ["Memory", bytes(crash.rss_bytes)],
      ["Signal", crash.signal],
      ["Exit code", crash.exit_code],
      ["Store", crash.whose],
      ["File", el("code", {}, `crashes/${crash.report}`)],
    ]),
    el("h3", {}, "Last output"),
    crash.output.length ? el("pre", {}, crash.output.join("\n")) : faint("It printed nothing."));
}
