/** The Effect card tells what the answer tells first. @vitest-environment happy-dom */
import { describe, expect, test } from "vitest";
import type { Headline } from "../src/format/report";
import { evidence } from "../src/views/masthead";
import { report } from "./sample";

function cards(headline: Headline | null): Map<string, string> {
  const all = report();
  const page = evidence({ ...all, analysis: { ...all.analysis, headline } });
  const names = [...page.querySelectorAll("dt")].map((each) => each.textContent ?? "");
  const figures = [...page.querySelectorAll("dl > div")].map((each) => each.textContent ?? "");
  return new Map(names.map((name, place) => [name, figures[place] ?? ""]));
}

const TOLD: Headline = {
  title: "Effect",
  variant: "memory",
  ratio: {
    value: 3,
    interval: { low: 2.9, high: 3.1, level: 0.95 },
    method: "bootstrap",
    n: 3,
    more_trials: null,
    note: null,
  },
  figure: null,
  note: "throughput of memory relative to disk",
  missing: null,
};

describe("the Effect card", () => {
  test("has the ratio, the note and the commits of the variant that the answer tells", () => {
    const found = cards(TOLD);
    expect(found.get("Effect")).toMatch(/3.*throughput of memory relative to disk/);
    expect(found.get("Commits in a power failure")).toContain("does not keep");
  });
  test("says why nothing is decided, and shows no figure then", () => {
    const missing = "2 comparisons are undecided: too few trials";
    const found = cards({ ...TOLD, ratio: null, variant: null, missing });
    expect(found.get("Effect")).toBe(`Effectundecided${missing}`);
    expect(found.has("Commits in a power failure")).toBe(false);
  });
  test("is left out where nothing is compared", () => {
    expect(cards(null).has("Effect")).toBe(false);
  });
});
