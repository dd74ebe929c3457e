/** Every trial as a dot; for trials that are not counted, the reason. */
import type { Theme } from "../charts/theme";
import {
  hasNewOrders,
  type Measure,
  reasonOut,
  trialDots,
  trialsCaption,
  trialsKey,
  trialsOption,
} from "../charts/trials";
import type { Report } from "../format/report";
import type { Focus, Store } from "../model/focus";
import { looksOf } from "../model/looks";
import { Chart } from "./chart";
import { h, section } from "./dom";
import { attentionOf } from "./focused";
import { keyOf } from "./key";
import { preparationsView } from "./preparations";

export function trialsView(report: Report, focus: Store<Focus>): HTMLElement {
  const holder = h("div", {
    class: "chart tall",
    role: "img",
    "aria-label": "Throughput of every trial in the order in which they ran",
  });
  let measure: Measure = "tps";
  const looks = looksOf(report.analysis);
  let pointed: string | null = null;
  const option = (theme: Theme) => {
    const attention = attentionOf(report, focus.value, pointed);
    return trialsOption({ report, measure, looks, attention }, theme);
  };
  const chart = new Chart("trials", holder, option, ({ series, point }) => {
    const dot = trialDots(report, measure)[series]?.[point];
    if (dot) focus.set({ ...focus.value, left: dot.point.number });
  });
  const key = keyOf(trialsKey({ report, looks }), (label) => {
    pointed = label;
    chart.draw(option);
  });
  focus.watch(() => chart.draw(option));
  const choose = (chosen: Measure) => {
    measure = chosen;
    chart.draw(option);
  };
  return section(
    "trials",
    "Every trial",
    "In the order in which they ran, block by block, which shows drift and outliers. Select a dot to see that trial second by second below.",
    h("div", { class: "controls" }, measureChoice(choose, hasNewOrders(report))),
    key,
    holder,
    outs(report),
    preparationsView(report),
  );
}

function measureChoice(choose: (measure: Measure) => void, withNewOrders: boolean): HTMLElement {
  const option = (measure: Measure, text: string, checked: boolean) => {
    const input = h("input", { type: "radio", name: "measure", value: measure, checked });
    input.addEventListener("change", () => choose(measure));
    return h("label", {}, input, text);
  };
  return h(
    "fieldset",
    { class: "choice" },
    h("legend", {}, "Throughput"),
    option("tps", "tps", true),
    option("relative", "relative to the variant's median", false),
    withNewOrders && option("nopm", "new orders per minute", false),
  );
}

function outs(report: Report): HTMLElement {
  const out = report.analysis.variants.flatMap((variant) =>
    variant.trials
      .filter((point) => reasonOut(point) !== null)
      .map((point) => ({ number: point.number, text: `${variant.label}: ${reasonOut(point)}` })),
  );
  if (out.length === 0)
    return h("p", { class: "footnote" }, `All ${report.trials.length} trials are counted.`);
  return h(
    "div",
    { class: "footnote" },
    h("p", {}, `Not counted, with the reason. ${trialsCaption(report)}`),
    h("ul", {}, ...out.map((each) => h("li", {}, `Trial ${each.number}, ${each.text}`))),
  );
}
