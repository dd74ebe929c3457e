// Watches a run in the live page of `plinth serve` in a real browser until it has ended, and says what is wrong with the page.
//
//   node e2e/live.mjs ADDRESS [--screenshots DIRECTORY]
//
// Prints a line of JSON at each step, the last one with all findings; exits with 1 when `failures` is not empty.
import { join } from "node:path";
import { complaints, withChromium } from "./chromium.mjs";
import { clippedText, lowContrast } from "./page.mjs";

const TIMEOUT_MS = 120_000;
const VIEWS = [
  { name: "light", width: 1280, height: 900, colorScheme: "light" },
  { name: "dark", width: 1280, height: 900, colorScheme: "dark" },
  { name: "phone", width: 390, height: 844, colorScheme: "light" },
];
const findings = { step: "end", failures: [], views: [] };
const fail = (text) => findings.failures.push(text);
const say = (step) => console.log(JSON.stringify(step));

const [address, option, directory] = process.argv.slice(2);
if (!address || (option && (option !== "--screenshots" || !directory))) {
  console.error("usage: node e2e/live.mjs ADDRESS [--screenshots DIRECTORY]");
  process.exit(2);
}

/** The most points of a series of a chart, if it has at least so many; else false, as of one that is not drawn. Runs in the page. */
function points({ id, least }) {
  const chart = window.plinth?.charts().find((each) => each.id === id);
  const most = Math.max(0, ...(chart?.series ?? []).map((series) => series.points));
  return most >= least && most;
}

async function grown(page, id, least) {
  const found = await page.waitForFunction(points, { id, least }, { timeout: TIMEOUT_MS });
  return found.jsonValue();
}

/** The points of a chart before and after it has grown within a trial; a trial that begins has fewer. */
async function growth(page, id) {
  let [before, after] = [await grown(page, id, 1), 0];
  for (;;) {
    const changed = ({ id, before }) => {
      const chart = window.plinth.charts().find((each) => each.id === id);
      const now = chart?.series[0]?.points ?? 0;
      return now !== before && { now };
    };
    const found = await page.waitForFunction(changed, { id, before }, { timeout: TIMEOUT_MS });
    after = (await found.jsonValue()).now;
    if (after > before && before > 0) return { before, after };
    before = after;
  }
}

async function look(page, view) {
  const wide = await page.evaluate(
    () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
  );
  if (wide > 0) fail(`${view.name}: the page is ${wide} px wider than the window`);
  for (const text of await page.evaluate(clippedText)) fail(`${view.name}: ${text}`);
  for (const text of await page.evaluate(lowContrast)) fail(`${view.name}: ${text}`);
  if (directory) await page.screenshot({ path: join(directory, `live-${view.name}.png`), fullPage: true });
  findings.views.push(view.name);
}

/** By keyboard alone from the catalogue to the live page. */
async function follow(page) {
  await page.goto(address);
  const link = page.locator('a[href*="/live/"]');
  await link.waitFor({ timeout: TIMEOUT_MS });
  await page.setViewportSize({ width: 700, height: 900 });
  const lines = await link.evaluate((element) => element.getClientRects().length);
  if (lines > 1) fail(`catalogue: the state of a run is broken over ${lines} lines`);
  await page.setViewportSize({ width: 390, height: 844 });
  const wide = await page.evaluate(() => document.querySelector(".scrolling").scrollWidth - innerWidth);
  if (wide > 0) fail(`catalogue: on a phone its table is ${wide} px wider than the window`);
  await page.setViewportSize({ width: 1280, height: 900 });
  await link.focus();
  await page.keyboard.press("Enter");
  await page.waitForURL("**/live/*");
}

/** As a page is hidden and seen again; a window without a screen is always seen. */
async function hide(page, hidden) {
  await page.evaluate((value) => {
    Object.defineProperty(document, "hidden", { value, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
  }, hidden);
}

/** Charts are drawn for another size or theme before the second frame from now. Runs in the page. */
function drawnAnew() {
  return new Promise((resolve) => {
    requestAnimationFrame(() => requestAnimationFrame(resolve));
  });
}

async function watch(browser) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
  const page = await context.newPage();
  const said = complaints(page);
  const streams = [];
  page.on("request", (request) => {
    if (request.url().includes("/events")) streams.push(new URL(request.url()));
  });
  await follow(page);

  findings.growth = await growth(page, "tps");
  say({ step: "growing" });
  findings.latency_points = await grown(page, "latency", 1);
  findings.headline = await page.locator("#now h2").textContent();
  findings.trials_before = await grown(page, "trials", 1);

  await page.reload();
  findings.trials_after_reload = await grown(page, "trials", findings.trials_before);
  await grown(page, "tps", 1);

  await hide(page, true);
  const before = streams.length;
  await hide(page, false);
  await page.waitForFunction(() => window.plinth !== undefined);
  findings.after_hidden = streams.slice(before).map((url) => url.searchParams.get("after"));
  for (const view of VIEWS) {
    await page.setViewportSize({ width: view.width, height: view.height });
    await page.emulateMedia({ colorScheme: view.colorScheme });
    await page.evaluate(drawnAnew);
    await look(page, view);
  }
  say({ step: "looked at" });

  await page.waitForFunction(
    () => /^The run|^The bundle/.test(document.querySelector("#now h2").textContent),
    null,
    {
      timeout: TIMEOUT_MS,
    },
  );
  findings.ended = await page.locator("#now h2").textContent();
  findings.reason = await page.locator("#now .lead").textContent();
  findings.rows = await page.locator("#trials tbody tr").count();
  findings.notes = await page.locator("#notes li").allTextContents();
  findings.said = said;
  for (const text of said) fail(text);
  await page.locator("#now a").click();
  await page.waitForURL("**/bundles/*");
  findings.report = await page.title();
  await context.close();
}

await withChromium(watch);
say(findings);
process.exit(findings.failures.length > 0 ? 1 : 0);
