/** Percentiles and rates of what a server has counted. Bucket N goes up to 4^N microseconds. */

export interface Distribution {
  count: number;
  sum_seconds: number;
  buckets: number[];
}

const bound = (bucket: number): number => 1e-6 * 4 ** bucket;

/** What was added between two states; a server that was started again has counted from 0. */
export function between(before: Distribution | undefined, after: Distribution): Distribution {
  if (!before || before.count > after.count) return after;
  return {
    count: after.count - before.count,
    sum_seconds: after.sum_seconds - before.sum_seconds,
    buckets: after.buckets.map((value, at) => value - (before.buckets[at] ?? 0)),
  };
}

export function sum(all: Distribution[]): Distribution {
  const total: Distribution = { count: 0, sum_seconds: 0, buckets: [] };
  for (const one of all) {
    total.count += one.count;
    total.sum_seconds += one.sum_seconds;
    one.buckets.forEach((value, at) => { total.buckets[at] = (total.buckets[at] ?? 0) + value; });
  }
  return total;
}

/** An estimate in seconds; null without values. Values are taken as spread evenly in the logarithm. */
export function percentile({ count, buckets }: Distribution, part: number): number | null {
  if (count === 0) return null;
  let rest = part * count;
  for (const [at, inside] of buckets.entries()) {
    if (inside > 0 && rest <= inside) {
      if (at === buckets.length - 1) return bound(at - 1);
      const low = at === 0 ? bound(0) / 4 : bound(at - 1);
      return low * 4 ** (rest / inside);
    }
    rest -= inside;
  }
  return bound(buckets.length - 2);
}
