// The pages in headless Chromium, on a project, memory and records with hostile texts.
//
//     node pages.mjs PROGRAM NODE_MODULES [FOLDER_FOR_SCREENSHOTS]
//
// CHROMIUM names the browser; by default it is /usr/bin/chromium.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import fs from "node:fs";
import { createRequire } from "node:module";
import os from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";

const [program, modules, screenshots] = process.argv.slice(2).map((it) => path.resolve(it));
const { chromium } = createRequire(`${modules}/`)("playwright-core");
const HOSTILE = "<img src=x onerror=alert(1)><b>bold</b>";
const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
  "--disable-background-networking", "--disable-component-update", "--disable-sync"];

const folder = fs.mkdtempSync(path.join(os.tmpdir(), "isolith-pages-"));
const project = path.join(folder, "project");
const state = path.join(folder, "state");
const env = { ...process.env, HOME: folder, XDG_DATA_HOME: path.join(folder, "data"), XDG_STATE_HOME: state,
  XDG_CONFIG_HOME: path.join(folder, "config") };
for (const name of Object.keys(env)) if (name.startsWith("ISOLITH_")) delete env[name];

function isolith(...words) {
  execFileSync(program, words, { cwd: project, env, stdio: ["ignore", "ignore", "inherit"] });
}

function fill() {
  fs.mkdirSync(project, { recursive: true });
  const code = `def greet(name):\n    """Say hello ${HOSTILE}"""\n    return part(name)\n\n\ndef part(name):\n    return name\n`;
  fs.writeFileSync(path.join(project, "greetings.py"), code);
  fs.writeFileSync(path.join(project, "<img src=x onerror=alert(2)>.py"), "def hello_other():\n    return 1\n");
  const record = { id: HOSTILE, document: `record ${HOSTILE}`, metadata: { [HOSTILE]: HOSTILE, year: 2024 } };
  const others = Array.from({ length: 60 }, (_, at) => ({ id: `r${at}`, document: `record ${at}`, metadata: { year: 2000 + at } }));
  fs.writeFileSync(path.join(project, "records.jsonl"), [record, ...others].map((it) => `${JSON.stringify(it)}\n`).join(""));
  isolith("index", "--quiet");
  isolith("ingest", "records.jsonl", "--collection", "notes", "--quiet");
  isolith("memory", "add", `Deploys go out on Tuesdays. ${HOSTILE}`, "--wing", HOSTILE, "--room", "deploys");
  isolith("fact", "add", HOSTILE, "works_at", "Acme", "--from", "2024-01-01");
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
  page.on("pageerror", (error) => found.push(`error: ${error.message}`));
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

async function look(page, root, name, hash, ready) {
  await page.goto(`${root}/#/${hash}`);
  await page.waitForSelector(ready);
  for (const [kind, scheme, width] of [["light", "light", 1200], ["dark", "dark", 1200], ["narrow", "light", 380]]) {
    await page.emulateMedia({ colorScheme: scheme });
    await page.setViewportSize({ width, height: 850 });
    const excess = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(excess <= 0, `${name} is ${excess} px too wide at ${width} px`);
    if (screenshots) await page.screenshot({ path: path.join(screenshots, `${name}-${kind}.png`) });
  }
  await page.setViewportSize({ width: 1200, height: 850 });
  assert.equal(await page.locator("main img, main b").count(), 0, `${name}: text became HTML`);
  assert.equal(await page.locator(".card.error").count(), 0, `${name} shows an error`);
}

async function search(page) {
  await page.locator("input[type=search]").pressSequentially("say hello", { delay: 20 });
  const hit = page.locator("section[aria-label=Code] .result", { hasText: "greetings.py" }).first();
  await hit.waitFor();
  for (const [name, expected] of [["File", "def part(name):"], ["Callees", "part"], ["Similar", ""]]) {
    await hit.getByRole("button", { name }).click();
    await hit.locator("[aria-live] > *").first().waitFor();
    assert.ok((await hit.locator("[aria-live]").innerText()).includes(expected), name);
  }
  await page.locator("input[type=search]").press("ArrowDown");
  assert.ok(await page.evaluate(() => document.activeElement.classList.contains("result")), "the arrow leads to a result");
  assert.ok(page.url().includes("q=say+hello"), "the question is in the address");
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
}

async function graph(page) {
  await page.fill("textarea", "MATCH (a:Function)-[r:CALLS]->(b:Function) RETURN a, r, b");
  await page.locator("textarea").press("Control+Enter");
  await page.waitForSelector(".drawing circle");
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Save as SVG" }).click()]);
  const saved = fs.readFileSync(await download.path(), "utf8");
  assert.ok(saved.startsWith("<svg") && saved.includes("greet"), saved.slice(0, 200));
  const many = "UNWIND range(1, 400) AS number CREATE (n:Many {name: toString(number)}) RETURN n";
  await page.fill("textarea", many);
  await page.locator("select").first().selectOption("1000");
  await page.getByRole("button", { name: "Run" }).click();
  await page.getByText("at most 300 are drawn").waitFor();
  await page.fill("textarea", "MATCH (");
  await page.getByRole("button", { name: "Run" }).click();
  await page.getByText("bad_input").waitFor();
}

/// A worker dies while its page is open.
async function death(page, root, token) {
  await page.goto(`${root}/#/workers`);
  await page.waitForSelector("table");
  const answer = await fetch(`${root}/v1/status`, { headers: { Authorization: `Bearer ${token}` } });
  const workers = (await answer.json()).stores.flatMap((store) => store.workers);
  process.kill(workers.find((worker) => worker.role === "store-reader" && worker.pid).pid, "SIGABRT");
  const report = page.locator("details", { hasText: "store-reader" }).first();
  await report.waitFor({ timeout: 20_000 });
  await report.locator("summary").click();
  await report.getByText("SIGABRT").first().waitFor();
}

async function signInAgain(page, url, token) {
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.waitForSelector(".sign-in");
  await page.goto(url);
  await page.waitForSelector(".sign-in .error");
  assert.ok(!page.url().includes("sign-in"), "the secret is gone from the address");
  await page.fill("input[type=password]", token);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Overview" }).waitFor();
}

async function run(page, { url }) {
  const root = new URL(url).origin;
  const found = watch(page, root);
  await page.goto(url);
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  assert.equal(page.url(), `${root}/`, "the secret is gone from the address");
  const token = fs.readFileSync(path.join(state, "isolith", "token"), "utf8").trim();
  await look(page, root, "overview", "overview", "table");
  await look(page, root, "search", "search", "input[type=search]");
  await search(page);
  await look(page, root, "search-results", "search?q=hello", ".result");
  await look(page, root, "collections", "collections", "table");
  await collection(page, root);
  await look(page, root, "collection", "collections/notes", "td");
  await look(page, root, "memory", "memory", "article");
  await look(page, root, "facts", "memory?facts", ".timeline li");
  await look(page, root, "graph", "graph", "textarea");
  await graph(page);
  await death(page, root, token);
  await look(page, root, "workers", "workers", "details");
  await signInAgain(page, url, token);
  assert.deepEqual(found, []);
}

fill();
const server = await start();
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: FLAGS });
try {
  const context = await browser.newContext({ acceptDownloads: true });
  context.setDefaultTimeout(30_000);
  await run(await context.newPage(), server);
  console.log("the pages work");
} finally {
  await browser.close();
  server.child.kill();
  await new Promise((done) => server.child.on("exit", done));
  fs.rmSync(folder, { recursive: true, force: true });
}
