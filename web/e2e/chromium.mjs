/** The browser of the checks: a real Chromium with a profile of its own. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

const PROGRAM = process.env.CHROMIUM ?? "/usr/bin/chromium";
const FLAGS = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--in-process-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** Calls `check` with a browser, which is ended afterwards. CHROMIUM names another program. */
export async function withChromium(check) {
  const profile = await mkdtemp(join(tmpdir(), "plinth-check-"));
  const browser = await chromium.launch({
    executablePath: PROGRAM,
    args: FLAGS,
    env: { ...process.env, HOME: profile },
  });
  try {
    await check(browser);
  } finally {
    await browser.close();
    await rm(profile, { recursive: true, force: true });
  }
}

/** What the browser complains of on a page: errors, warnings, and what its policy forbids. */
export function complaints(page) {
  const said = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) said.push(`${message.type()}: ${message.text()}`);
  });
  page.on("pageerror", (error) => said.push(`uncaught: ${error.message}`));
  return said;
}
