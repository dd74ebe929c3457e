// @vitest-environment happy-dom
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { compareCells, matches } from "../../src/model/catalogue";
import { CatalogueView } from "../../src/views/catalogue";
import { CatalogueFollower } from "../../src/views/follower";

interface Bundle {
  readonly key: string;
  readonly began: string;
  readonly question: string;
  readonly headline?: string;
}

const BUNDLES: readonly Bundle[] = [
  { key: "c", began: "3", question: "Which disk?", headline: "1.5" },
  { key: "b", began: "2", question: "How many clients?" },
  { key: "a", began: "1", question: "A RAM disk?", headline: "12" },
];

function html(bundles: readonly Bundle[], state = "1-1"): string {
  const rows = bundles.map(
    ({ key, began, question, headline = "" }) =>
      `<tr data-key="${key}"><td><input type="checkbox" name="bundle" value="${key}"></td><td data-value="${began}">day ${began}</td>` +
      `<td>${question}</td><td data-value="${headline}">${headline}</td></tr>`,
  );
  return (
    `<h1 id="count">${bundles.length} bundles</h1><main data-state="${state}"><p id="connection" hidden></p>` +
    `<p id="none" ${bundles.length ? "hidden" : ""}>none</p><form id="bundles" ${bundles.length ? "" : "hidden"}>` +
    '<p class="controls"><button>Compare</button></p><table><thead><tr><th>Compare</th><th data-order="descending">Began</th>' +
    `<th data-order="ascending">Question</th><th data-order="descending">Headline</th></tr></thead><tbody>${rows.join("")}</tbody></table></form></main>`
  );
}

function newer(bundles: readonly Bundle[]): Document {
  return new DOMParser().parseFromString(`<!doctype html><body>${html(bundles)}</body>`, "text/html");
}

function shown(bundles: readonly Bundle[] = BUNDLES): CatalogueView {
  document.body.innerHTML = html(bundles);
  return new CatalogueView(document);
}

const rows = () => [...document.querySelectorAll<HTMLTableRowElement>("tbody tr")];
const keys = () => rows().map((row) => row.dataset["key"]);
const seen = () =>
  rows()
    .filter((row) => !row.hidden)
    .map((row) => row.dataset["key"]);
const head = (column: number) => document.querySelectorAll<HTMLElement>("thead th")[column];
const box = (key: string) => document.querySelector<HTMLInputElement>(`[data-key="${key}"] input`);

function filter(text: string): void {
  const field = document.querySelector<HTMLInputElement>("#filter");
  if (!field) throw new Error("there is no filter");
  field.value = text;
  field.dispatchEvent(new Event("input"));
}

beforeEach(() => {
  window.location.hash = "";
});

describe("the table", () => {
  test("has the server's order until a column is chosen, and then that column's, either way", () => {
    shown();
    expect(keys()).toEqual(["c", "b", "a"]);
    head(2)?.querySelector("button")?.click();
    expect(keys()).toEqual(["a", "b", "c"]);
    expect(head(2)?.getAttribute("aria-sort")).toBe("ascending");
    head(2)?.querySelector("button")?.click();
    expect(keys()).toEqual(["c", "b", "a"]);
    expect(head(2)?.getAttribute("aria-sort")).toBe("descending");
  });

  test("sorts figures by their value, the largest first, and what has none last in either order", () => {
    shown();
    head(3)?.querySelector("button")?.click();
    expect(keys()).toEqual(["a", "c", "b"]);
    head(3)?.querySelector("button")?.click();
    expect(keys()).toEqual(["c", "a", "b"]);
    expect(head(0)?.querySelector("button")).toBeNull();
  });

  test("shows the rows that have every word of the filter, and says how many", () => {
    shown();
    filter("disk");
    expect(seen()).toEqual(["c", "a"]);
    expect(document.querySelector("output")?.textContent).toBe("2 of 3 shown");
    filter("DISK ram");
    expect(seen()).toEqual(["a"]);
    filter("");
    expect(seen()).toEqual(["c", "b", "a"]);
  });

  test("keeps order and filter in the address, and has them again on the way back", () => {
    shown();
    filter("disk");
    head(1)?.querySelector("button")?.click();
    head(1)?.querySelector("button")?.click();
    expect(window.location.hash).toBe("#filter=disk&sort=1-ascending");
    shown();
    expect(seen()).toEqual(["a", "c"]);
    for (const hash of ["#sort=9-ascending", "#sort=0-ascending", "#sort=1-up", "#%"]) {
      window.location.hash = hash;
      shown();
      expect(keys()).toEqual(["c", "b", "a"]);
    }
  });
});

describe("a change", () => {
  test("adds, removes and replaces rows, and leaves the others with their ticks and focus", () => {
    const view = shown();
    const [kept] = rows();
    for (const key of ["a", "b", "c"]) box(key)?.click();
    box("a")?.focus();
    const [c, , a] = BUNDLES as [Bundle, Bundle, Bundle];
    view.replace(newer([{ key: "d", began: "4", question: "New?" }, c, { ...a, headline: "13" }]));
    expect(keys()).toEqual(["d", "c", "a"]);
    expect(rows()[1]).toBe(kept);
    expect(["d", "c", "a"].map((key) => box(key)?.checked)).toEqual([false, true, true]);
    expect(document.activeElement).toBe(box("a"));
    expect(rows()[2]?.lastElementChild?.textContent).toBe("13");
    expect(document.querySelector("#count")?.textContent).toBe("3 bundles");
    expect(document.querySelector("output")?.textContent).toBe("2 ticked");
  });

  test("of a sorted and filtered table is sorted and filtered, too", () => {
    const view = shown();
    filter("disk");
    head(1)?.querySelector("button")?.click();
    head(1)?.querySelector("button")?.click();
    view.replace(newer([{ key: "d", began: "0", question: "A disk?" }, ...BUNDLES]));
    expect(seen()).toEqual(["d", "a", "c"]);
  });

  test("from none to the first bundle and back", () => {
    const view = shown([]);
    view.replace(newer(BUNDLES));
    expect(keys()).toEqual(["c", "b", "a"]);
    const isHidden = (id: string) => document.querySelector<HTMLElement>(id)?.hidden;
    expect([isHidden("#none"), isHidden("#bundles")]).toEqual([true, false]);
    view.replace(newer([]));
    expect([keys(), isHidden("#none"), isHidden("#bundles")]).toEqual([[], false, true]);
  });
});

test("numbers in texts are compared as numbers", () => {
  const cell = (text: string) => ({ text, value: undefined });
  expect(compareCells(cell("run 9"), cell("run 10"), "ascending")).toBeLessThan(0);
  expect(matches("run 9", "  9 run ")).toBe(true);
});

describe("following", () => {
  const pages: string[] = [];
  const said: string[] = [];
  const follower = () =>
    new CatalogueFollower(
      "1-1",
      (page) => pages.push(page.querySelector("main")?.dataset["state"] ?? ""),
      (text) => said.push(text),
    );

  beforeEach(() => {
    pages.length = said.length = 0;
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
    vi.unstubAllGlobals();
  });

  test("asks as often as the server says with the state that it has, and not while it is hidden", async () => {
    const asked: string[] = [];
    const answers = [
      new Response(null, { status: 204, headers: { "Plinth-Ask-Again-S": "2" } }),
      new Response(html(BUNDLES, "1-2"), { headers: { "Plinth-Ask-Again-S": "7" } }),
      new Response(null, { status: 204, headers: { "Plinth-Ask-Again-S": "7" } }),
    ];
    vi.stubGlobal("fetch", async (address: string) => {
      asked.push(address);
      return answers.shift();
    });
    const following = follower();
    following.follow(true);
    await vi.advanceTimersByTimeAsync(1999);
    expect(asked).toEqual(["changes?since=1-1"]);
    await vi.advanceTimersByTimeAsync(1);
    expect(pages).toEqual(["1-2"]);
    following.follow(false);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(asked.length).toBe(2);
    following.follow(true);
    await vi.advanceTimersByTimeAsync(1);
    expect(asked[2]).toBe("changes?since=1-2");
  });

  test("says that the server does not answer until it does, and what a refusal means", async () => {
    const answers = [
      () => Promise.reject(new TypeError("fetch failed")),
      () => Promise.resolve(new Response("", { status: 403 })),
      () => Promise.resolve(new Response(null, { status: 204 })),
    ];
    vi.stubGlobal("fetch", () => answers.shift()?.());
    follower().follow(true);
    await vi.advanceTimersByTimeAsync(1);
    expect(said.at(-1)).toContain("Not connected");
    await vi.advanceTimersByTimeAsync(3000);
    expect(said.at(-1)).toContain("another address");
    await vi.advanceTimersByTimeAsync(3000);
    expect(said.at(-1)).toBe("");
  });
});
