// Uses the catalogue of `plinth serve` in a real browser, and says what is wrong with the page.
//
//   node e2e/catalogue.mjs ADDRESS ANOTHER [--screenshots DIRECTORY]
//
// ANOTHER is the address of a server on another port, which is visited at the end. Prints a line of JSON at each step, the last one
// with all findings; exits with 1 when `failures` is not empty.
import { join } from "node:path";
import { complaints, withChromium } from "./chromium.mjs";
import { clippedText, lowContrast } from "./page.mjs";

const TIMEOUT_MS = 120_000;
const VIEWS = [
  { name: "light", width: 1280, height: 900, colorScheme: "light" },
  { name: "dark", width: 1280, height: 900, colorScheme: "dark" },
  { name: "phone", width: 390, height: 844, colorScheme: "light" },
];
const findings = { step: "end", failures: [], looks: {} };
const fail = (text) => findings.failures.push(text);
const say = (step) => console.log(JSON.stringify(step));

const [address, another, option, directory] = process.argv.slice(2);
if (!another || (option && (option !== "--screenshots" || !directory))) {
  console.error("usage: node e2e/catalogue.mjs ADDRESS ANOTHER [--screenshots DIRECTORY]");
  process.exit(2);
}

/** Colours and fonts of a page. Runs in the page. */
function lookOf() {
  const of = (element) => getComputedStyle(element);
  const { backgroundColor, color, fontFamily } = of(document.body);
  const heading = document.querySelector("h1");
  return {
    backgroundColor,
    color,
    fontFamily,
    heading: of(heading).fontFamily,
    link: of(document.querySelector("a")).color,
  };
}

async function look(page, view) {
  await page.setViewportSize({ width: view.width, height: view.height });
  await page.emulateMedia({ colorScheme: view.colorScheme });
  const wide = await page.evaluate(
    () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
  );
  if (wide > 0) fail(`${view.name}: the page is ${wide} px wider than the window`);
  for (const text of await page.evaluate(clippedText)) fail(`${view.name}: ${text}`);
  for (const text of await page.evaluate(lowContrast)) fail(`${view.name}: ${text}`);
  findings.looks[view.name] = [await page.evaluate(lookOf)];
  if (directory)
    await page.screenshot({ path: join(directory, `catalogue-${view.name}.png`), fullPage: true });
}

const folders = (page) => page.locator("tbody tr:not([hidden]) .folder").allTextContents();

async function until(page, count) {
  await page.waitForFunction(
    (wanted) =>
      document.querySelectorAll("tbody tr").length === wanted &&
      !document.body.textContent.includes("being worked out"),
    count,
    { timeout: TIMEOUT_MS },
  );
}

async function use(browser) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
  const page = await context.newPage();
  const said = complaints(page);
  let loads = 0;
  page.on("load", () => {
    loads += 1;
  });
  await page.goto(address);
  findings.address = page.url();
  await until(page, 2);
  findings.first = await folders(page);
  for (const view of VIEWS) await look(page, view);
  await look(page, VIEWS[0]);
  const tick = page.locator("tbody tr").first().locator("input");
  await tick.check();
  await tick.focus();
  const before = loads;
  say({ step: "listed" });

  await until(page, 3);
  findings.followed = await folders(page);
  findings.count = await page.locator("h1").textContent();
  findings.loads = loads - before;
  findings.ticked = await page.locator("input:checked").evaluateAll((boxes) => boxes.map((box) => box.value));
  findings.focused = await page.evaluate(() => document.activeElement.value);
  findings.headlines = await page.locator("tbody .headline strong").allTextContents();

  await page.getByRole("button", { name: "Began" }).click();
  await page.getByRole("button", { name: "Began" }).click();
  findings.oldest_first = await folders(page);
  await page.getByRole("searchbox", { name: "Filter" }).fill("second");
  findings.filtered = await folders(page);

  await page.locator("tbody tr:not([hidden]) a").first().click();
  await page.waitForURL("**/bundles/*");
  await page.waitForFunction(() => document.querySelector("h1") !== null);
  for (const view of VIEWS) {
    await page.setViewportSize({ width: view.width, height: view.height });
    await page.emulateMedia({ colorScheme: view.colorScheme });
    findings.looks[view.name].push(await page.evaluate(lookOf));
  }
  await page.goBack();
  await until(page, 3);
  findings.on_the_way_back = await folders(page);
  findings.said = said;
  for (const text of said) fail(text);

  await page.goto(another);
  await page.evaluate(async () => {
    await fetch("/bundles/x", { credentials: "include" });
  });
  await context.close();
}

await withChromium(use);
say(findings);
process.exit(findings.failures.length > 0 ? 1 : 0);
