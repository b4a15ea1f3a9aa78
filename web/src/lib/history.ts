/** What the live events of the last minutes say: rates and percentiles by second, and deaths by time. */

import { between, type Distribution, percentile, sum } from "./latency";

interface RoleCounts {
  role: string;
  jobs: Record<string, number>;
  run: Distribution;
}

export interface Moment {
  at: string;
  stores: { whose: string; roles: RoleCounts[] }[];
}

/** Seconds that are kept. */
export const KEPT = 300;
/** Seconds over which percentiles are taken. */
const WINDOW = 10;

const total = (moment: Moment): Distribution => sum(moment.stores.flatMap((store) => store.roles.map((role) => role.run)));
const jobs = (moment: Moment): number => moment.stores.flatMap((store) => store.roles.flatMap((role) => Object.values(role.jobs))).reduce((a, b) => a + b, 0);

export interface Lines {
  times: number[];
  rate: (number | null)[];
  p50: (number | null)[];
  p95: (number | null)[];
  p99: (number | null)[];
}

export function lines(moments: Moment[]): Lines {
  const found: Lines = { times: [], rate: [], p50: [], p95: [], p99: [] };
  const seconds = moments.map((it) => Date.parse(it.at) / 1000);
  const counts = moments.map(jobs);
  const totals = moments.map(total);
  for (let at = 1; at < moments.length; at += 1) {
    const passed = (seconds[at] ?? 0) - (seconds[at - 1] ?? 0);
    const done = (counts[at] ?? 0) - (counts[at - 1] ?? 0);
    found.times.push(seconds[at] ?? 0);
    // A server that was started again has counted from 0.
    found.rate.push(passed > 0 && done >= 0 ? done / passed : null);
    const recent = between(totals[Math.max(0, at - WINDOW)], totals[at] ?? sum([]));
    for (const [name, part] of [["p50", 0.5], ["p95", 0.95], ["p99", 0.99]] as const) found[name].push(percentile(recent, part));
  }
  return found;
}

export interface Death {
  died_at: string;
  class: string;
}

export interface Deaths {
  times: number[];
  classes: { name: string; counts: number[] }[];
  /** The length of an interval in seconds. */
  interval: number;
}

/** Deaths by class in at most 40 equal intervals from the first to now. */
export function deaths(all: Death[], now: number): Deaths {
  const moments = all.map((it) => Date.parse(it.died_at) / 1000);
  const first = Math.min(now - 60, ...moments);
  const interval = [60, 300, 900, 3600, 14_400, 43_200, 86_400, 604_800, 2_592_000].find((it) => (now - first) / it <= 40) ?? 31_536_000;
  const begin = Math.floor(first / interval) * interval;
  const times: number[] = [];
  for (let at = begin; at <= now; at += interval) times.push(at);
  const names = [...new Set(all.map((it) => it.class))].sort();
  const classes = names.map((name) => ({ name, counts: times.map(() => 0) }));
  all.forEach((it, index) => {
    const counts = classes[names.indexOf(it.class)]?.counts;
    const at = Math.floor(((moments[index] ?? 0) - begin) / interval);
    if (counts && counts[at] !== undefined) counts[at] += 1;
  });
  return { times, classes, interval };
}
