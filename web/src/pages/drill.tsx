/** A drill: faults in real workers of a scratch folder, shown as they happen. */

import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError } from "../api/client";
import { events } from "../api/events";
import type { components } from "../api/schema";
import { count } from "../lib/format";
import { ErrorBox, Faint, Table, Tag, tell } from "../ui/parts";

type Report = components["schemas"]["DrillReport"];

interface Fault {
  fault: string;
  title: string;
  classes: string[];
  expected: string | null;
  passed: boolean;
  recovery_ms: number | null;
}

interface State {
  running: boolean;
  faults: Fault[];
  total: number;
  report: Report | null;
  error: unknown;
}

const IDLE: State = { running: false, faults: [], total: 28, report: null, error: null };

export function Drill() {
  const [state, setState] = useState<State>(IDLE);
  const own = useRef<AbortController | null>(null);
  useEffect(() => () => own.current?.abort(), []);
  const run = async () => {
    const controller = (own.current = new AbortController());
    setState({ ...IDLE, running: true });
    try {
      const started = { method: "POST", headers: { "Content-Type": "application/json" }, body: "{}", signal: controller.signal };
      for await (const { event, data } of events("/v1/drill", started)) {
        const it = JSON.parse(data) as { items?: Fault[]; total?: number; error?: { code: string; message: string; hint: string } };
        if (event === "progress") setState((before) => ({ ...before, faults: it.items ?? [], total: it.total || before.total }));
        if (event === "result") {
          const report = it as unknown as Report;
          setState((before) => ({ ...before, running: false, report }));
          tell(report.passed ? "the drill passed" : "the drill failed");
        }
        if (event === "error" && it.error) throw new ApiError(0, it.error.code, it.error.message, it.error.hint);
      }
      setState((before) => ({ ...before, running: false }));
    } catch (error) {
      if (!controller.signal.aborted) setState((before) => ({ ...before, running: false, error }));
    }
  };
  const stop = () => {
    own.current?.abort();
    setState((before) => ({ ...before, running: false }));
  };
  return (
    <section>
      <h2>Drill</h2>
      <p>Makes workers crash, hang, leak and lie, each kind once, in a process and a scratch folder of its own: no store is touched. It takes about half a minute.</p>
      <div class="row">
        {state.running ? <button type="button" onClick={stop}>Stop</button> : <button type="button" class="main" onClick={() => void run()}>Run the drill</button>}
        {state.running ? <progress value={state.faults.length} max={state.total} aria-label="Faults handled" /> : null}
        {state.running || state.faults.length ? <span class="faint">{state.faults.length} of {count(state.total, "fault")}</span> : null}
      </div>
      {state.error ? <ErrorBox error={state.error} /> : null}
      {state.report ? <Verdict report={state.report} /> : null}
      {state.faults.length ? (
        <Table caption="Faults, the last one first" columns={["Fault", "Classified as", "Result", { name: "Recovered after", number: true }]}
          rows={[...state.faults].reverse().map((it) => [it.title, it.classes.join(", ") || "no death", <Tag kind={it.passed ? "good" : "bad"}>{it.passed ? "handled" : `wrong: expected ${it.expected ?? "no death"}`}</Tag>, it.recovery_ms === null ? "–" : `${it.recovery_ms.toFixed(1)} ms`])} />
      ) : null}
    </section>
  );
}

function Verdict({ report }: { report: Report }) {
  const text = `${count(report.injected, "fault")}: ${report.misclassified} misclassified, ${report.lost} jobs lost, ${report.duplicated} duplicated, ${report.orphans} processes left behind; the slowest recovery took ${report.slowest_recovery_ms.toFixed(0)} ms.`;
  return <div class={`card ${report.passed ? "fine" : "error"}`} role="status"><strong class={report.passed ? "good" : "bad"}>{report.passed ? "Passed" : "Failed"}</strong> <Faint>{text}</Faint></div>;
}
