// A drawing of nodes and relationships: a layout by forces, and SVG that can be moved and saved.

import { count, el, faint, fill, pairs } from "./dom.js";

/// Maximum numbers of what is drawn.
const MAX_NODES = 300;
const MAX_LINKS = 1500;
const MAX_NAMED = 120;

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 1000;
const HEIGHT = 640;
/// Distinct on light and dark, also to most people who do not see all colours.
const COLOURS = ["#3b7dd8", "#d9822b", "#2f9e63", "#c2497f", "#8a63d2", "#a08a1f", "#2aa3a8", "#8c8f94"];

function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/// All nodes and relationships in rows, also those in paths, lists and maps.
export function collect(rows) {
  const found = { nodes: new Map(), links: new Map() };
  const visit = (value) => {
    if (value === null || typeof value !== "object") return;
    if (Array.isArray(value.labels) && value.properties) found.nodes.set(value.id, value);
    else if (typeof value.type === "string" && "start" in value && "end" in value) found.links.set(value.id, value);
    else Object.values(value).forEach(visit);
  };
  rows.forEach(visit);
  return found;
}

const nameOf = (node) => String(node.properties.name ?? node.properties.title ?? node.properties.path ?? node.id);
const labelOf = (node) => node.labels[0] ?? "(no label)";

/// What fits into the drawing: the nodes with most relationships, and what connects them.
function select({ nodes, links }) {
  const degrees = new Map([...nodes.keys()].map((id) => [id, 0]));
  const known = [...links.values()].filter((link) => nodes.has(link.start) && nodes.has(link.end));
  for (const link of known) {
    degrees.set(link.start, degrees.get(link.start) + 1);
    degrees.set(link.end, degrees.get(link.end) + 1);
  }
  const ids = [...nodes.keys()].sort((a, b) => degrees.get(b) - degrees.get(a)).slice(0, MAX_NODES);
  const kept = new Map(ids.map((id) => [id, { node: nodes.get(id), degree: degrees.get(id) }]));
  const between = known.filter((link) => kept.has(link.start) && kept.has(link.end)).slice(0, MAX_LINKS);
  return { points: [...kept.values()], kept, between };
}

/// Places points: near ones repel each other, relationships pull, the middle holds everything
/// together.
export function layOut(points, links) {
  const size = Math.sqrt((WIDTH * HEIGHT) / Math.max(1, points.length)) * 0.75;
  points.forEach((point, at) => {
    // A spiral: even, and the same every time.
    const [angle, radius] = [at * 2.399963, size * 0.6 * Math.sqrt(at + 0.5)];
    Object.assign(point, { x: radius * Math.cos(angle), y: radius * Math.sin(angle), dx: 0, dy: 0 });
  });
  const rounds = points.length > 150 ? 150 : 250;
  for (let round = 0; round < rounds; round++) {
    repel(points, size);
    for (const [a, b] of links) {
      const [x, y] = [b.x - a.x, b.y - a.y];
      const pull = Math.hypot(x, y) / size / Math.sqrt(Math.max(1, Math.min(a.degree, b.degree)));
      a.dx += x * pull; a.dy += y * pull; b.dx -= x * pull; b.dy -= y * pull;
    }
    const most = size * (1 - round / rounds);
    for (const point of points) {
      point.dx -= point.x * 0.15;
      point.dy -= point.y * 0.15 * (WIDTH / HEIGHT);
      const step = Math.hypot(point.dx, point.dy) || 1;
      const scale = Math.min(step * 0.2, most) / step;
      point.x += point.dx * scale; point.y += point.dy * scale;
      point.dx = 0; point.dy = 0;
    }
  }
  fit(points);
}

/// Scales the layout to the size of the drawing.
function fit(points) {
  const range = (axis) => {
    const values = points.map((point) => point[axis]);
    return [Math.min(...values), Math.max(...values)];
  };
  const [[left, right], [top, bottom]] = [range("x"), range("y")];
  const scale = Math.min(WIDTH / Math.max(1, right - left), HEIGHT / Math.max(1, bottom - top), 2);
  for (const point of points) {
    point.x = (point.x - (left + right) / 2) * scale;
    point.y = (point.y - (top + bottom) / 2) * scale;
  }
}

function repel(points, size) {
  for (let i = 0; i < points.length; i++) {
    for (let j = i + 1; j < points.length; j++) {
      const [a, b] = [points[i], points[j]];
      const [x, y] = [a.x - b.x || 0.01, a.y - b.y || 0.01];
      const squared = x * x + y * y;
      // Far parts would otherwise drive each other out of the drawing.
      if (squared > 9 * size * size) continue;
      const push = (size * size) / Math.max(1, squared);
      a.dx += x * push; a.dy += y * push; b.dx -= x * push; b.dy -= y * push;
    }
  }
}

export function drawing(found) {
  const { points, kept, between } = select(found);
  const ends = between.map((link) => [kept.get(link.start), kept.get(link.end)]);
  layOut(points, ends);
  const colours = colouring(points);
  const details = el("div", { "aria-live": "polite" });
  const lines = ends.map(([from, to], at) => lineOf(between[at], from, to));
  const groups = points.map((point) => nodeOf(point, colours.get(labelOf(point.node)), points.length <= MAX_NAMED));
  const types = between.length <= 60 ? lines.map((it) => it.name) : [];
  const scene = svg("g", {}, ...lines.map((it) => it.line), ...types, ...groups.map((it) => it.group));
  const label = `${count(points.length, "node")} and ${count(between.length, "relationship")}; the rows below have the same as text`;
  const picture = svg("svg", { class: "drawing", role: "img", "aria-label": label, xmlns: SVG }, scene);
  const view = viewOf();
  const moved = () => {
    groups.forEach((it) => it.place());
    lines.forEach((it) => it.place());
  };
  moved();
  view.apply(picture);
  const choose = (point) => {
    groups.forEach((it) => it.group.classList.toggle("chosen", it.point === point));
    fill(details, describe(point.node));
  };
  interact(picture, view, groups, moved, choose);
  const button = (name, run) => el("button", { type: "button", onclick: run }, name);
  return [
    leftOut(found, points, between),
    legend(colours),
    picture,
    el("div", { class: "row" },
      button("Zoom in", () => view.zoom(picture, 0.8)), button("Zoom out", () => view.zoom(picture, 1.25)),
      button("Save as SVG", () => save(picture)),
      el("span", { class: "faint" }, "Drag nodes or the background; click a node for its properties.")),
    details,
  ];
}

function leftOut({ nodes, links }, points, between) {
  const missing = [
    nodes.size > points.length ? `${count(nodes.size - points.length, "node")} (at most ${MAX_NODES} are drawn, those with most relationships first)` : "",
    links.size > between.length ? `${count(links.size - between.length, "relationship")} to nodes that are not in the rows or not drawn` : "",
  ].filter(Boolean);
  const drawn = `${count(points.length, "node")} and ${count(between.length, "relationship")} drawn.`;
  const hint = between.length === 0 && points.length > 1 ? " Relationships appear if the query returns them, as in RETURN a, r, b." : "";
  return faint(drawn, missing.length ? ` Left out: ${missing.join("; ")}.` : "", hint);
}

function colouring(points) {
  const counts = new Map();
  for (const { node } of points) counts.set(labelOf(node), (counts.get(labelOf(node)) ?? 0) + 1);
  const labels = [...counts].sort((a, b) => b[1] - a[1]).map(([label]) => label);
  return new Map(labels.map((label, at) => [label, COLOURS[Math.min(at, COLOURS.length - 1)]]));
}

function legend(colours) {
  return el("div", { class: "legend" }, [...colours].map(([label, colour]) =>
    el("span", {}, svg("svg", { viewBox: "0 0 10 10", "aria-hidden": "true" }, svg("circle", { cx: 5, cy: 5, r: 5, fill: colour })), label)));
}

function nodeOf(point, colour, named) {
  const radius = 5 + Math.min(9, Math.sqrt(point.degree) * 1.6);
  const circle = svg("circle", { r: radius.toFixed(1), fill: colour });
  const title = svg("title", {}, `${nameOf(point.node)} :${point.node.labels.join(":")}`);
  const group = svg("g", {}, circle, title);
  // Names of small nodes would cover each other.
  if (named || point.degree >= 6) {
    const name = nameOf(point.node);
    const short = name.length > 28 ? `${name.slice(0, 27)}…` : name;
    group.append(svg("text", { x: (radius + 3).toFixed(1), y: 4 }, short));
  }
  const place = () => group.setAttribute("transform", `translate(${point.x.toFixed(1)} ${point.y.toFixed(1)})`);
  return { point, group, place };
}

function lineOf(link, from, to) {
  const line = svg("line", { "stroke-width": 1 });
  const name = svg("text", { class: "type", "text-anchor": "middle" }, link.type);
  const place = () => {
    for (const [attribute, value] of [["x1", from.x], ["y1", from.y], ["x2", to.x], ["y2", to.y]]) {
      line.setAttribute(attribute, value.toFixed(1));
    }
    name.setAttribute("x", ((from.x + to.x) / 2).toFixed(1));
    name.setAttribute("y", ((from.y + to.y) / 2).toFixed(1));
  };
  return { line, name, place };
}

function viewOf() {
  // Names are to the right of their nodes.
  const view = { x: -WIDTH / 2 - 30, y: -HEIGHT / 2 - 20, width: WIDTH + 150, height: HEIGHT + 40 };
  view.apply = (picture) =>
    picture.setAttribute("viewBox", [view.x, view.y, view.width, view.height].map((it) => it.toFixed(1)).join(" "));
  view.zoom = (picture, factor) => {
    view.x += (view.width * (1 - factor)) / 2;
    view.y += (view.height * (1 - factor)) / 2;
    view.width *= factor;
    view.height *= factor;
    view.apply(picture);
  };
  return view;
}

/// Drags nodes and the background.
function interact(picture, view, groups, moved, choose) {
  let dragged = null;
  const scale = () => 1 / (picture.getScreenCTM()?.a || 1);
  picture.addEventListener("pointerdown", (event) => {
    const hit = groups.find((it) => it.group.contains(event.target));
    dragged = { hit, x: event.clientX, y: event.clientY };
    picture.setPointerCapture(event.pointerId);
    if (hit) choose(hit.point);
  });
  picture.addEventListener("pointermove", (event) => {
    if (!dragged) return;
    const [x, y] = [(event.clientX - dragged.x) * scale(), (event.clientY - dragged.y) * scale()];
    Object.assign(dragged, { x: event.clientX, y: event.clientY });
    if (dragged.hit) {
      dragged.hit.point.x += x;
      dragged.hit.point.y += y;
      moved();
    } else {
      view.x -= x;
      view.y -= y;
      view.apply(picture);
    }
  });
  for (const end of ["pointerup", "pointercancel"]) picture.addEventListener(end, () => { dragged = null; });
}

function describe(node) {
  const text = (value) => (typeof value === "string" ? value : JSON.stringify(value));
  return el("div", { class: "card" }, el("h3", {}, nameOf(node)),
    pairs([["Labels", node.labels.join(", ")], ["Id", String(node.id)],
      ...Object.entries(node.properties).map(([name, value]) => [name, text(value)])]));
}

/// Saves the picture with its colours, which the page's style sheet has set.
function save(picture) {
  const copy = picture.cloneNode(true);
  const originals = picture.querySelectorAll("text, line, circle");
  copy.querySelectorAll("text, line, circle").forEach((element, at) => {
    const style = getComputedStyle(originals[at]);
    for (const name of ["fill", "stroke", "stroke-width", "stroke-opacity", "font-size", "font-family", "paint-order"]) {
      element.setAttribute(name, style.getPropertyValue(name));
    }
  });
  copy.removeAttribute("class");
  copy.style.background = getComputedStyle(picture).backgroundColor;
  const blob = new Blob([new XMLSerializer().serializeToString(copy)], { type: "image/svg+xml" });
  const url = URL.createObjectURL(blob);
  el("a", { href: url, download: "graph.svg" }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
