/** Lines or bars over time, by uPlot. */

import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { useTheme, useWidth } from "./parts";

export interface Series {
  name: string;
  colour: string;
  values: (number | null)[];
}

/** Bars are stacked: values of each series are the sum with those before it. */
export function Chart({ label, times, series, unit, bars = false, height = 190 }: {
  label: string; times: number[]; series: Series[]; unit: (value: number) => string; bars?: boolean; height?: number;
}) {
  const [place, width] = useWidth();
  const theme = useTheme();
  const chart = useRef<uPlot | null>(null);
  const shape = JSON.stringify([series.map((it) => [it.name, it.colour]), bars, height, width, theme]);
  const data: uPlot.AlignedData = [times, ...series.map((it) => it.values)];
  useEffect(() => {
    if (!place.current || width < 50) return;
    const axis = { stroke: theme.faint, grid: { stroke: theme.line, width: 1 }, ticks: { stroke: theme.line, width: 1 }, font: "11px system-ui, sans-serif" };
    const paths = bars && uPlot.paths.bars ? { paths: uPlot.paths.bars({ size: [0.9, 40] }) } : {};
    const options: uPlot.Options = {
      width, height, legend: { live: false }, cursor: { drag: { x: false, y: false } },
      scales: { y: { range: (_, low, high) => [Math.min(0, low ?? 0), Math.max(high ?? 0, 1e-9) * 1.08] } },
      axes: [{ ...axis }, { ...axis, size: 62, values: (_, splits) => splits.map(unit) }],
      series: [{}, ...series.map((it) => ({ label: it.name, stroke: it.colour, width: bars ? 0 : 2, points: { show: false }, spanGaps: true, ...(bars ? { fill: it.colour } : {}), ...paths }))],
    };
    chart.current = new uPlot(options, data, place.current);
    return () => { chart.current?.destroy(); chart.current = null; };
  }, [shape]);
  useEffect(() => chart.current?.setData(data), [times, series]);
  return (
    <figure class="chart">
      <figcaption>{label}</figcaption>
      <div ref={place} role="img" aria-label={`${label}: the tables of this page have the numbers`} />
    </figure>
  );
}
