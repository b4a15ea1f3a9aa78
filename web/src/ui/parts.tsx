/** Building blocks. Text is only ever a child, never HTML. */

import type { ComponentChildren } from "preact";
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { ApiError } from "../api/client";
import { moment, textOf } from "../lib/format";

export type Children = ComponentChildren;

export const Faint = ({ children }: { children: Children }) => <p class="faint">{children}</p>;

export const Tag = ({ kind = "", children }: { kind?: string; children: Children }) => <span class={`tag ${kind}`}>{children}</span>;

export const Time = ({ at }: { at: string }) => <time dateTime={at} title={at}>{moment(at)}</time>;

/** Code, message and hint of an error. */
export function ErrorBox({ error }: { error: unknown }) {
  const known = error instanceof ApiError ? error : null;
  return (
    <div class="card error" role="alert">
      <p><strong class="bad">{known?.code ?? "failed"}</strong>: {error instanceof Error ? error.message : textOf(error)}</p>
      {known?.hint ? <p>{known.hint}</p> : null}
    </div>
  );
}

export interface Column {
  name: string;
  /** Numbers are to the right. */
  number?: boolean;
}

/** A table that scrolls by itself if it is too wide. */
export function Table({ caption, columns, rows }: { caption: string; columns: (string | Column)[]; rows: Children[][] }) {
  const all = columns.map((it) => (typeof it === "string" ? { name: it, number: false } : it));
  const kind = (at: number) => (all[at]?.number ? "number" : undefined);
  return (
    <div class="scroll" tabIndex={0} role="group" aria-label={caption}>
      <table>
        <caption>{caption}</caption>
        <thead><tr>{all.map((it, at) => <th key={it.name} scope="col" class={kind(at)}>{it.name}</th>)}</tr></thead>
        <tbody>{rows.map((row, index) => <tr key={index}>{row.map((cell, at) => <td key={at} class={kind(at)}>{cell}</td>)}</tr>)}</tbody>
      </table>
    </div>
  );
}

/** Names with values. Pairs without a value are left out. */
export function Pairs({ entries }: { entries: [string, Children][] }) {
  const known = entries.filter(([, value]) => value !== null && value !== undefined && value !== "" && value !== false);
  return <dl class="facts">{known.map(([name, value]) => [<dt key={`${name} name`}>{name}</dt>, <dd key={name}>{value}</dd>])}</dl>;
}

/** A command to paste into a terminal. */
export function Command({ text }: { text: string }) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setCopied(true);
    tell("copied");
  };
  // Browsers have a clipboard only for pages of this machine, or over HTTPS.
  const button = <button type="button" aria-label={`Copy: ${text}`} onClick={() => void copy()}>{copied ? "Copied" : "Copy"}</button>;
  return <div class="row"><code>{text}</code>{"clipboard" in navigator ? button : null}</div>;
}

export function Field({ name, grow = false, children }: { name: string; grow?: boolean; children: Children }) {
  return <label class={grow ? "grow" : ""}>{name}{children}</label>;
}

export function Choice({ options, value, onChoose }: { options: readonly (readonly [string, string])[]; value: string; onChoose: (value: string) => void }) {
  return (
    <select value={value} onChange={(event) => onChoose(event.currentTarget.value)}>
      {options.map(([key, name]) => <option key={key} value={key}>{name}</option>)}
    </select>
  );
}

/** Tabs as links, each an address of its own. */
export function Tabs({ name, tabs, current }: { name: string; tabs: [string, string][]; current: string }) {
  return (
    <nav class="tabs" aria-label={name}>
      {tabs.map(([href, title]) => <a key={href} href={href} aria-current={href === current ? "true" : undefined}>{title}</a>)}
    </nav>
  );
}

/** Tells users of screen readers what has changed. */
export function tell(text: string): void {
  const place = document.getElementById("news");
  if (place) place.textContent = text;
}

export interface Loaded<T> {
  data: T | null;
  error: unknown;
  loading: boolean;
  again: () => void;
}

/** What a request brings. The answer of an earlier one is dropped; while a new one is under way, the last stays. */
export function useAnswer<T>(ask: (signal: AbortSignal) => Promise<T>, of: unknown[]): Loaded<T> {
  const [state, setState] = useState<{ data: T | null; error: unknown; loading: boolean }>({ data: null, error: null, loading: true });
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    const own = new AbortController();
    setState((before) => ({ ...before, loading: true }));
    ask(own.signal).then(
      (data) => { if (!own.signal.aborted) setState({ data, error: null, loading: false }); },
      (error: unknown) => { if (!own.signal.aborted) setState({ data: null, error, loading: false }); });
    return () => own.abort();
  }, [...of, turn]);
  const again = useCallback(() => setTurn((it) => it + 1), []);
  return { ...state, again };
}

/** Shows what was loaded, the error, or that it is loading. */
export function Show<T>({ of, children }: { of: Loaded<T>; children: (data: T) => Children }) {
  if (of.error) return <ErrorBox error={of.error} />;
  return of.data === null ? <Faint>Loading…</Faint> : <>{children(of.data)}</>;
}

/** The last value, once it has not changed for a while. */
export function useSettled<T>(value: T, ms: number): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), ms);
    return () => clearTimeout(timer);
  }, [value, ms]);
  return settled;
}

/** The width of an element, now and after changes. */
export function useWidth(): [{ current: HTMLDivElement | null }, number] {
  const place = useRef<HTMLDivElement | null>(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const element = place.current;
    if (!element) return;
    const watcher = new ResizeObserver(() => setWidth(element.clientWidth));
    watcher.observe(element);
    setWidth(element.clientWidth);
    return () => watcher.disconnect();
  }, []);
  return [place, width];
}

/** The colours of the theme, for what is drawn; a new object after a change. */
export function useTheme(): Theme {
  const [theme, setTheme] = useState(readTheme);
  useEffect(() => {
    const update = () => setTheme(readTheme());
    const dark = matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", update);
    const chosen = new MutationObserver(update);
    chosen.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
    return () => {
      dark.removeEventListener("change", update);
      chosen.disconnect();
    };
  }, []);
  return theme;
}

export interface Theme {
  text: string;
  faint: string;
  back: string;
  raised: string;
  line: string;
  edge: string;
  accent: string;
  bad: string;
}

function readTheme(): Theme {
  const style = getComputedStyle(document.documentElement);
  const value = (name: string) => style.getPropertyValue(`--${name}`).trim();
  return { text: value("text"), faint: value("faint"), back: value("back"), raised: value("raised"), line: value("line"), edge: value("edge"), accent: value("accent"), bad: value("bad") };
}

/** Distinct on light and dark, also to most people who do not see all colours. */
export const COLOURS = ["#3b7dd8", "#d9822b", "#2f9e63", "#c2497f", "#8a63d2", "#a08a1f", "#2aa3a8", "#b5523b", "#6b7f95", "#8c8f94"];

/** Asks before something is done, beside the button that does it. */
export function Confirmed({ name, question, run, kind = "" }: { name: string; question: string; run: () => void; kind?: string }) {
  const [asking, setAsking] = useState(false);
  const yes = useRef<HTMLButtonElement>(null);
  useEffect(() => { if (asking) yes.current?.focus(); }, [asking]);
  if (!asking) return <button type="button" class={kind} onClick={() => setAsking(true)}>{name}</button>;
  return (
    <span class="confirm" role="group" aria-label={question}>
      {question}{" "}
      <button ref={yes} type="button" class="main" onClick={() => { setAsking(false); run(); }}>{name}</button>{" "}
      <button type="button" onClick={() => setAsking(false)}>Cancel</button>
    </span>
  );
}

/** Saves a file from the page. */
export function save(name: string, content: Blob): void {
  const url = URL.createObjectURL(content);
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
