// The frame: pages by the part of the address after #, and signing in.

import { hasKey, signIn, signOut } from "./api.js";
import { el, errorBox, faint, field, fill, tell } from "./dom.js";
import * as collections from "./collections.js";
import * as graph from "./graph.js";
import * as memory from "./memory.js";
import * as overview from "./overview.js";
import * as search from "./search.js";
import * as workers from "./workers.js";

const PAGES = { overview, workers, search, collections, memory, graph };
const main = document.getElementById("page");
const nav = document.getElementById("pages");
const leave = document.getElementById("sign-out");
let close = null;
let signingIn = false;

/// The page in the address, the rest of its path, and its parameters.
function route() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [name, ...rest] = path.split("/").map(decode);
  return { name: name in PAGES ? name : "overview", rest, query: new URLSearchParams(query) };
}

function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function show() {
  if (signingIn) return;
  close?.();
  const { name, rest, query } = route();
  const page = PAGES[name];
  document.title = `${page.title} · Isolith`;
  tell(page.title);
  for (const link of nav.children) {
    if (link.dataset.page === name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  fill(main, el("h1", {}, page.title));
  const place = main.appendChild(el("div"));
  close = page.show(place, { rest, query }) ?? null;
  nav.hidden = false;
  leave.hidden = !hasKey();
}

function askForToken(problem) {
  if (signingIn && !problem) return;
  signingIn = true;
  close?.();
  close = null;
  leave.hidden = true;
  nav.hidden = true;
  document.title = "Sign in · Isolith";
  const token = el("input", { type: "password", autocomplete: "current-password", required: true });
  const form = el("form", { class: "sign-in" },
    el("h1", {}, "Sign in"),
    faint("This server needs its token. ", el("code", {}, "isolith serve"),
      " shows it, or the file it is in, when it starts; by default that is ",
      el("code", {}, "~/.local/state/isolith/token"), " on the server's machine."),
    problem ? errorBox(problem) : null,
    el("div", { class: "row" }, field("Token", token, "grow"),
      el("button", { class: "main" }, "Sign in")));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    await enter({ token: token.value });
  });
  fill(main, form);
  token.focus();
}

async function enter(credential) {
  try {
    await signIn(credential);
    signingIn = false;
    tell("signed in");
    show();
  } catch (error) {
    // A link that was opened again is no problem for who is still signed in.
    if (credential.link && hasKey()) show();
    else askForToken(error);
  }
}

for (const [name, page] of Object.entries(PAGES)) {
  nav.append(el("a", { href: `#/${name}`, "data-page": name }, page.title));
}
leave.addEventListener("click", async () => {
  try {
    await signOut();
  } finally {
    askForToken();
  }
});
document.getElementById("skip").addEventListener("click", () => main.focus());
window.addEventListener("hashchange", () => {
  if (location.hash.startsWith("#sign-in=")) start();
  else show();
});
window.addEventListener("signed-out", () => askForToken());
document.addEventListener("keydown", (event) => {
  const typing = event.target.closest?.("input, textarea, select");
  if (event.key !== "/" || typing || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  if (route().name !== "search") location.hash = "#/search";
  else main.querySelector("input[type=search]")?.focus();
});

/// A link with a secret signs in, and disappears from the address before anything else.
async function start() {
  const link = location.hash.match(/^#sign-in=([0-9a-f]+)$/);
  if (!link) {
    show();
    return;
  }
  history.replaceState(null, "", "/");
  await enter({ link: link[1] });
}

start();
