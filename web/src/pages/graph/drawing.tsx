/** A graph on screen, drawn by sigma.js and laid out by ForceAtlas2. */

import type Graph from "graphology";
import forceAtlas2 from "graphology-layout-forceatlas2";
import { useEffect, useRef, useState } from "preact/hooks";
import Sigma from "sigma";
import { edgeFacts, facts, toDot, toGraphMl, toSvg } from "../../lib/model";
import { COLOURS, ErrorBox, Faint, save, type Theme, useTheme } from "../../ui/parts";

/** How long the layout moves after a change, in milliseconds of its own work. */
const LAYOUT_MS = 4_000;
/** Up to this number, all nodes have their names. */
const NAMED = 60;
/** How much of a frame it may take. */
const FRAME_MS = 12;

export const KINDS = ["Function", "Method", "Class", "File", "Module", "Variable", "Directory", "DocSection", "Entity"];
export const colourOf = (kind: string): string => COLOURS[KINDS.indexOf(kind)] ?? COLOURS[9] ?? "";

export interface Marks {
  selected: string | null;
  /** Distances from what changes, in hops. */
  impact: Map<string, number> | null;
  /** Nodes of a path. */
  path: Set<string> | null;
  hideTests: boolean;
  hideCandidates: boolean;
}

const IMPACT = ["#b3261e", "#d9522b", "#d9822b", "#c9a227"];

function nodeColour(graph: Graph, node: string, marks: Marks, theme: Theme): string {
  if (marks.impact) {
    const away = marks.impact.get(node);
    return away === undefined ? theme.line : (IMPACT[Math.min(away, IMPACT.length - 1)] ?? theme.bad);
  }
  if (marks.path) return marks.path.has(node) ? theme.accent : theme.line;
  return colourOf(facts(graph, node).kind);
}

const nodeSize = (graph: Graph, node: string): number => Math.min(14, 4 + Math.sqrt(graph.degree(node)));

export function Drawing({ graph, change, marks, choose, expand }: {
  graph: Graph; change: number; marks: Marks; choose: (node: string | null) => void; expand: (node: string) => void;
}) {
  const place = useRef<HTMLDivElement>(null);
  const theme = useTheme();
  const [problem, setProblem] = useState<Error | null>(null);
  const sigma = useRef<Sigma | null>(null);
  const latest = useRef({ marks, theme, choose, expand });
  latest.current = { marks, theme, choose, expand };
  const isHidden = (node: string) => marks.hideTests && facts(graph, node).test && node !== marks.selected;

  useEffect(() => {
    if (!place.current) return;
    if (!document.createElement("canvas").getContext("webgl2")) {
      setProblem(new Error("this browser cannot draw graphs, as it has no WebGL; the lists and the files to save have the same data"));
      return;
    }
    const drawn = new Sigma(graph, place.current, settings(graph, () => latest.current));
    sigma.current = drawn;
    // Tests measure frames with it.
    Object.assign(place.current, { sigma: drawn });
    drawn.on("clickNode", ({ node }) => latest.current.choose(node));
    drawn.on("doubleClickNode", (event) => { event.preventSigmaDefault(); latest.current.expand(event.node); });
    drawn.on("clickStage", () => latest.current.choose(null));
    const end = drag(drawn, graph);
    return () => { end(); sigma.current = null; drawn.kill(); };
  }, [graph]);
  useEffect(() => layOut(graph), [graph, change]);
  useEffect(() => { sigma.current?.refresh({ skipIndexation: true }); }, [marks, theme]);

  const look = {
    back: theme.back, text: theme.text, line: theme.faint, isHidden,
    colour: (node: string) => nodeColour(graph, node, marks, theme), size: (node: string) => nodeSize(graph, node),
  };
  const camera = (by: "in" | "out" | "reset") => {
    const it = sigma.current?.getCamera();
    if (by === "in") void it?.animatedZoom({ duration: 150 });
    else if (by === "out") void it?.animatedUnzoom({ duration: 150 });
    else void it?.animatedReset({ duration: 150 });
  };
  return (
    <div>
      <div class="row tools small">
        <button type="button" onClick={() => camera("in")} aria-label="Zoom in">+</button>
        <button type="button" onClick={() => camera("out")} aria-label="Zoom out">−</button>
        <button type="button" onClick={() => camera("reset")}>Whole graph</button>
        <span class="push" />
        <button type="button" onClick={() => save("graph.svg", new Blob([toSvg(graph, look)], { type: "image/svg+xml" }))}>Save SVG</button>
        <button type="button" onClick={() => { if (sigma.current) void savePng(sigma.current, theme.back); }}>Save PNG</button>
        <button type="button" onClick={() => save("graph.dot", new Blob([toDot(graph)], { type: "text/vnd.graphviz" }))}>Save DOT</button>
        <button type="button" onClick={() => save("graph.graphml", new Blob([toGraphMl(graph)], { type: "application/graphml+xml" }))}>Save GraphML</button>
      </div>
      {problem ? <ErrorBox error={problem} /> : <div ref={place} class="drawing" role="img" aria-label={`A drawing of ${graph.order} nodes and ${graph.size} edges; the list beside it has the same`} />}
      <Legend graph={graph} marks={marks} />
    </div>
  );
}

interface Latest {
  marks: Marks;
  theme: Theme;
}

function settings(graph: Graph, latest: () => Latest) {
  const { theme } = latest();
  return {
    renderEdgeLabels: false, zIndex: false, minCameraRatio: 0.02, maxCameraRatio: 4, labelRenderedSizeThreshold: 7, labelDensity: 0.6,
    labelSize: 12, labelFont: "system-ui, sans-serif", defaultEdgeType: "arrow", stagePadding: 40, hideLabelsOnMove: true, allowInvalidContainer: true,
    labelColor: { attribute: "labelColour", color: theme.text },
    nodeReducer: (node: string, data: { x?: number; y?: number }) => {
      const { marks, theme } = latest();
      const it = facts(graph, node);
      return {
        x: data.x, y: data.y, label: it.label, labelColour: theme.text, size: nodeSize(graph, node) + (node === marks.selected ? 3 : 0), color: nodeColour(graph, node, marks, theme),
        highlighted: false, forceLabel: graph.order <= NAMED || node === marks.selected || Boolean(marks.path?.has(node)),
        hidden: marks.hideTests && it.test && node !== marks.selected,
      };
    },
    edgeReducer: (edge: string) => {
      const { marks, theme } = latest();
      const isOfPath = marks.path?.has(graph.source(edge)) && marks.path.has(graph.target(edge));
      const isOfSelected = marks.selected !== null && (graph.source(edge) === marks.selected || graph.target(edge) === marks.selected);
      return {
        color: isOfPath || isOfSelected ? theme.accent : theme.edge, size: isOfPath ? 3 : 1,
        hidden: marks.hideCandidates && edgeFacts(graph, edge).certainty === "candidate",
      };
    },
    // The drawing's own box behind a name would be white in the dark theme.
    defaultDrawNodeHover: (context: CanvasRenderingContext2D, data: { x: number; y: number; size: number; label?: string | null }) => {
      const { theme } = latest();
      if (!data.label) return;
      context.font = "600 12px system-ui, sans-serif";
      const width = context.measureText(data.label).width;
      context.fillStyle = theme.raised;
      context.strokeStyle = theme.line;
      context.beginPath();
      context.roundRect(data.x + data.size + 2, data.y - 10, width + 10, 20, 4);
      context.fill();
      context.stroke();
      context.fillStyle = theme.text;
      context.fillText(data.label, data.x + data.size + 7, data.y + 4);
    },
  };
}

/** Moves nodes a little in each frame until the time is over; returns how to stop. */
function layOut(graph: Graph): () => void {
  if (graph.order < 2) return () => undefined;
  const settings = { ...forceAtlas2.inferSettings(graph), gravity: 1, barnesHutOptimize: graph.order > 300, adjustSizes: false };
  const start = performance.now();
  const end = start + Math.min(LAYOUT_MS, 400 + graph.order * 4);
  let [last, frame] = [start, 0];
  const step = () => {
    const began = performance.now();
    // Where drawing is slow, fewer frames with more work each.
    const budget = Math.max(FRAME_MS, (began - last) / 2);
    last = began;
    let rounds = 0;
    while (performance.now() - began < budget && rounds < 20) {
      forceAtlas2.assign(graph, { iterations: 1, settings });
      rounds += 1;
    }
    if (performance.now() < end) frame = requestAnimationFrame(step);
  };
  frame = requestAnimationFrame(step);
  return () => cancelAnimationFrame(frame);
}

/** Nodes can be dragged. */
function drag(sigma: Sigma, graph: Graph): () => void {
  let dragged: string | null = null;
  const down = ({ node }: { node: string }) => { dragged = node; };
  sigma.on("downNode", down);
  const mouse = sigma.getMouseCaptor();
  mouse.on("mousemovebody", (event) => {
    if (!dragged) return;
    const { x, y } = sigma.viewportToGraph(event);
    graph.mergeNodeAttributes(dragged, { x, y });
    event.preventSigmaDefault();
  });
  const up = () => { dragged = null; };
  document.addEventListener("mouseup", up);
  return () => document.removeEventListener("mouseup", up);
}

/** The layers that are on screen, on one canvas. */
async function savePng(sigma: Sigma, back: string): Promise<void> {
  const layers = Object.values(sigma.getCanvases());
  const canvas = document.createElement("canvas");
  const first = layers[0];
  if (!first) return;
  [canvas.width, canvas.height] = [first.width, first.height];
  const context = canvas.getContext("2d");
  if (!context) return;
  context.fillStyle = back;
  context.fillRect(0, 0, canvas.width, canvas.height);
  // At once after they are drawn: WebGL keeps nothing for longer.
  sigma.refresh();
  for (const layer of layers) if (layer.width && layer.height) context.drawImage(layer, 0, 0, canvas.width, canvas.height);
  const content = await new Promise<Blob | null>((done) => canvas.toBlob(done, "image/png"));
  if (content) save("graph.png", content);
}

function Legend({ graph, marks }: { graph: Graph; marks: Marks }) {
  if (marks.impact) {
    return <p class="legend">{["changed", "1 step away", "2 steps away", "3 or more"].map((name, at) => <Swatch key={name} name={name} colour={IMPACT[at] ?? ""} />)}</p>;
  }
  const kinds = [...new Set(graph.mapNodes((node) => facts(graph, node).kind))];
  return kinds.length ? <p class="legend">{kinds.slice(0, 12).map((kind) => <Swatch key={kind} name={kind} colour={colourOf(kind)} />)}</p> : <Faint>Nothing to draw yet.</Faint>;
}

const Swatch = ({ name, colour }: { name: string; colour: string }) => <span><svg viewBox="0 0 2 2" aria-hidden="true"><circle cx="1" cy="1" r="1" fill={colour} /></svg>{name}</span>;
