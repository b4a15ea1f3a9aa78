// Building blocks. Text is only ever inserted as text, never as HTML.

/// An element. Properties that begin with "on" are listeners; children can be nested lists.
export function el(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value") element.value = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...flat(children));
  return element;
}

function flat(children) {
  const kept = children.flat(Infinity).filter((it) => it !== null && it !== undefined && it !== false);
  return kept.map((it) => (it instanceof Node ? it : String(it)));
}

export function fill(element, ...children) {
  element.replaceChildren(...flat(children));
  return element;
}

/// A table that scrolls by itself if it is too wide. Columns that begin with ">" hold numbers.
export function table(caption, columns, rows) {
  const names = columns.map((name) => name.replace(/^>/, ""));
  const kind = (at) => (columns[at].startsWith(">") ? "number" : undefined);
  const head = names.map((name, at) => el("th", { scope: "col", class: kind(at) }, name));
  const cells = (row) => row.map((cell, at) => el("td", { class: kind(at) }, cell));
  const body = rows.map((row) => el("tr", {}, cells(row)));
  return el("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": caption },
    el("table", {}, el("caption", {}, caption), el("thead", {}, el("tr", {}, head)), el("tbody", {}, body)));
}

/// Names with values. Pairs without a value are left out.
export function pairs(entries) {
  const known = entries.filter(([, value]) => value !== null && value !== undefined && value !== "");
  return el("dl", { class: "facts" }, known.map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
}

export const tag = (text, kind = "") => el("span", { class: `tag ${kind}` }, text);

export const faint = (...children) => el("p", { class: "faint" }, ...children);

/// Code, message and hint of an error.
export function errorBox(error) {
  const code = error.code ?? "failed";
  return el("div", { class: "card error", role: "alert" },
    el("p", {}, el("strong", { class: "bad" }, code), ": ", error.message),
    error.hint ? el("p", {}, error.hint) : null);
}

/// A command to paste into a terminal.
export function command(text) {
  const copy = el("button", { type: "button", "aria-label": `Copy: ${text}` }, "Copy");
  copy.addEventListener("click", async () => {
    await navigator.clipboard.writeText(text);
    tell("copied");
    copy.textContent = "Copied";
  });
  // Browsers have a clipboard only for pages of this machine, or over HTTPS.
  return el("div", { class: "row" }, el("code", {}, text), navigator.clipboard ? copy : null);
}

/// Tells users of screen readers what has changed.
export function tell(text) {
  document.getElementById("news").textContent = text;
}

/// Shows in a place what a promise brings, or its error.
export async function into(place, promise, show) {
  try {
    const answer = await promise;
    if (answer !== undefined) fill(place, show(answer));
  } catch (error) {
    fill(place, errorBox(error));
  }
}

export const count = (number, noun, plural = noun + "s") =>
  `${number.toLocaleString("en")} ${number === 1 ? noun : plural}`;

export function bytes(number) {
  if (number === null || number === undefined) return "";
  for (const [unit, size] of [["GB", 1e9], ["MB", 1e6], ["kB", 1e3]]) {
    if (number >= size) return `${(number / size).toFixed(number >= 10 * size ? 0 : 1)} ${unit}`;
  }
  return `${number} B`;
}

export function duration(ms) {
  if (ms === null || ms === undefined) return "";
  const seconds = ms / 1000;
  if (seconds < 1) return `${Math.round(ms)} ms`;
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} days`;
}

export const ago = (moment) => `${duration(Math.max(0, Date.now() - Date.parse(moment)))} ago`;

export function time(moment) {
  return el("time", { datetime: moment, title: moment }, moment.replace("T", " ").replace(/(\.\d+)?Z$/, " UTC"));
}

export function debounced(run, ms) {
  let timer = 0;
  const later = (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => run(...values), ms);
  };
  later.cancel = () => clearTimeout(timer);
  return later;
}

export function field(name, input, kind = "") {
  return el("label", { class: kind }, name, input);
}

export function choice(options, value, properties = {}) {
  const select = el("select", properties, options.map(([key, name]) => el("option", { value: key }, name)));
  select.value = value ?? "";
  return select;
}
