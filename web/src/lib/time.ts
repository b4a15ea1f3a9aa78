/** Facts in time: when they are true, and where their bars are. */

export interface Timed {
  valid_from: string | null;
  valid_to: string | null;
}

/** The first moment of a day or a moment; null if it is not one. */
export function start(text: string | null): number | null {
  if (!text) return null;
  const time = Date.parse(text.length === 10 ? `${text}T00:00:00Z` : text);
  return Number.isNaN(time) ? null : time;
}

/** Whether a fact is true at a moment: from its start on, and before its end. */
export function holds(fact: Timed, at: number): boolean {
  return (start(fact.valid_from) ?? -Infinity) <= at && at < (start(fact.valid_to) ?? Infinity);
}

/** The time that all facts and now take up, with a margin. */
export function span(facts: Timed[], now: number): [number, number] {
  const known = facts.flatMap((fact) => [start(fact.valid_from), start(fact.valid_to)]).filter((it) => it !== null);
  const [first, last] = [Math.min(now, ...known), Math.max(now, ...known)];
  const margin = Math.max((last - first) * 0.04, 86_400_000);
  return [first - margin, last + margin];
}

/** Round moments to name on an axis: at most `most`. */
export function ticks([from, to]: [number, number], most: number): { at: number; text: string }[] {
  const found: { at: number; text: string }[] = [];
  const day = 86_400_000;
  const steps: [number, "year" | "month" | "day"][] = [[1, "day"], [7, "day"], [1, "month"], [3, "month"], [1, "year"], [2, "year"], [5, "year"], [10, "year"], [50, "year"], [100, "year"], [1000, "year"]];
  const length = { day, month: 30.4 * day, year: 365.2 * day };
  const [step, unit] = steps.find(([number, of]) => (to - from) / (number * length[of]) <= most) ?? [10_000, "year"];
  const at = new Date(from);
  at.setUTCHours(0, 0, 0, 0);
  if (unit !== "day") at.setUTCDate(1);
  if (unit === "year") at.setUTCMonth(0);
  if (unit === "month") at.setUTCMonth(Math.floor(at.getUTCMonth() / step) * step);
  if (unit === "year") at.setUTCFullYear(Math.floor(at.getUTCFullYear() / step) * step);
  for (let guard = 0; at.getTime() <= to && guard < 500; guard += 1) {
    const text = at.toISOString();
    if (at.getTime() >= from) found.push({ at: at.getTime(), text: text.slice(0, { day: 10, month: 7, year: 4 }[unit]) });
    if (unit === "day") at.setUTCDate(at.getUTCDate() + step);
    else if (unit === "month") at.setUTCMonth(at.getUTCMonth() + step);
    else at.setUTCFullYear(at.getUTCFullYear() + step);
  }
  return found;
}
