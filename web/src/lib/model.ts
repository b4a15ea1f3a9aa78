/** The graph on screen: what is in it, how it grows, and how it is saved. */

import type Graph from "graphology";

export const MAX_NODES = 2_000;
export const MAX_EDGES = 5_000;

export interface NodeFacts {
  label: string;
  kind: string;
  path: string;
  line: number | null;
  test: boolean;
  /** The id of a symbol, which the endpoints take; null for other nodes. */
  symbol: string | null;
  properties: Record<string, unknown>;
}

export interface EdgeFacts {
  type: string;
  certainty: string;
}

export interface Piece {
  nodes: Map<string, NodeFacts>;
  edges: Map<string, EdgeFacts & { from: string; to: string }>;
}

export const nothing = (): Piece => ({ nodes: new Map(), edges: new Map() });

interface RawNode { id: number; labels: string[]; properties: Record<string, unknown> }
interface RawEdge { id: number; type: string; start: number; end: number; properties?: Record<string, unknown> }

const isNode = (it: object): it is RawNode => "labels" in it && "properties" in it;
const isEdge = (it: object): it is RawEdge => "type" in it && "start" in it && "end" in it;

/** Symbols are known by their id everywhere; other nodes by their number. */
const keyOf = (node: RawNode): string => (typeof node.properties["id"] === "string" ? node.properties["id"] : `#${node.id}`);

export const edgeKey = (from: string, type: string, to: string): string => `${from}\u0000${type}\u0000${to}`;

/** All nodes and relationships in rows of a query, also those in paths, lists and maps. */
export function fromRows(rows: unknown[]): Piece {
  const found = nothing();
  const keys = new Map<number, string>();
  const edges: RawEdge[] = [];
  const visit = (value: unknown): void => {
    if (value === null || typeof value !== "object") return;
    if (isNode(value)) {
      keys.set(value.id, keyOf(value));
      found.nodes.set(keyOf(value), factsOf(value));
    } else if (isEdge(value)) edges.push(value);
    else Object.values(value).forEach(visit);
  };
  rows.forEach(visit);
  for (const edge of edges) {
    const [from, to] = [keys.get(edge.start), keys.get(edge.end)];
    if (from === undefined || to === undefined) continue;
    found.edges.set(edgeKey(from, edge.type, to), { from, to, type: edge.type, certainty: text(edge.properties?.["certainty"]) || "resolved" });
  }
  return found;
}

const text = (value: unknown): string => (typeof value === "string" ? value : "");

function factsOf({ id, labels, properties }: RawNode): NodeFacts {
  const name = text(properties["qualified_name"]) || text(properties["name"]) || text(properties["title"]) || text(properties["path"]) || String(id);
  return {
    label: name, kind: labels[0] ?? "(no label)", path: text(properties["path"]), line: typeof properties["line"] === "number" ? properties["line"] : null,
    test: properties["test"] === true, symbol: typeof properties["id"] === "string" ? properties["id"] : null, properties,
  };
}

interface SymbolLike { id: string; qualified_name: string; label: string; path: string; line: number | null; test: boolean; signature?: string | null; kind: string; language: string }
interface StepLike extends SymbolLike { type: string; certainty: string; via: string }

export function ofSymbol(symbol: SymbolLike): NodeFacts {
  const { id, qualified_name, label, path, line, test } = symbol;
  const properties = { kind: symbol.kind, language: symbol.language, ...(symbol.signature ? { signature: symbol.signature } : {}) };
  return { label: qualified_name || path, kind: label, path, line, test, symbol: id, properties };
}

/** Steps from a symbol: with `backwards` they lead to what uses it. */
export function fromSteps(start: SymbolLike, steps: StepLike[], backwards: boolean): Piece {
  const found = nothing();
  found.nodes.set(start.id, ofSymbol(start));
  for (const step of steps) found.nodes.set(step.id, ofSymbol(step));
  for (const step of steps) {
    const [from, to] = backwards ? [step.id, step.via] : [step.via, step.id];
    if (!found.nodes.has(from) || !found.nodes.has(to)) continue;
    found.edges.set(edgeKey(from, step.type, to), { from, to, type: step.type, certainty: step.certainty });
  }
  return found;
}

export interface Added {
  nodes: number;
  /** What did not fit. */
  nodesLeftOut: number;
  edgesLeftOut: number;
}

/** Adds to the graph up to the maximum; new nodes begin near one that they are connected to. */
export function add(graph: Graph, piece: Piece): Added {
  const added: Added = { nodes: 0, nodesLeftOut: 0, edgesLeftOut: 0 };
  const near = new Map<string, string>();
  for (const { from, to } of piece.edges.values()) {
    if (graph.hasNode(from)) near.set(to, from);
    if (graph.hasNode(to)) near.set(from, to);
  }
  for (const [key, facts] of piece.nodes) {
    if (graph.hasNode(key)) continue;
    if (graph.order >= MAX_NODES) {
      added.nodesLeftOut += 1;
      continue;
    }
    const beside = near.get(key);
    const [x, y] = beside ? [graph.getNodeAttribute(beside, "x") as number, graph.getNodeAttribute(beside, "y") as number] : [0, 0];
    // A spiral by the number of nodes: the same graph looks the same again.
    const [turn, away] = [graph.order * 2.399963, 1 + Math.sqrt(graph.order)];
    graph.addNode(key, { x: x + Math.cos(turn) * away, y: y + Math.sin(turn) * away, facts });
    added.nodes += 1;
  }
  for (const [key, { from, to, type, certainty }] of piece.edges) {
    if (graph.hasEdge(key) || !graph.hasNode(from) || !graph.hasNode(to)) continue;
    if (graph.size >= MAX_EDGES) added.edgesLeftOut += 1;
    else graph.addDirectedEdgeWithKey(key, from, to, { facts: { type, certainty } satisfies EdgeFacts });
  }
  return added;
}

export const facts = (graph: Graph, node: string): NodeFacts => graph.getNodeAttribute(node, "facts") as NodeFacts;
export const edgeFacts = (graph: Graph, edge: string): EdgeFacts => graph.getEdgeAttribute(edge, "facts") as EdgeFacts;

const forXml = (value: string): string => value.replace(/[<>&"']/g, (it) => `&#${it.charCodeAt(0)};`).replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "\ufffd");
const forDot = (value: string): string => `"${value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replace(/[\r\n\u0000]/g, " ")}"`;

/** For Graphviz. */
export function toDot(graph: Graph): string {
  const lines = ["digraph isolith {", "  node [shape=box, fontname=sans];"];
  graph.forEachNode((key) => {
    const { label, kind, path } = facts(graph, key);
    lines.push(`  ${forDot(key)} [label=${forDot(label)}, kind=${forDot(kind)}, path=${forDot(path)}];`);
  });
  graph.forEachEdge((edge, _, from, to) => lines.push(`  ${forDot(from)} -> ${forDot(to)} [label=${forDot(edgeFacts(graph, edge).type)}];`));
  return `${lines.join("\n")}\n}\n`;
}

/** For Gephi, yEd and others. */
export function toGraphMl(graph: Graph): string {
  const lines = ['<?xml version="1.0" encoding="UTF-8"?>', '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">',
    ...["label", "kind", "path"].map((it) => `<key id="${it}" for="node" attr.name="${it}" attr.type="string"/>`),
    ...["type", "certainty"].map((it) => `<key id="${it}" for="edge" attr.name="${it}" attr.type="string"/>`),
    '<graph id="isolith" edgedefault="directed">'];
  graph.forEachNode((key) => {
    const { label, kind, path } = facts(graph, key);
    const data = Object.entries({ label, kind, path }).map(([name, value]) => `<data key="${name}">${forXml(value)}</data>`);
    lines.push(`<node id="${forXml(key)}">${data.join("")}</node>`);
  });
  graph.forEachEdge((edge, _, from, to) => {
    const { type, certainty } = edgeFacts(graph, edge);
    lines.push(`<edge source="${forXml(from)}" target="${forXml(to)}"><data key="type">${forXml(type)}</data><data key="certainty">${forXml(certainty)}</data></edge>`);
  });
  return `${lines.join("\n")}\n</graph>\n</graphml>\n`;
}

export interface Look {
  back: string;
  text: string;
  line: string;
  colour: (node: string) => string;
  size: (node: string) => number;
  isHidden: (node: string) => boolean;
}

/** The picture as it is laid out, with all names. */
export function toSvg(graph: Graph, look: Look): string {
  const nodes = graph.filterNodes((key) => !look.isHidden(key));
  const at = (key: string) => ({ x: graph.getNodeAttribute(key, "x") as number, y: -(graph.getNodeAttribute(key, "y") as number) });
  const places = nodes.map(at);
  const [left, top] = [Math.min(...places.map((it) => it.x)), Math.min(...places.map((it) => it.y))];
  const [right, bottom] = [Math.max(...places.map((it) => it.x)), Math.max(...places.map((it) => it.y))];
  const scale = 1100 / Math.max(right - left, bottom - top, 1e-6);
  const place = (key: string) => ({ x: ((at(key).x - left) * scale + 50).toFixed(1), y: ((at(key).y - top) * scale + 50).toFixed(1) });
  const [width, height] = [(right - left) * scale + 250, (bottom - top) * scale + 100];
  const lines = [`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width.toFixed(0)} ${height.toFixed(0)}" font-family="sans-serif" font-size="10">`,
    `<rect width="100%" height="100%" fill="${look.back}"/>`];
  graph.forEachEdge((edge, _, from, to) => {
    if (look.isHidden(from) || look.isHidden(to)) return;
    const [a, b] = [place(from), place(to)];
    lines.push(`<line x1="${a.x}" y1="${a.y}" x2="${b.x}" y2="${b.y}" stroke="${look.line}"><title>${forXml(edgeFacts(graph, edge).type)}</title></line>`);
  });
  for (const key of nodes) {
    const [{ x, y }, size] = [place(key), look.size(key)];
    lines.push(`<circle cx="${x}" cy="${y}" r="${size}" fill="${look.colour(key)}"/>`,
      `<text x="${(Number(x) + size + 2).toFixed(1)}" y="${(Number(y) + 3).toFixed(1)}" fill="${look.text}">${forXml(facts(graph, key).label)}</text>`);
  }
  return `${lines.join("\n")}\n</svg>\n`;
}
