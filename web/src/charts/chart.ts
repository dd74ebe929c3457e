/** ECharts, with only the parts that are used, and one life cycle for every chart of the page. */
import { LineChart, ScatterChart } from "echarts/charts";
import { GridComponent, MarkAreaComponent, TooltipComponent } from "echarts/components";
import * as echarts from "echarts/core";
import { SVGRenderer } from "echarts/renderers";
import type { EChartsOption } from "echarts/types/dist/shared";
import { onThemeChange, readTheme, type Theme } from "./theme";

echarts.use([LineChart, ScatterChart, GridComponent, MarkAreaComponent, TooltipComponent, SVGRenderer]);

export type { EChartsOption };

/** What a chart holds, for those who check a page: points by series. */
export interface ChartContent {
  readonly id: string;
  readonly series: readonly { readonly name: string; readonly points: number }[];
}

const charts = new Map<Element, Chart>();

/** A long page opens at once if it draws first what is seen first. */
const nearby = new IntersectionObserver(
  (entries) => {
    for (const entry of entries) if (entry.isIntersecting) charts.get(entry.target)?.begin();
  },
  { rootMargin: "100% 0px" },
);

export type DrawOption = (theme: Theme) => EChartsOption;

/** A chart in an element. It is drawn when it comes near the window, and anew when its size or the theme changes. */
export class Chart {
  #instance: echarts.ECharts | null = null;
  #option: DrawOption;

  constructor(
    private readonly id: string,
    private readonly element: HTMLElement,
    option: DrawOption,
    private readonly onClick: (data: unknown) => void = () => undefined,
  ) {
    this.#option = option;
    nearby.observe(element);
    charts.set(element, this);
  }

  /** Draws something else from now on. */
  draw(option: DrawOption): void {
    this.#option = option;
    this.redraw();
  }

  redraw(): void {
    const theme = readTheme();
    const textStyle = { fontFamily: theme.font, color: theme.muted };
    this.#instance?.setOption({ animation: false, textStyle, ...this.#option(theme) }, { notMerge: true });
  }

  /** Draws it for the first time, if it has a size. */
  begin(): void {
    const { clientWidth: width, clientHeight: height } = this.element;
    if (this.#instance || width === 0 || height === 0) return;
    nearby.unobserve(this.element);
    this.#instance = echarts.init(this.element, null, { renderer: "svg", width, height });
    this.#instance.on("click", (hit) => this.onClick(hit.data));
    this.redraw();
    new ResizeObserver(() => this.#fit()).observe(this.element);
  }

  /** Draws it for the size that its element has now. */
  drawNow(): void {
    this.begin();
    this.#fit();
  }

  /** What it holds; null while it is hidden. */
  content(): ChartContent | null {
    this.begin();
    if (!this.#instance || this.element.offsetParent === null) return null;
    const option = this.#instance.getOption() as { series?: { name?: string; data?: unknown[] }[] };
    const series = (option.series ?? []).map((each) => ({
      name: each.name ?? "",
      points: (each.data ?? []).filter(hasFigure).length,
    }));
    return { id: this.id, series };
  }

  #fit(): void {
    const { clientWidth: width, clientHeight: height } = this.element;
    const same = width === this.#instance?.getWidth() && height === this.#instance.getHeight();
    if (!same && width > 0 && height > 0) this.#instance?.resize({ width, height });
  }
}

function hasFigure(point: unknown): boolean {
  const value = (point as { value?: unknown } | null)?.value ?? point;
  return Array.isArray(value)
    ? value[1] !== null && value[1] !== undefined
    : value !== null && value !== undefined;
}

/** Every chart that is on the page, and what is in it. */
export function contents(): ChartContent[] {
  return [...charts.values()].map((chart) => chart.content()).filter((content) => content !== null);
}

onThemeChange(() => {
  for (const chart of charts.values()) chart.redraw();
});
/** Charts are drawn for the width of the sheet before it is laid out: in print, nothing tells them of a new size. */
window.addEventListener("beforeprint", () => {
  document.body.classList.add("printing");
  for (const chart of charts.values()) chart.drawNow();
});
window.addEventListener("afterprint", () => {
  document.body.classList.remove("printing");
  for (const chart of charts.values()) chart.drawNow();
});
