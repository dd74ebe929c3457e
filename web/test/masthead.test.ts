/** The Effect card tells what the answer tells first. @vitest-environment happy-dom */
import { describe, expect, test } from "vitest";
import type { Headline, Report } from "../src/format/report";
import { evidence, masthead } from "../src/views/masthead";
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

function listed(kinds: Report["analysis"]["warning_kinds"]): { shown: string[]; folded: string[] } {
  const all = report();
  const warnings = kinds.map((kind, place) => `${kind} ${place}`);
  const page = evidence({ ...all, analysis: { ...all.analysis, warnings, warning_kinds: kinds } });
  const folded = [...page.querySelectorAll("details li")].map((each) => each.textContent ?? "");
  const items = [...page.querySelectorAll(".warnings li")].map((each) => each.textContent ?? "");
  return { shown: items.filter((text) => !folded.includes(text)), folded };
}

describe("warnings", () => {
  test("of which the heaviest are shown, the others on demand", () => {
    const { shown, folded } = listed(["lost trials", "busy machine", "safety", "load", "gaps"]);
    expect(shown).toEqual(["lost trials 0", "busy machine 1", "safety 2", "load 3"]);
    expect(folded).toEqual(["gaps 4"]);
  });
  test("of a busy machine are never on demand", () => {
    const { shown, folded } = listed([...Array(5).fill("lost trials"), "busy machine", "gaps"]);
    expect(shown).toEqual(["lost trials 0", "lost trials 1", "lost trials 2", "busy machine 5"]);
    expect(folded).toEqual(["lost trials 3", "lost trials 4", "gaps 6"]);
  });
  test("of a few are all shown", () => {
    expect(listed(["gaps"])).toEqual({ shown: ["gaps 0"], folded: [] });
  });
});

test("a bundle that was changed after its run is named before the question", () => {
  const all = report();
  const altered = "This bundle was changed after its run: changed: plan.json.";
  const found = masthead({ ...all, run: { ...all.run, altered } }).textContent ?? "";
  expect(found.indexOf(altered)).toBeGreaterThan(-1);
  expect(found.indexOf(altered)).toBeLessThan(found.indexOf(all.analysis.question));
  expect(masthead(all).textContent).not.toContain("changed after its run");
});
