// The pages in headless Chromium, on a project, memory and records with hostile texts.
//
//     node pages.mjs PROGRAM [FOLDER_FOR_SCREENSHOTS]
//
// CHROMIUM names the browser; by default it is /usr/bin/chromium.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import fs from "node:fs";
import { createRequire } from "node:module";
import os from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { chromium } from "playwright-core";
import { fillProject } from "./project.mjs";

const [program, screenshots] = process.argv.slice(2).map((it) => path.resolve(it));
const AXE = fs.readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
// Without a graphics card: what is measured here is drawn by the processor.
const FLAGS = ["--no-sandbox", "--disable-gpu", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--disable-quic", "--no-first-run",
  "--disable-background-networking", "--disable-component-update", "--disable-sync"];

const folder = fs.mkdtempSync(path.join(os.tmpdir(), "isolith-pages-"));
const project = path.join(folder, "project");
const state = path.join(folder, "state");
// In the command line of each of the browser's processes that has to do with pages.
const profile = path.join(folder, "browser");
const env = { ...process.env, HOME: folder, XDG_DATA_HOME: path.join(folder, "data"), XDG_STATE_HOME: state,
  XDG_CONFIG_HOME: path.join(folder, "config") };
for (const name of Object.keys(env)) if (name.startsWith("ISOLITH_")) delete env[name];

function isolith(...words) {
  execFileSync(program, words, { cwd: project, env, stdio: ["ignore", "ignore", "inherit"] });
}

async function start(...flags) {
  const child = spawn(program, ["ui", "--no-browser", "--json", ...flags], { cwd: project, env, stdio: ["ignore", "pipe", "ignore"] });
  for await (const line of createInterface({ input: child.stdout })) return { child, url: JSON.parse(line).url };
  throw new Error("the server did not start");
}

/// What must not happen on any page.
function watch(page, root) {
  const found = [];
  page.on("dialog", (dialog) => { found.push("a dialog opened"); dialog.dismiss(); });
  page.on("pageerror", (error) => { found.push(`error: ${error.message}`); console.error(error.stack); });
  page.on("console", (message) => {
    // Refused requests are part of the test.
    if (message.type() === "error" && !message.text().includes("status of 4")) found.push(message.text());
  });
  page.on("request", (request) => {
    const url = request.url();
    if (![`${root}/`, "data:", "blob:"].some((start) => url.startsWith(start))) found.push(`request to ${url}`);
  });
  return found;
}

async function axe(page, name) {
  await page.evaluate(AXE);
  const found = await page.evaluate(async () => (await window.axe.run(document, { resultTypes: ["violations"] })).violations
    .filter((it) => it.impact === "serious" || it.impact === "critical").map((it) => `${it.id}: ${it.nodes.map((node) => node.html.slice(0, 160)).join(" | ")}`));
  assert.deepEqual(found, [], `${name}: axe`);
}

/** A page in light, dark and narrow: nothing is too wide, nothing became HTML, no error, and axe finds nothing serious. */
async function look(page, root, name, hash, ready) {
  if (hash !== null) await page.goto(`${root}/#/${hash}`);
  await page.locator(ready).first().waitFor();
  for (const [kind, scheme, width] of [["light", "light", 1200], ["narrow", "light", 380], ["dark", "dark", 1200]]) {
    await page.emulateMedia({ colorScheme: scheme });
    await page.setViewportSize({ width, height: 850 });
    await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
    const excess = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(excess <= 0, `${name} is ${excess} px too wide at ${width} px`);
    if (screenshots) {
      await page.waitForTimeout(400);
      await page.screenshot({ path: path.join(screenshots, `${name}-${kind}.png`) });
    }
    if (kind !== "narrow") await axe(page, `${name} ${kind}`);
  }
  await page.emulateMedia({ colorScheme: "light" });
  assert.equal(await page.locator("main img, main b").count(), 0, `${name}: text became HTML`);
  assert.equal(await page.locator(".card.error").count(), 0, `${name} shows an error`);
}

async function search(page) {
  await page.locator("input[type=search]").pressSequentially("say hello", { delay: 20 });
  const hit = page.locator("section[aria-label=Code] .result", { hasText: "greetings.py" }).first();
  await hit.waitFor();
  for (const [name, expected] of [["File", "def part(name):"], ["Callees", "part"], ["Similar", ""]]) {
    await hit.getByRole("button", { name }).click();
    await hit.locator("[aria-live] > * > *").first().waitFor();
    await page.waitForFunction(([element, text]) => element.innerText.includes(text), [await hit.locator("[aria-live]").elementHandle(), expected]);
  }
  await page.locator(".hljs-keyword").first().waitFor();
  await page.locator("input[type=search]").press("ArrowDown");
  assert.ok(await page.evaluate(() => document.activeElement.classList.contains("result")), "the arrow leads to a result");
  assert.ok(page.url().includes("q=say+hello"), "the question is in the address");
}

async function map(page, root) {
  await page.goto(`${root}/#/map`);
  await page.getByRole("link", { name: "pkg/" }).waitFor();
  const first = await page.locator("tbody tr").first().innerText();
  assert.ok(first.includes("pkg"), `the largest is first: ${first}`);
  for (const by of ["age", "calls", "cycles", "author", "language"]) {
    await page.getByLabel("Colour by").selectOption(by);
    await page.locator(".legend span").first().waitFor();
  }
  await page.getByLabel("Colour by").selectOption("cycles");
  await page.getByText("cycle 1").first().waitFor();
  // With the keyboard into a folder, then into a file and a definition.
  await page.locator(".treemap g[role=button]").first().focus();
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Largest in pkg" }).waitFor();
  await page.getByRole("link", { name: "large.py" }).click();
  await page.locator("tbody button").first().click();
  await page.getByRole("button", { name: "Callers" }).click();
  await page.locator("[aria-live] ul.tree li, [aria-live] .faint").first().waitFor();
}

async function explore(page, root) {
  await page.goto(`${root}/#/graph/explore`);
  await page.getByLabel("Find a symbol").fill("part");
  await page.locator(".found button").first().click();
  await page.locator("aside h2", { hasText: "part" }).waitFor();
  await page.locator(".news", { hasText: "Callers of part" }).waitFor();
  await page.locator("aside li", { hasText: "greet" }).waitFor();
  await page.getByRole("button", { name: "What may break" }).click();
  await page.locator(".news", { hasText: "A change of part may break" }).waitFor();
  await page.getByRole("button", { name: "Path from here…" }).click();
  await page.getByRole("button", { name: "All nodes" }).click();
  await page.locator("aside li button", { hasText: "greet" }).first().click();
  await page.getByRole("button", { name: /Path from part/ }).click();
  await page.locator(".news", { hasText: "There is no path of dependencies from part to greet" }).waitFor();
  for (const [name, begin] of [["SVG", "<svg"], ["DOT", "digraph"], ["GraphML", "<?xml"], ["PNG", "\u0089PNG"]]) {
    const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: `Save ${name}` }).click()]);
    const saved = fs.readFileSync(await download.path());
    assert.ok(saved.toString("latin1").startsWith(begin), name);
    if (name !== "PNG") assert.ok(saved.toString().includes("greet"), name);
    else assert.ok(saved.length > 2_000, "the picture is not empty");
  }
}

async function cypher(page, root) {
  await page.goto(`${root}/#/graph/cypher`);
  await page.getByText("Labels:").waitFor();
  const box = page.locator("textarea");
  await box.fill("");
  await box.pressSequentially("MATCH (a:Funct");
  await page.getByRole("option", { name: "Function", exact: true }).waitFor();
  await box.press("Tab");
  assert.equal(await box.inputValue(), "MATCH (a:Function");
  await box.fill("MATCH (a:Function)-[r:CALLS]->(b:Function) RETURN a, r, b");
  await box.press("Control+Enter");
  await page.locator(".drawing canvas").first().waitFor();
  await page.getByRole("button", { name: "Table" }).click();
  await page.locator("td details").first().waitFor();
  await box.fill("MATCH (");
  await page.getByRole("button", { name: "Run" }).click();
  await page.getByText("bad_input").waitFor();
}

/** The largest graph that is drawn, moved with the mouse: the time of its frames. */
async function frames(page, root) {
  await page.goto(`${root}/#/graph/cypher`);
  const box = page.locator("textarea");
  await box.fill("UNWIND range(0, 2099) AS number CREATE (n:Many {name: 'node ' + toString(number), number: number}) RETURN count(n)");
  await page.getByRole("button", { name: "Run" }).click();
  await page.getByText("nodes created: 2100").waitFor();
  await box.fill("MATCH (a:Many), (b:Many) WHERE b.number IN [(a.number * 7 + 1) % 2100, (a.number * 13 + 5) % 2100, (a.number + 1) % 2100] CREATE (a)-[:NEAR]->(b)");
  await page.getByRole("button", { name: "Run" }).click();
  await page.getByText(/relationships created: 6/).waitFor();
  await page.getByLabel("Rows").selectOption("5000");
  await box.fill("MATCH (a:Many) OPTIONAL MATCH (a)-[r:NEAR]->(b) RETURN a, collect(r)");
  await page.getByRole("button", { name: "Run" }).click();
  await page.getByText(/At most 2,000 nodes and 5,000 edges are drawn: 100 nodes/).waitFor();
  const { order, size } = await page.locator(".drawing").evaluate((it) => ({ order: it.sigma.getGraph().order, size: it.sigma.getGraph().size }));
  assert.deepEqual([order, size], [2000, 5000]);
  // The layout has its own time; then the picture is moved.
  await page.waitForTimeout(9_000);
  const area = await page.locator(".drawing").boundingBox();
  const middle = [area.x + area.width / 2, area.y + area.height / 2];
  await page.evaluate(() => {
    window.times = [];
    let last = performance.now();
    const step = (now) => { window.times.push(now - last); last = now; requestAnimationFrame(step); };
    requestAnimationFrame(step);
  });
  const before = cpuOf("chrom");
  await page.mouse.move(middle[0] + 300, middle[1] + 200);
  await page.mouse.down();
  for (let at = 0; at < 80; at += 1) {
    await page.mouse.move(middle[0] + 300 - at * 5, middle[1] + 200 - at * 3);
    await page.evaluate(() => new Promise(requestAnimationFrame));
  }
  await page.mouse.up();
  const times = (await page.evaluate(() => window.times)).slice(2).sort((a, b) => a - b);
  const [median, busy] = [times[Math.floor(times.length / 2)], (cpuOf("chrom") - before) / times.length];
  console.log(`${times.length} frames of 2,000 nodes and 5,000 edges: median ${median.toFixed(1)} ms, ${busy.toFixed(1)} ms of CPU time each`);
}

/** The CPU time that our browser's processes have used, in milliseconds. */
function cpuOf(name) {
  let ticks = 0;
  for (const id of fs.readdirSync("/proc").filter((it) => /^\d+$/.test(it))) {
    try {
      const line = fs.readFileSync(`/proc/${id}/cmdline`, "latin1");
      if (!line.includes(name) || !line.includes(profile)) continue;
      const stat = fs.readFileSync(`/proc/${id}/stat`, "latin1").split(") ")[1].split(" ");
      ticks += Number(stat[11]) + Number(stat[12]);
    } catch {
      // It has ended.
    }
  }
  return ticks * 10;
}

async function memory(page, root) {
  await page.goto(`${root}/#/memory`);
  const card = page.locator("article", { hasText: "Deploys go out on Tuesdays" });
  await card.getByRole("button", { name: "Edit" }).click();
  await page.locator("form.card textarea").fill("Deploys go out on Wednesdays.");
  await page.getByRole("button", { name: "Save" }).click();
  await page.locator("article", { hasText: "Wednesdays" }).waitFor();
  await page.getByRole("button", { name: "Undo" }).click();
  await card.waitFor();
  await card.getByRole("button", { name: "Delete" }).click();
  await page.getByText("Delete this drawer?").waitFor();
  await page.locator(".confirm .main").click();
  await page.getByText("was deleted").waitFor();
  assert.equal(await card.count(), 0);
  await page.getByRole("button", { name: "Undo" }).click();
  await card.waitFor();
}

/** What was true of an entity last May. */
async function facts(page, root) {
  await page.goto(`${root}/#/memory?facts=all`);
  await page.locator(".bars rect").first().waitFor();
  await page.getByLabel("Entity").fill("Ada");
  await page.getByLabel("Entity").press("Enter");
  await page.locator(".facts-list li", { hasText: "Initech" }).first().waitFor();
  await page.getByLabel("As of, by date").fill("2026-05-15");
  await page.getByRole("heading", { name: "True on 2026-05-15" }).waitFor();
  const then = await page.locator(".facts-list").first().innerText();
  assert.ok(then.includes("Acme") && !then.includes("Initech"), then);
}

async function collection(page, root) {
  await page.goto(`${root}/#/collections/notes`);
  await page.getByText("Records 1 to 25").waitFor();
  await page.getByRole("button", { name: "Next" }).click();
  await page.getByText("Records 26 to 50").waitFor();
  await page.fill("input.mono", '{"year": 2024}');
  await page.getByRole("button", { name: "Show" }).click();
  await page.getByText("Records 1 to 2").waitFor();
  await page.fill("input[placeholder^='the records']", "record 24");
  await page.getByRole("button", { name: "Show" }).click();
  await page.getByText("the best first").waitFor();
  await page.getByRole("link", { name: /Nearest neighbours/ }).first().click();
  await page.getByText("The nearest neighbours of").waitFor();
  await page.getByText("the best first").waitFor();
  await page.goto(`${root}/#/collections/notes/picture`);
  await page.getByText("61 vectors").waitFor();
  await page.getByLabel("Colour by a key of the metadata").fill("year");
  await page.getByText("2024 (2)").waitFor();
}

/** A worker dies while its page is open. */
async function death(page, root, token) {
  await page.goto(`${root}/#/workers`);
  await page.locator(".live").waitFor();
  await page.locator(".u-over").first().waitFor();
  const answer = await fetch(`${root}/v1/status`, { headers: { Authorization: `Bearer ${token}` } });
  const workers = (await answer.json()).stores.flatMap((store) => store.workers);
  process.kill(workers.find((worker) => worker.role === "store-reader" && worker.pid).pid, "SIGABRT");
  const report = page.locator("details", { hasText: "store-reader" }).first();
  await report.waitFor({ timeout: 20_000 });
  await report.locator("summary").click();
  await report.getByText("SIGABRT").first().waitFor();
}

async function drill(page) {
  await page.getByRole("button", { name: "Run the drill" }).click();
  await page.locator("td", { hasText: "handled" }).first().waitFor();
  await page.locator("strong", { hasText: "Passed" }).waitFor({ timeout: 90_000 });
  await page.getByText("28 faults: 0 misclassified").waitFor();
}

/** The server ends and comes back under an open page. */
async function restart(page, root, server) {
  const port = new URL(root).port;
  server.child.kill();
  await new Promise((done) => server.child.on("exit", done));
  await page.getByText("unreachable").waitFor();
  const again = await start("--listen", `127.0.0.1:${port}`);
  // The session has ended with the server.
  await page.locator(".sign-in").waitFor();
  await page.goto("about:blank");
  await page.goto(again.url);
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  return again;
}

async function signInAgain(page, url, token) {
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.locator(".sign-in").waitFor();
  await page.fill("input[type=password]", "not-the-token");
  await page.keyboard.press("Enter");
  await page.locator(".sign-in .error").waitFor();
  await axe(page, "signing in");
  await page.goto(url);
  await page.locator(".sign-in .error", { hasText: "a link works once" }).waitFor();
  assert.ok(!page.url().includes("sign-in"), "the secret is gone from the address");
  await page.fill("input[type=password]", token);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Overview" }).waitFor();
}

async function run(page, server) {
  const { url } = server;
  const root = new URL(url).origin;
  const found = watch(page, root);
  const began = performance.now();
  await page.goto(url);
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  const paint = await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime);
  console.log(`first contentful paint: ${paint?.toFixed(0)} ms`);
  assert.equal(page.url(), `${root}/`, "the secret is gone from the address");
  const token = fs.readFileSync(path.join(state, "isolith", "token"), "utf8").trim();
  const steps = [
    () => look(page, root, "overview", "overview", "table"),
    () => look(page, root, "search", "search", "input[type=search]"),
    () => search(page),
    () => look(page, root, "search-results", "search?q=hello", ".result"),
    () => map(page, root),
    () => look(page, root, "map-file", null, ".treemap rect"),
    () => look(page, root, "map", "map", ".treemap rect"),
    () => explore(page, root),
    () => look(page, root, "graph", null, ".drawing canvas"),
    () => cypher(page, root),
    () => look(page, root, "memory", "memory", "article"),
    () => memory(page, root),
    () => look(page, root, "facts", "memory?facts=all", ".bars rect"),
    () => facts(page, root),
    () => look(page, root, "collections", "collections", "table"),
    () => collection(page, root),
    () => look(page, root, "picture", null, "canvas"),
    () => look(page, root, "collection", "collections/notes", "td"),
    () => frames(page, root),
    () => death(page, root, token),
    () => look(page, root, "workers", null, "details"),
    () => drill(page),
    () => signInAgain(page, url, token),
  ];
  for (const step of steps) {
    const before = performance.now();
    await step();
    console.log(`${((performance.now() - began) / 1000).toFixed(0)} s: ${String(step).slice(6, 60)} (${((performance.now() - before) / 1000).toFixed(1)} s)`);
  }
  assert.deepEqual(found, []);
  await page.goto(`${root}/#/workers`);
  await page.locator(".live").waitFor();
  return restart(page, root, server);
}

fillProject(project, isolith);
let server = await start();
const browser = await chromium.launchPersistentContext(profile, {
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: FLAGS, acceptDownloads: true });
try {
  browser.setDefaultTimeout(30_000);
  const page = await browser.newPage();
  try {
    server = await run(page, server);
  } catch (error) {
    if (screenshots) await page.screenshot({ path: path.join(screenshots, "failed.png") });
    throw error;
  }
  console.log("the pages work");
} finally {
  await browser.close();
  server.child.kill();
  await new Promise((done) => { if (server.child.exitCode !== null) done(); else server.child.on("exit", done); });
  fs.rmSync(folder, { recursive: true, force: true });
}
