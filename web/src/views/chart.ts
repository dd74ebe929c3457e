/** Charts in the page: one life cycle for all of them. What they show is defined in ../charts, without the page. */
import { type EChartsOption, echarts } from "../charts/echarts";
import { type Theme, withTheme } from "../charts/theme";
import { onThemeChange, readTheme } from "./theme";

/** What a chart holds, for those who check a page: points by series. */
export interface ChartContent {
  readonly id: string;
  readonly series: readonly { readonly name: string; readonly points: number }[];
}

declare global {
  interface Window {
    /** For tests of a finished page: what each visible chart shows. */
    plinth?: { readonly charts: () => ChartContent[] };
  }
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

/** Which point of which series was chosen. */
export interface PointPlace {
  readonly series: number;
  readonly point: number;
}

/** A chart in an element. It is drawn when it comes near the window, and again when its size or the theme changes. */
export class Chart {
  #instance: echarts.ECharts | null = null;
  #option: DrawOption;

  constructor(
    private readonly id: string,
    private readonly element: HTMLElement,
    option: DrawOption,
    private readonly onClick: (place: PointPlace) => void = () => undefined,
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
    this.#instance?.setOption(withTheme(this.#option(theme), theme), { notMerge: true });
  }

  /** Draws it for the first time, if it has a size. */
  begin(): void {
    const { clientWidth: width, clientHeight: height } = this.element;
    if (this.#instance || width === 0 || height === 0) return;
    nearby.unobserve(this.element);
    this.#instance = echarts.init(this.element, null, { renderer: "svg", width, height });
    this.#instance.on("click", ({ seriesIndex, dataIndex }) => {
      if (seriesIndex !== undefined) this.onClick({ series: seriesIndex, point: dataIndex });
    });
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
    return { id: this.id, series: listed(this.#instance.getOption()["series"]).map(seriesContent) };
  }

  #fit(): void {
    const { clientWidth: width, clientHeight: height } = this.element;
    const same = width === this.#instance?.getWidth() && height === this.#instance.getHeight();
    if (!same && width > 0 && height > 0) this.#instance?.resize({ width, height });
  }
}

function seriesContent(series: unknown): ChartContent["series"][number] {
  const name = member(series, "name");
  return {
    name: typeof name === "string" ? name : "",
    points: listed(member(series, "data")).filter(hasFigure).length,
  };
}

function hasFigure(point: unknown): boolean {
  const value = member(point, "value") ?? point;
  const figure: unknown = Array.isArray(value) ? value[1] : value;
  return figure !== null && figure !== undefined;
}

function listed(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function member(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined;
}

/** Every chart that is on the page, and what is in it. */
export function contents(): ChartContent[] {
  return [...charts.values()].map((chart) => chart.content()).filter((content) => content !== null);
}

onThemeChange(() => {
  for (const chart of charts.values()) chart.redraw();
});
/** Charts are drawn for the width of the sheet before it is laid out: in print they receive no resize event. */
window.addEventListener("beforeprint", () => {
  document.body.classList.add("printing");
  for (const chart of charts.values()) chart.drawNow();
});
window.addEventListener("afterprint", () => {
  document.body.classList.remove("printing");
  for (const chart of charts.values()) chart.drawNow();
});
