/** The charts, drawn as SVG without a browser: nothing here may need a document. */
import { expect, test } from "vitest";
import { echarts } from "../src/charts/echarts";
import { panelOption } from "../src/charts/panel";
import { percentilesKey, percentilesOption, reading, variantCurves } from "../src/charts/percentiles";
import { binText, powerCutOption } from "../src/charts/power_cut";
import { withTheme } from "../src/charts/theme";
import { describe, trialDots, trialsOption } from "../src/charts/trials";
import type { CurvePoint } from "../src/format/report";
import { FIRST_LOOK, looksOf, NO_ATTENTION } from "../src/model/looks";
import { panelsOf, spans } from "../src/model/timeline";
import { point, report, THEME, trial, variant } from "./sample";

function drawn(option: Parameters<typeof withTheme>[0]): string {
  const chart = echarts.init(null, null, { renderer: "svg", ssr: true, width: 600, height: 300 });
  chart.setOption(withTheme(option, THEME));
  const text = chart.renderToSVGString();
  chart.dispose();
  return text;
}

const times = (svg: string, part: string) => svg.split(part).length - 1;

const curve = (...latencies: number[]): CurvePoint[] =>
  latencies.map((latency_ns, place) => ({ quantile: 1 - 10 ** -place, latency_ns }));

test("there is no document here", () => {
  expect(typeof document).toBe("undefined");
});

test("a trial is a dot in its variant's colour; one that does not count is hollow, a failed one a cross", () => {
  const all = report();
  const looks = looksOf(all.analysis);
  const svg = drawn(trialsOption({ report: all, measure: "tps", looks, attention: NO_ATTENTION }, THEME));
  expect(svg).toContain("trial, in the order in which they ran");
  expect(times(svg, 'fill="#c20002"')).toBe(2);
  expect(times(svg, 'fill="#c10001"')).toBe(2);
  expect(times(svg, 'stroke="#c10001"')).toBe(2);
});

test("against its own variant's median a trial without throughput has no dot", () => {
  const dots = trialDots(report(), "relative");
  expect(dots.map((of) => of.map((dot) => dot.point.number))).toEqual([[1, 4], [2, 5], [3]]);
  expect(dots[0]?.[0]?.value[1]).toBeCloseTo(-3.33, 2);
});

test("the tooltips take a user's label for text", () => {
  const label = "<img src=x onerror=alert(1)>";
  const hostile = variant("disk", 10, { label });
  const text = describe({
    value: [1, 10],
    point: point(1, 10, { failure: "<b>killed</b>" }),
    variant: hostile,
  });
  expect(text).toContain("&lt;img src=x onerror=alert(1)&gt;");
  expect(text).toContain("&lt;b&gt;killed&lt;/b&gt;");
  const curves = [{ name: label, look: FIRST_LOOK, points: curve(1000, 2000) }];
  expect(reading(curves, "transactions", 10)).toBe(
    "<div>90 % of transactions took at most<div>&lt;img src=x onerror=alert(1)&gt;: 2.00 µs</div></div>",
  );
});

test("percentile curves have their variants' looks, and the key shows each line as it is drawn", () => {
  const all = report();
  const [memory, disk, twin] = all.variants;
  const measured = {
    ...all,
    variants: [memory, disk, twin].flatMap((each) =>
      each ? [{ ...each, latency_curve: curve(1e6, 2e6, 9e6) }] : [],
    ),
  };
  const curves = variantCurves(measured, looksOf(all.analysis));
  const chart = { curves, of: "transactions", attention: NO_ATTENTION };
  const svg = drawn(percentilesOption(chart, THEME));
  for (const { swatch } of percentilesKey(chart)) {
    if (!swatch.line) throw new Error("a line");
    const { width, dash } = swatch.line;
    const line = [`stroke="${THEME.colours[swatch.colour]}"`, `stroke-width="${width}"`];
    if (dash.length > 0) line.push(`stroke-dasharray="${dash.join(",")}"`);
    const isDrawn = [...svg.matchAll(/<path [^>]*>/g)].some(([path]) =>
      line.every((part) => path.includes(part)),
    );
    expect(isDrawn, line.join(" ")).toBe(true);
  }
  expect(svg).toContain("share of transactions");
  expect(svg).toContain("90 %");
});

test("a panel shows its lines, the warm-up and checkpoints", () => {
  const all = report();
  const one = trial(1, "memory", {
    marks: [
      { t_s: 2, kind: "checkpoint_start", text: "" },
      { t_s: 3, kind: "checkpoint_end", text: "" },
    ],
  });
  const [tps, waits] = panelsOf(all, one);
  if (!tps || !waits) throw new Error("two panels are recorded");
  const scale = { highest: 40, lowest: 1, end_s: 3.5, cores: 2 };
  const rest = { scale, bin_s: 1, end_s: 3.5, spans: spans(one) };
  const lines = drawn(panelOption({ panel: tps, ...rest }, THEME));
  for (const colour of ["#c10001", "#c20002"]) expect(lines).toContain(`stroke="${colour}"`);
  expect(times(lines, 'fill="#eeeeee"')).toBe(1);
  expect(times(lines, 'fill="#ffeecc"')).toBe(1);
  expect(times(lines, 'fill="#c10001"'), "lines are not filled").toBe(0);
  const stack = drawn(panelOption({ panel: waits, ...rest }, THEME));
  expect(times(stack, 'fill="#c10001"'), "bands are").toBe(1);
});

test("the time line of a power cut stacks what was lost on what was kept, bin by bin to the cut", () => {
  const timeline = { bin_s: 0.01, kept: [30, 20, 0], lost: [0, 5, 12] };
  const svg = drawn(powerCutOption(timeline, THEME));
  expect(svg).toContain('fill="#530003"');
  expect(svg).toContain('fill="#bad000"');
  expect(svg).toContain("-20.0 ms");
  expect(binText(timeline, 1)).toBe(
    "acknowledged 20.0 ms before the power cut, within 10.0 ms<br>kept: 20<br>lost: 5",
  );
});
