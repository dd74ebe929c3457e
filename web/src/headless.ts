/** The charts of a report as SVG, without a page: for a JavaScript engine that has no document. Built into charts.js. */
import { type EChartsOption, echarts } from "./charts/echarts";
import { framed, WIDTH } from "./charts/frame";
import { lineSwatchOf, panelOption } from "./charts/panel";
import { paretoCaption, paretoKey, paretoOption } from "./charts/pareto";
import { flushChart, percentilesKey, percentilesOption, variantCurves } from "./charts/percentiles";
import { OUTCOMES, powerCutOption } from "./charts/power_cut";
import {
  comparedLines,
  publishedCaption,
  publishedHeight,
  publishedKey,
  publishedOption,
} from "./charts/published";
import {
  RECOVERY_CAPTION,
  RECOVERY_TITLE,
  recoveryBars,
  recoveryHeight,
  recoveryKey,
  recoveryOption,
} from "./charts/recovery";
import {
  hockeyStickOption,
  STICK_CAPTION,
  scalingCaption,
  scalingKey,
  scalingOption,
  stickKey,
} from "./charts/scaling";
import { type Theme, themeOf, withTheme } from "./charts/theme";
import { hasNewOrders, type Measure, trialsCaption, trialsKey, trialsOption } from "./charts/trials";
import { parseReport } from "./format/read";
import type { Report, ReportTrial } from "./format/report";
import { initialFocus } from "./model/focus";
import { type Attention, areaSwatch, type KeyEntry, looksOf, NO_ATTENTION } from "./model/looks";
import { paretoDots } from "./model/pareto";
import { timelineTitle, worstCut } from "./model/power_cuts";
import { curvePanels, isOpenLoop, panelTitle } from "./model/scaling";
import { panelsOf, scaleOf, spans } from "./model/timeline";
import { UNIT_NAMES } from "./model/units";
import page from "./styles/page.css?raw";

interface Drawing {
  readonly title: string;
  readonly key: readonly KeyEntry[];
  readonly option: (theme: Theme) => EChartsOption;
  readonly height: number;
  /** What its marks denote. */
  readonly caption?: string;
}

const TALL = 380;
const LOW = 240;

/** Every chart of a report, as JSON: [{title, svg}]. The theme is the light one of the page. */
function draw(json: string): string {
  const report = parseReport(json);
  const theme = { ...themeOf(lightColour), font: "Inter, system-ui, sans-serif" };
  const all = drawings(report).map((each) => ({ ...each, title: capitalised(each.title) }));
  return JSON.stringify(
    all.map((each) => ({ title: each.title, svg: drawn(each, theme, report.tpcc?.notice) })),
  );
}

function capitalised(title: string): string {
  return title.slice(0, 1).toUpperCase() + title.slice(1);
}

/** A custom property of the style sheet's first rule, which is the light theme. */
function lightColour(name: string): string {
  const light = page.slice(0, page.indexOf("}"));
  return new RegExp(`--${name}:\\s*([^;]+);`).exec(light)?.[1]?.trim() ?? "";
}

/** By these ECharts finds its elements again in a page that has its script; a file has none. They are a fifth of it. */
const FOR_SCRIPTS = / ecmeta_(?:series_index|data_index|ssr_type|silent)="(?:\d+|[a-z]+)"/g;

function drawn(
  { title, key, option, height, caption }: Drawing,
  theme: Theme,
  notice: string | undefined,
): string {
  const chart = echarts.init(null, null, { renderer: "svg", ssr: true, width: WIDTH, height });
  chart.setOption(withTheme(option(theme), theme));
  const svg = chart.renderToSVGString().replace(FOR_SCRIPTS, "");
  chart.dispose();
  return framed({ title, key, svg, height, notice: [caption, notice].filter(Boolean).join(" ") }, theme);
}

function drawings(report: Report): Drawing[] {
  return [
    ...scaling(report),
    ...published(report),
    ...trials(report),
    ...powerCut(report),
    ...recovery(report),
    ...latency(report),
    ...tradeOffs(report),
    ...flushes(report),
    ...seconds(report),
  ];
}

function scaling(report: Report): Drawing[] {
  return curvePanels(report).flatMap((panel) => {
    const attention = { ...NO_ATTENTION, of: panel.curves.length };
    const { throughput, latency: stick } = panelTitle(panel);
    const charts: Drawing[] = [
      {
        title: throughput,
        key: scalingKey(panel, attention),
        caption: scalingCaption([panel]),
        height: TALL,
        option: (theme) => scalingOption(panel, attention, theme),
      },
    ];
    if (isOpenLoop(panel))
      charts.push({
        title: stick,
        key: stickKey(panel, attention),
        caption: STICK_CAPTION,
        height: TALL,
        option: (theme) => hockeyStickOption(panel, attention, theme),
      });
    return charts;
  });
}

function tradeOffs(report: Report): Drawing[] {
  const dots = paretoDots(report);
  if (dots.length < 2) return [];
  return [
    {
      title: "Trade-offs: p99 latency over throughput",
      key: paretoKey(dots),
      caption: paretoCaption(dots),
      height: TALL,
      option: (theme) => paretoOption(dots, NO_ATTENTION, theme),
    },
  ];
}

function published(report: Report): Drawing[] {
  const lines = report.published ? comparedLines(report.published) : [];
  if (lines.length === 0) return [];
  return [
    {
      title: "Published ratios and ours",
      key: publishedKey(),
      caption: publishedCaption(lines),
      height: publishedHeight(lines),
      option: (theme) => publishedOption(lines, theme),
    },
  ];
}

function trials(report: Report): Drawing[] {
  if (report.analysis.trials_counted === 0) return [];
  const looks = looksOf(report.analysis);
  const attention = atFirst(report);
  const drawing = (measure: Measure, unit: string): Drawing => ({
    title: `Every trial, ${unit}`,
    key: trialsKey({ report, looks }),
    caption: trialsCaption(report),
    height: TALL,
    option: (theme) => trialsOption({ report, measure, looks, attention }, theme),
  });
  const newOrders = hasNewOrders(report) ? [drawing("nopm", "new orders per minute")] : [];
  return [drawing("tps", "tps"), ...newOrders];
}

function powerCut(report: Report): Drawing[] {
  const worst = worstCut(report);
  if (worst === null) return [];
  const option = (theme: Theme) => powerCutOption(worst.timeline, theme);
  const key = OUTCOMES.map(({ label, colour }) => ({ label, swatch: areaSwatch(colour) }));
  return [{ title: timelineTitle(worst), key, height: LOW, option }];
}

function recovery(report: Report): Drawing[] {
  const bars = recoveryBars(report);
  if (bars.length === 0) return [];
  return [
    {
      title: RECOVERY_TITLE,
      key: recoveryKey(),
      caption: RECOVERY_CAPTION,
      height: recoveryHeight(bars),
      option: (theme) => recoveryOption(bars, theme),
    },
  ];
}

function latency(report: Report): Drawing[] {
  if (!report.variants.some((variant) => variant.latency_curve.length > 0)) return [];
  const curves = variantCurves(report, looksOf(report.analysis));
  const chart = { curves, of: "transactions", attention: atFirst(report) };
  return [
    {
      title: "Latency percentiles",
      key: percentilesKey(chart),
      height: TALL,
      option: (theme) => percentilesOption(chart, theme),
    },
  ];
}

function flushes(report: Report): Drawing[] {
  return (report.flushes ?? []).flatMap((storage) => {
    const chart = { ...flushChart(storage), attention: NO_ATTENTION };
    if (chart.curves.length === 0) return [];
    return [
      {
        title: `Percentiles of durable writes on ${storage.storage}`,
        key: percentilesKey(chart),
        height: TALL,
        option: (theme: Theme) => percentilesOption(chart, theme),
      },
    ];
  });
}

/** What the page opens with: of many variants, the baseline and the best of the others stand out. */
function atFirst(report: Report): Attention {
  const focus = initialFocus(report);
  const numbers = [focus?.left, focus?.right];
  const variants = report.trials
    .filter(({ number }) => numbers.includes(number))
    .map(({ variant }) => variant);
  const focused = report.analysis.variants
    .filter(({ id }) => variants.includes(id))
    .map(({ label }) => label);
  return { ...NO_ATTENTION, focused, of: report.analysis.variants.length };
}

/** The time series of the trials that the page opens with, on the same scales. */
function seconds(report: Report): Drawing[] {
  const focus = initialFocus(report);
  const shown = [focus?.left, focus?.right].flatMap((number) => {
    const trial = report.trials.find((each) => each.number === number);
    return trial ? [trial] : [];
  });
  const data = shown.map((trial) => panelsOf(report, trial));
  return report.panels.flatMap((_, place) => {
    const all = data.flatMap((panels) => panels[place] ?? []);
    const scale = { ...scaleOf(all, shown), cores: report.host.cores };
    return shown.flatMap((trial, which) => {
      const panel = data[which]?.[place];
      if (!panel || panel.gap !== null) return [];
      return [
        {
          title: `${[panel.panel.title, UNIT_NAMES[panel.panel.unit]].filter(Boolean).join(", ")}: ${name(report, trial)}`,
          key: panel.lines.map((line) => ({
            label: line.label,
            swatch: lineSwatchOf(panel.panel, line.place),
          })),
          height: LOW,
          option: (theme: Theme) =>
            panelOption(
              { panel, scale, bin_s: report.bin_s, end_s: trial.end_s, spans: spans(trial) },
              theme,
            ),
        },
      ];
    });
  });
}

function name(report: Report, trial: ReportTrial): string {
  const label = report.analysis.variants.find((each) => each.id === trial.variant)?.label ?? trial.variant;
  return `${label}, trial ${trial.number}`;
}

Object.assign(globalThis, { plinthCharts: draw });
