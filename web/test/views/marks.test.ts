// @vitest-environment happy-dom
/** What is explained of marks, and only of those that are there; keys that point at what they name. */
import { describe, expect, test } from "vitest";
import { paretoCaption, paretoOption } from "../../src/charts/pareto";
import { scalingCaption, scalingKey, scalingOption } from "../../src/charts/scaling";
import { themeOf } from "../../src/charts/theme";
import type { Report, VariantResult } from "../../src/format/report";
import { FIRST_LOOK, lineSwatch, NO_ATTENTION } from "../../src/model/looks";
import type { ParetoDot } from "../../src/model/pareto";
import type { CurvePanel } from "../../src/model/scaling";
import { keyOf } from "../../src/views/key";
import { rankingView } from "../../src/views/ranking";
import { tradeOffsView } from "../../src/views/tradeoffs";
import { estimate, point, report } from "../sample";
import { bodyRows } from "./cells";

const THEME = themeOf((name) => (name === "surface" ? "#ffffff" : `${name} colour`));

function withVariants(change: (variant: VariantResult) => Partial<VariantResult>): Report {
  const { analysis, ...rest } = report();
  const variants = analysis.variants.map((each) => ({ ...each, ...change(each) }));
  return { ...rest, analysis: { ...analysis, variants } };
}

describe("a bar of the ranking", () => {
  const bare = { ...estimate(500), interval: null };

  test("without an interval is marked, and the lead says so", () => {
    const view = rankingView(withVariants(({ id }) => (id === "memory" ? { tps: bare } : {})));
    const marked = bodyRows(view).map((row) => row.querySelector(".fill.bare") !== null);
    expect(marked).toEqual([true, false, false]);
    expect(view.querySelector(".lead")?.textContent).toContain("without an interval");
  });

  test("with an interval has a line, and nothing else is explained", () => {
    const safe = { ...report().analysis.variants[1]?.safety };
    const lead = rankingView(withVariants(() => ({ safety: safe as VariantResult["safety"] }))).querySelector(
      ".lead",
    )?.textContent;
    expect(lead).toContain("95 % interval");
    expect(lead).not.toContain("without an interval");
    expect(lead).not.toContain("Hatched");
  });

  test("stays within the axis, however low its interval", () => {
    const wide = { ...estimate(500), interval: { low: -50, high: 4000, level: 0.95 } };
    const view = rankingView(withVariants(({ id }) => (id === "memory" ? { tps: wide } : {})));
    const places = [...(bodyRows(view)[0]?.querySelectorAll("line") ?? [])].flatMap((line) =>
      ["x1", "x2"].map((end) => Number.parseFloat(line.getAttribute(end) ?? "")),
    );
    expect(Math.min(...places)).toBe(0);
    expect(Math.max(...places)).toBeLessThanOrEqual(100);
  });
});

test("what is said of groups stands below the ranking, as text", () => {
  const notes = ["No two <b>were</b> told apart.", "Group: n/a: why."];
  const view = rankingView({ ...report(), group_notes: notes });
  const shown = [...view.querySelectorAll(".footnote")].map((each) => each.textContent);
  expect(shown).toEqual(notes);
  expect([...view.querySelectorAll("thead th")].map((head) => head.textContent)).not.toContain("Group");
});

describe("curves", () => {
  const panelOf = (intervals: readonly (number | null)[], hasKnee: boolean): CurvePanel => ({
    title: "",
    rates: [1, 400],
    factor: { name: "clients", title: "clients", unit: "count", is_workload: false, levels: [] },
    curves: [
      {
        name: "disk",
        look: FIRST_LOOK,
        knee: hasKnee ? { low: 1, high: 2, level: 0.95 } : null,
        levels: intervals.map((width, x) => ({
          ...{ x, look: FIRST_LOOK, tps: 100, p99_ns: null, published: null },
          interval: width === null ? null : { low: 100 - width, high: 100 + width, level: 0.95 },
        })),
      },
    ],
  });
  const fills = (panel: CurvePanel) =>
    [scalingOption(panel, NO_ATTENTION, THEME).series]
      .flat()
      .flatMap((series) =>
        series?.name === "disk" ? (series.data as { itemStyle: { color: string } }[]) : [],
      )
      .map(({ itemStyle }) => itemStyle.color);

  test("have hollow points where there is no interval", () => {
    expect(fills(panelOf([5, null], false))).toEqual(["c-1 colour", "#ffffff"]);
  });

  test("and so have their entries in the key, if no point has one", () => {
    const twoOf = (...intervals: (number | null)[]) => {
      const panel = panelOf(intervals, false);
      return { ...panel, curves: [...panel.curves, ...panel.curves] };
    };
    const hollow = (panel: CurvePanel) =>
      scalingKey(panel, NO_ATTENTION).map(({ swatch }) => swatch.marker?.isHollow);
    expect(hollow(twoOf(null, null))).toEqual([true, true]);
    expect(hollow(twoOf(null, 5))).toEqual([false, false]);
  });

  test.each([
    [[5, 5], true, ["95 %", "knee"]],
    [[5, null], false, ["95 %", "Hollow"]],
    [[null, null], false, ["Hollow"]],
  ] as const)("explain what is drawn: %j, knee %s", (intervals, hasKnee, words) => {
    const caption = scalingCaption([panelOf(intervals, hasKnee)]);
    expect(["95 %", "Hollow", "knee"].filter((word) => caption.includes(word))).toEqual([...words]);
  });
});

describe("the Pareto front", () => {
  const dot = (changes: Partial<ParetoDot> = {}): ParetoDot => ({
    ...{ label: "disk", look: FIRST_LOOK, tps: estimate(100), p99: estimate(1e6) },
    ...{ keeps: true, isOnFront: true, standing: "on the front" },
    ...changes,
  });
  const bare = dot({ tps: { ...estimate(100), interval: null } });
  const marks = (dots: ParetoDot[]) =>
    [paretoOption(dots, NO_ATTENTION, THEME).series].flat().map((series) => String(series?.name));

  test("rings a dot that lacks an interval, and crosses one that may lose commits", () => {
    expect(marks([dot()])).toEqual(["disk", "disk, 95 % intervals"]);
    expect(marks([bare])).toContain("disk, no interval");
    expect(marks([dot({ keeps: false })])).toContain("disk, may lose commits");
  });

  test("explains the marks that there are", () => {
    const words = ["Hollow", "Crossed", "ring", "95 %"];
    const said = (dots: ParetoDot[]) => words.filter((word) => paretoCaption(dots).includes(word));
    expect(said([dot()])).toEqual(["95 %"]);
    expect(said([dot({ isOnFront: false }), dot({ keeps: false })])).toEqual(["Hollow", "Crossed", "95 %"]);
    expect(said([{ ...bare, p99: { ...estimate(1), interval: null } }])).toEqual(["ring"]);
  });

  test("says in a sentence that nothing is dominated", () => {
    const pareto = [{ stratum: "", metrics: [], gaps: [], points: [] }];
    const all = { ...report(), analysis: { ...report().analysis, pareto } };
    const view = tradeOffsView({ ...all, pareto_summary: "No variant is <i>dominated</i>." });
    expect([...(view?.querySelectorAll("p") ?? [])].map((p) => p.textContent)).toContain(
      "No variant is <i>dominated</i>.",
    );
  });
});

test("an entry of a key points at its name, and a click keeps it", () => {
  const said: (string | null)[] = [];
  const entries = ["a", "b"].map((label) => ({ label, swatch: lineSwatch("c-1", 1, [2, 2]) }));
  const key = keyOf(entries, (label) => said.push(label));
  const [first, second] = [...key.querySelectorAll("button")];
  first?.dispatchEvent(new Event("pointerenter"));
  first?.dispatchEvent(new Event("pointerleave"));
  first?.click();
  second?.dispatchEvent(new Event("pointerenter"));
  second?.dispatchEvent(new Event("pointerleave"));
  first?.click();
  expect(said).toEqual(["a", null, "a", "b", "a", null]);
  expect(key.querySelector("line")?.getAttribute("stroke-dasharray")).toBe("2 2");
  expect(first?.getAttribute("aria-pressed")).toBe("false");
  expect(keyOf(entries).querySelector("button")).toBeNull();
});

test("dots of trials that are not counted are explained where there are any", async () => {
  const { trialsCaption } = await import("../../src/charts/trials");
  const of = (...trials: VariantResult["trials"]) => trialsCaption(withVariants(() => ({ trials })));
  expect(of(point(1, 5))).toBe("");
  expect(of(point(1, 5, { excluded: "rule" }))).toContain("Hollow");
  expect(of(point(1, null, { failure: "killed" }))).not.toContain("Hollow");
});
