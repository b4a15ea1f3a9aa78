/** A tree of folders, files and definitions, and where each is in a treemap. */

import { hierarchy, treemap, treemapSquarify } from "d3-hierarchy";

export interface MapNode<T> {
  /** The whole path, which names it. */
  path: string;
  name: string;
  size: number;
  children: MapNode<T>[];
  /** What it stands for, if it has no children. */
  leaf: T | null;
}

/** The folders of paths, with the sizes of what is in them; chains of folders with one folder are one. */
export function tree<T extends { path: string }>(items: T[], size: (item: T) => number): MapNode<T> {
  const root: MapNode<T> = { path: "", name: "", size: 0, children: [], leaf: null };
  const folders = new Map<string, MapNode<T>>([["", root]]);
  const folder = (path: string): MapNode<T> => {
    const known = folders.get(path);
    if (known) return known;
    const cut = path.lastIndexOf("/");
    const made: MapNode<T> = { path, name: path.slice(cut + 1), size: 0, children: [], leaf: null };
    folders.set(path, made);
    folder(cut < 0 ? "" : path.slice(0, cut)).children.push(made);
    return made;
  };
  for (const item of items) {
    const cut = item.path.lastIndexOf("/");
    const parent = folder(cut < 0 ? "" : item.path.slice(0, cut));
    parent.children.push({ path: item.path, name: item.path.slice(cut + 1), size: size(item), children: [], leaf: item });
  }
  const settle = (node: MapNode<T>): number => {
    if (node.leaf === null) node.size = node.children.reduce((sum, child) => sum + settle(child), 0);
    node.children.sort((a, b) => b.size - a.size);
    node.children = node.children.map(joined);
    return node.size;
  };
  settle(root);
  return root;
}

/** A folder that has nothing but another folder, as that one. */
function joined<T>(node: MapNode<T>): MapNode<T> {
  const [only, ...others] = node.children;
  return only && others.length === 0 && only.leaf === null ? { ...only, name: `${node.name}/${only.name}` } : node;
}

/** The node at a path; of folders that are shown as one, the last. */
export function find<T>(root: MapNode<T>, path: string): MapNode<T> | null {
  if (root.path === path) return root;
  for (const child of root.children) {
    if (child.path === path || child.path.startsWith(`${path}/`)) return child;
    if (path.startsWith(`${child.path}/`)) return find(child, path);
  }
  return null;
}

export function leaves<T>(node: MapNode<T>): T[] {
  return node.leaf === null ? node.children.flatMap(leaves) : [node.leaf];
}

export interface Tile<T> {
  node: MapNode<T>;
  depth: number;
  x: number;
  y: number;
  width: number;
  height: number;
}

const HEADING = 16;
/** Smaller tiles cannot be seen or hit, and are left out: the folder around them shows through. */
const LEAST = 9;

/** The tiles of a node's children, folders before what is in them. */
export function tiles<T>(node: MapNode<T>, width: number, height: number): Tile<T>[] {
  // Empty files have a tile, too.
  const sized = hierarchy(node).sum((it) => (it.leaf === null ? 0 : Math.max(1, it.size)));
  const placed = treemap<MapNode<T>>().tile(treemapSquarify).size([width, height]).round(true)
    .paddingInner(1).paddingOuter((it) => (it.depth === 0 ? 0 : 2))
    .paddingTop((it) => (it.depth === 0 ? 0 : it.y1 - it.y0 > 30 && it.x1 - it.x0 > 40 ? HEADING : 2))(sized);
  const result: Tile<T>[] = [];
  placed.each((it) => {
    const [w, h] = [it.x1 - it.x0, it.y1 - it.y0];
    if (it.depth === 0 || w * h < LEAST) return;
    result.push({ node: it.data, depth: it.depth, x: it.x0, y: it.y0, width: w, height: h });
  });
  return result;
}
