/** The vectors of a collection in a plane, by their principal components. */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { answer, api } from "../api/client";
import type { components } from "../api/schema";
import { count, number, textOf } from "../lib/format";
import { COLOURS, Faint, Field, Show, useAnswer, useSettled, useTheme, useWidth } from "../ui/parts";

type Point = components["schemas"]["Projection"]["points"][number];
const MOST = 20_000;
const GREY = "#8c8f94";

export function Projection({ name, near }: { name: string; near: (id: string) => void }) {
  const [key, setKey] = useState("");
  const by = useSettled(key.trim(), 400);
  const loaded = useAnswer((signal) => {
    const query = { limit: MOST, ...(by ? { by } : {}) };
    return answer(api.GET("/v1/collections/{collection}/projection", { params: { path: { collection: name }, query }, signal }));
  }, [name, by]);
  return (
    <>
      <form class="row" onSubmit={(event) => event.preventDefault()}>
        <Field name="Colour by a key of the metadata"><input value={key} placeholder="year" spellcheck={false} onInput={(event) => setKey(event.currentTarget.value)} /></Field>
      </form>
      <Show of={loaded}>{({ points, records, explained }) => points.length === 0 ? <Faint>No vectors.</Faint> : (
        <>
          <Faint>{count(points.length, "vector")}{points.length < records ? ` of ${number(records)}, the first ones` : ""} by principal components, which show {Math.round(100 * ((explained[0] ?? 0) + (explained[1] ?? 0)))} % of the variance. Near here means similar in these two directions only.</Faint>
          <Scatter points={points} isColoured={by !== ""} near={near} />
        </>
      )}</Show>
    </>
  );
}

function colouring(points: Point[]): { of: (point: Point) => string; legend: [string, string][] } {
  const counts = new Map<string, number>();
  const name = (point: Point) => (point.value === null || point.value === undefined ? "none" : textOf(point.value));
  for (const point of points) counts.set(name(point), (counts.get(name(point)) ?? 0) + 1);
  const most = [...counts].sort((a, b) => b[1] - a[1]).slice(0, COLOURS.length - 1).map(([it]) => it);
  const colours = new Map(most.map((it, at) => [it, it === "none" ? GREY : (COLOURS[at] ?? GREY)]));
  const legend = [...colours].map(([name, colour]): [string, string] => [`${name} (${counts.get(name)})`, colour]);
  return { of: (point) => colours.get(name(point)) ?? GREY, legend: counts.size > most.length ? [...legend, ["others", GREY]] : legend };
}

function Scatter({ points, isColoured, near }: { points: Point[]; isColoured: boolean; near: (id: string) => void }) {
  const [place, width] = useWidth();
  const canvas = useRef<HTMLCanvasElement>(null);
  const theme = useTheme();
  const [pointed, setPointed] = useState<Point | null>(null);
  const height = Math.round(Math.min(620, Math.max(300, width * 0.6)));
  const { of, legend } = useMemo(() => (isColoured ? colouring(points) : { of: () => COLOURS[0] ?? GREY, legend: [] }), [points, isColoured]);
  const fit = useMemo(() => {
    const [xs, ys] = [points.map((it) => it.x), points.map((it) => it.y)];
    const range = (all: number[]) => all.reduce(([low, high], it) => [Math.min(low, it), Math.max(high, it)] as [number, number], [Infinity, -Infinity] as [number, number]);
    const [[left, right], [top, bottom]] = [range(xs), range(ys)];
    return (point: Point): [number, number] => [
      12 + ((point.x - left) / Math.max(right - left, 1e-9)) * (width - 24), 12 + ((point.y - top) / Math.max(bottom - top, 1e-9)) * (height - 24)];
  }, [points, width, height]);
  useEffect(() => {
    const element = canvas.current;
    const context = element?.getContext("2d");
    if (!element || !context || !width) return;
    const ratio = window.devicePixelRatio || 1;
    [element.width, element.height] = [width * ratio, height * ratio];
    context.scale(ratio, ratio);
    context.clearRect(0, 0, width, height);
    context.globalAlpha = points.length > 2_000 ? 0.55 : 0.8;
    const size = points.length > 5_000 ? 1.6 : 3;
    for (const point of points) {
      const [x, y] = fit(point);
      context.fillStyle = of(point);
      context.beginPath();
      context.arc(x, y, size, 0, 7);
      context.fill();
    }
    if (pointed) {
      const [x, y] = fit(pointed);
      context.globalAlpha = 1;
      context.strokeStyle = theme.text;
      context.lineWidth = 2;
      context.beginPath();
      context.arc(x, y, size + 4, 0, 7);
      context.stroke();
    }
  }, [points, width, height, theme, pointed, of, fit]);
  const nearest = (event: MouseEvent): Point | null => {
    const box = (event.currentTarget as Element).getBoundingClientRect();
    const [mouseX, mouseY] = [event.clientX - box.left, event.clientY - box.top];
    let [best, distance] = [null as Point | null, 20 ** 2];
    for (const point of points) {
      const [x, y] = fit(point);
      const away = (x - mouseX) ** 2 + (y - mouseY) ** 2;
      if (away < distance) [best, distance] = [point, away];
    }
    return best;
  };
  return (
    <div ref={place} class="scatter">
      <canvas ref={canvas} style={{ width: `${width}px`, height: `${height}px` }} role="img" aria-label={`${count(points.length, "vector")} as points; the records are in the other view`}
        onMouseMove={(event) => setPointed(nearest(event))} onMouseLeave={() => setPointed(null)} onClick={(event) => { const it = nearest(event); if (it) near(it.id); }} />
      <p class="faint pointed">{pointed ? <><code>{pointed.id}</code>{isColoured ? ` ${textOf(pointed.value ?? null)}` : ""}: click for its nearest neighbours</> : "Point at a vector to see its id."}</p>
      {legend.length ? <p class="legend">{legend.map(([name, colour]) => <span key={name}><svg viewBox="0 0 2 2" aria-hidden="true"><circle cx="1" cy="1" r="1" fill={colour} /></svg>{name}</span>)}</p> : null}
    </div>
  );
}
