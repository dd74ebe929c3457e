// Opens a report in a real browser, without network, and says what is wrong with it.
//
//   node e2e/check.mjs REPORT.html [--only VIEW] [--screenshots DIRECTORY] [--max-ready-ms N]
//
// With --only it looks at one of the views (light, dark, phone, tablet, wide, print) instead of all. With --max-ready-ms the
// page must be drawn within that time in one of ten loads: other work on the machine only ever adds to what the page needs. Prints findings as JSON; exits with 1 when `failures` is not empty. CHROMIUM names another browser program.
import { stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { complaints, withChromium } from "./chromium.mjs";
import {
  clippedText,
  cursorState,
  headsAside,
  lowContrast,
  ofAnotherSize,
  opacities,
  outOfSheet,
  panes,
  published,
  ranking,
  rankingOverlaps,
  scrolledAway,
  swatches,
  tables,
  written,
} from "./page.mjs";

const MAX_BYTES = 5_000_000;
const LOADS = 10;
const VIEWS = [
  { name: "light", width: 1280, height: 900, colorScheme: "light" },
  { name: "dark", width: 1280, height: 900, colorScheme: "dark" },
  { name: "phone", width: 390, height: 844, colorScheme: "light" },
  { name: "tablet", width: 768, height: 1024, colorScheme: "light" },
  { name: "wide", width: 1400, height: 900, colorScheme: "light" },
];

const findings = { failures: [] };
const fail = (text) => findings.failures.push(text);

async function newPage(browser) {
  const context = await browser.newContext({ offline: true });
  const page = await context.newPage();
  const said = complaints(page);
  page.on("request", (request) => {
    if (!/^(file|data|blob):/.test(request.url())) said.push(`asks the network for ${request.url()}`);
  });
  return { page, said };
}

/** Loads the report as in a window of that view. Of loads in one page the browser compiles the scripts once. */
async function load(page, url, view) {
  await page.setViewportSize({ width: view.width, height: view.height });
  await page.emulateMedia({ colorScheme: view.colorScheme });
  await page.goto(url);
  const settled = () =>
    performance.getEntriesByName("plinth-ready").length > 0 || document.querySelector(".unreadable") !== null;
  await page.waitForFunction(settled, null, { timeout: 30_000 });
  const unreadable = page.locator(".unreadable");
  if ((await unreadable.count()) > 0) throw new Error(await unreadable.textContent());
}

async function loadTime(browser, url, max_ms) {
  const times_ms = [];
  while (times_ms.length < LOADS && !times_ms.some((ms) => ms < max_ms)) {
    const { page } = await newPage(browser);
    await load(page, url, VIEWS[0]);
    times_ms.push(
      await page.evaluate(() => Math.round(performance.getEntriesByName("plinth-ready")[0].startTime)),
    );
    await page.context().close();
  }
  findings.ready_ms = times_ms;
  if (Math.min(...times_ms) >= max_ms) fail(`ready after ${times_ms.join(", ")} ms; at most ${max_ms}`);
}

async function checkCharts(page) {
  const charts = await page.evaluate(() => window.plinth.charts());
  findings.charts = charts.map(({ id, series }) => ({
    id,
    series: series.length,
    points: series.reduce((sum, each) => sum + each.points, 0),
  }));
  const visible = await page.locator(".chart:visible").count();
  if (visible !== charts.length) fail(`${visible} places for charts, but ${charts.length} charts`);
  if (charts.length === 0) fail("no charts");
  for (const { id, points } of findings.charts) if (points === 0) fail(`chart ${id} has no data`);
  findings.gaps = await page.locator(".gap:visible").allTextContents();
  for (const text of findings.gaps) if (!/^n\/a: .{8,}/.test(text)) fail(`a gap without a reason: "${text}"`);
  findings.published = await page.evaluate(published);
  for (const line of findings.published.flat())
    if (line.outside) fail(`published: ${line.name}: a mark stands outside of the axis`);
  findings.tables = await page.evaluate(tables);
  findings.written = await page.evaluate(written);
  for (const text of await page.evaluate(headsAside)) fail(text);
  findings.ranking = await page.evaluate(ranking);
  for (const row of findings.ranking) if (row.problem) fail(`ranking: ${row.variant}: ${row.problem}`);
}

/** A variant has one colour on the whole page, and every key has every variant. */
async function checkKeys(page) {
  findings.swatches = await page.evaluate(swatches);
  const colours = new Map();
  for (const [where, found] of Object.entries(findings.swatches)) {
    for (const { label, colour } of found) {
      const known = colours.get(label) ?? colour;
      colours.set(label, known);
      if (!/^rgb/.test(colour)) fail(`${where}: the swatch of ${label} has no colour: ${colour}`);
      if (known !== colour) fail(`${where}: ${label} is ${colour}, elsewhere ${known}`);
    }
  }
  const entry = page.locator("#latency .key button").first();
  if ((await page.locator("#latency .key button").count()) < 2) return;
  const before = await page.evaluate(opacities, "#latency");
  await entry.hover();
  const pointed = await page.evaluate(opacities, "#latency");
  await page.mouse.move(0, 0);
  findings.pointed = { before, pointed, after: await page.evaluate(opacities, "#latency") };
  const pale = (lines) => lines.filter((opacity) => opacity < 0.3).length;
  if (pale(before) > 0 || pale(findings.pointed.after) > 0) fail("lines are pale though none is pointed at");
  if (pale(pointed) === 0) fail("an entry of the key that is pointed at does not make the others pale");
}

async function checkCursor(page) {
  const chart = page.locator("#seconds .chart:visible").first();
  await chart.scrollIntoViewIfNeeded();
  const box = await chart.boundingBox();
  await chart.hover({ position: { x: box.width * 0.6, y: box.height / 2 } });
  const hovered = await page.evaluate(cursorState);
  await chart.focus();
  await page.keyboard.press("ArrowRight");
  const moved = await page.evaluate(cursorState);
  findings.cursor = { hovered, moved };
  for (const [how, state] of Object.entries({ hovered, moved })) {
    if (state.charts < 2) fail(`cursor, ${how}: only ${state.charts} charts to sync`);
    if (state.times.length !== 1)
      fail(`cursor, ${how}: charts stand at different times: ${state.times.join(", ")}`);
    if (state.lines !== state.charts) fail(`cursor, ${how}: ${state.lines} lines in ${state.charts} charts`);
    if (state.offsets.length !== 1)
      fail(`cursor, ${how}: lines stand at different places: ${state.offsets.join(", ")}`);
    if (state.silent.length > 0) fail(`cursor, ${how}: no figure in ${state.silent.join(", ")}`);
  }
  if (!(Number(moved.times[0]) > Number(hovered.times[0])))
    fail("cursor: the right arrow key does not move it on");
  await page.keyboard.press("Escape");
  if ((await page.evaluate(cursorState)).lines !== 0) fail("cursor: Escape does not take it away");
}

async function checkSelector(page) {
  findings.selector = {};
  for (const side of ["left", "right"]) {
    for (const select of [
      page.locator(`select[data-side=${side}]`),
      page.locator(`select[data-trials=${side}]`),
    ]) {
      const values = await select
        .locator("option")
        .evaluateAll((options) => options.map((option) => option.value));
      const now = await select.inputValue();
      const other = values.find((value) => value !== now && value !== "");
      if (other === undefined) continue;
      const name = await select.getAttribute("aria-label");
      const before = await page.evaluate(panes, side);
      await select.selectOption(other);
      const after = await page.evaluate(panes, side);
      findings.selector[name] = `${now} -> ${other}`;
      if (after.names.join() === before.names.join())
        fail(`selector "${name}": the panes keep the name of the old trial`);
      if (after.drawing === before.drawing) fail(`selector "${name}": the charts keep the old trial's lines`);
    }
  }
  const unknown = await page.evaluate(() =>
    window.plinth
      .charts()
      .filter((chart) => !chart.series.length)
      .map(({ id }) => id),
  );
  for (const id of unknown) fail(`after selecting, chart ${id} has no data`);
}

async function checkLook(page, view) {
  const wide = await page.evaluate(
    () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
  );
  if (wide > 0) fail(`${view.name}: the page is ${wide} px wider than the window`);
  for (const text of await page.evaluate(clippedText)) fail(`${view.name}: ${text}`);
  for (const text of await page.evaluate(lowContrast)) fail(`${view.name}: ${text}`);
}

/** What a reader may have to scroll for sideways: on a small screen wide tables, elsewhere not the ranking, and nowhere the navigation. */
async function checkInSight(page, view) {
  const of = view.name === "phone" ? "nav" : "nav, #ranking .scrolling";
  for (const text of await page.evaluate(scrolledAway, of)) fail(`${view.name}: ${text}`);
  for (const text of await page.evaluate(rankingOverlaps)) fail(`${view.name}: ${text}`);
}

async function checkPhone(page, view) {
  findings.phone_height_px = await page.evaluate(() => document.documentElement.scrollHeight);
  await page.evaluate(() => {
    for (const fold of document.querySelectorAll(".fold")) fold.open = true;
  });
  await page.evaluate(() => window.plinth.charts());
  await checkLook(page, view);
}

/** As it is on paper: laid out for the sheet, and how many of them it takes. */
async function checkPrint(page, url) {
  await load(page, url, { name: "print", width: 688, height: 900, colorScheme: "light" });
  const pdf = await page.pdf({ format: "A4", preferCSSPageSize: true });
  findings.printed_pages = pdf.toString("latin1").match(/\/Type\s*\/Page\b/g)?.length ?? 0;
  await page.emulateMedia({ media: "print" });
  await page.evaluate(() => window.dispatchEvent(new Event("beforeprint")));
  findings.printed_swatches = await page.evaluate(swatches);
  const found = await page.evaluate(scrolledAway, ".scrolling, pre");
  for (const look of [outOfSheet, ofAnotherSize, clippedText, rankingOverlaps])
    found.push(...(await page.evaluate(look)));
  for (const text of found) fail(`print: ${text}`);
  await page.evaluate(() => window.dispatchEvent(new Event("afterprint")));
  findings.open_after_print = await page.locator(".fold[open]").count();
}

async function screenshots(page, view, directory) {
  await page.screenshot({ path: join(directory, `${view.name}.png`), fullPage: true });
}

async function checkView(page, url, view, directory) {
  await load(page, url, view);
  await page.evaluate(() => window.plinth.charts());
  if (directory) await screenshots(page, view, directory);
  await checkLook(page, view);
  await checkInSight(page, view);
  if (view.name === "phone") await checkPhone(page, view);
  if (view.name === "light") {
    await checkCharts(page);
    if (findings.charts.length > 0) {
      await checkKeys(page);
      await checkCursor(page);
      await checkSelector(page);
    }
  }
}

async function check(file, only, directory, maxReady_ms) {
  const url = pathToFileURL(resolve(file)).href;
  await withChromium(async (browser) => {
    findings.file = resolve(file);
    findings.size_bytes = (await stat(file)).size;
    if (findings.size_bytes > MAX_BYTES) fail(`${findings.size_bytes} bytes; at most ${MAX_BYTES}`);
    if (Number.isFinite(maxReady_ms)) await loadTime(browser, url, maxReady_ms);
    const { page, said } = await newPage(browser);
    for (const view of VIEWS) {
      if ((only ?? view.name) === view.name) await checkView(page, url, view, directory);
      for (const text of said.splice(0)) fail(`${view.name}: ${text}`);
    }
    if ((only ?? "print") === "print") await checkPrint(page, url);
    for (const text of said) fail(`print: ${text}`);
  });
}

const { values: options, positionals } = parseArgs({
  options: {
    only: { type: "string" },
    screenshots: { type: "string" },
    "max-ready-ms": { type: "string", default: "Infinity" },
  },
  allowPositionals: true,
});
const maxReady_ms = Number(options["max-ready-ms"]);
const known = [undefined, "print", ...VIEWS.map(({ name }) => name)].includes(options.only);
if (positionals.length !== 1 || Number.isNaN(maxReady_ms) || !known) {
  console.error(
    "usage: node e2e/check.mjs REPORT.html [--only VIEW] [--screenshots DIRECTORY] [--max-ready-ms N]",
  );
  process.exit(2);
}
try {
  await check(positionals[0], options.only, options.screenshots, maxReady_ms);
} catch (error) {
  fail(`the check broke off: ${error.message}`);
}
console.log(JSON.stringify(findings, null, 2));
process.exitCode = findings.failures.length > 0 ? 1 : 0;
