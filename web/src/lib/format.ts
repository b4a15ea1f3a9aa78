/** Numbers and times as people read them. */

export const number = (value: number): string => value.toLocaleString("en");

export const count = (value: number, noun: string, plural = `${noun}s`): string =>
  `${number(value)} ${value === 1 ? noun : plural}`;

export function bytes(value: number | null | undefined): string {
  if (value === null || value === undefined) return "";
  for (const [unit, size] of [["GB", 1e9], ["MB", 1e6], ["kB", 1e3]] as const) {
    if (value >= size) return `${(value / size).toFixed(value >= 10 * size ? 0 : 1)} ${unit}`;
  }
  return `${value} B`;
}

export function duration(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return "";
  const seconds = ms / 1000;
  if (seconds < 1) return `${Math.round(ms)} ms`;
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86_400)} days`;
}

/** A time of a job, which can be very short. */
export function seconds(value: number | null): string {
  if (value === null) return "–";
  if (value < 1e-3) return `${Math.round(value * 1e6)} µs`;
  if (value < 1) return `${(value * 1e3).toPrecision(3)} ms`;
  return `${value.toPrecision(3)} s`;
}

export const ago = (moment: string): string => `${duration(Math.max(0, Date.now() - Date.parse(moment)))} ago`;

/** A moment as the API writes it, shorter. */
export const moment = (text: string): string => text.replace("T", " ").replace(/(\.\d+)?Z$/, " UTC");

/** A word for the shell. */
export const quoted = (word: string): string => `'${word.replaceAll("'", String.raw`'\''`)}'`;

/** Text of any value. */
export const textOf = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value));
