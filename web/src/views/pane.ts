/** One chart of the time series: a panel of one trial, its key with the figures under the cursor, or why there is none. */
import { lineSwatchOf, panelOption, type Scale } from "../charts/panel";
import type { Theme } from "../charts/theme";
import type { Report, ReportTrial } from "../format/report";
import type { Store } from "../model/focus";
import { binAt, type PanelData, spans } from "../model/timeline";
import { withUnit } from "../model/units";
import { Chart } from "./chart";
import { addCursor, type CursorTime } from "./cursor";
import { h, notAvailable } from "./dom";
import { labelOf } from "./focused";
import { entry } from "./key";

export class Pane {
  readonly element: HTMLElement;
  readonly #name = h("p", { class: "pane-name" });
  readonly #key = h("ul", { class: "key readings" });
  readonly #gap = h("p", { class: "gap" });
  readonly #holder: HTMLElement;
  #chart: Chart | null = null;
  #data: PanelData | null = null;
  #end_s = 1;

  constructor(
    private readonly report: Report,
    private readonly id: string,
    private readonly cursor: Store<CursorTime>,
  ) {
    this.#holder = h("div", { class: "chart", tabindex: 0, role: "img" });
    this.element = h("div", { class: "pane" }, this.#name, this.#key, this.#holder, this.#gap);
    addCursor(this.#holder, cursor, () => this.#end_s, report.bin_s);
    cursor.watch((t_s) => this.#read(t_s));
  }

  /** Shows a panel of a trial; nothing at all when there is no trial. */
  show(data: PanelData | undefined, trial: ReportTrial | undefined, scale: Scale): void {
    this.element.hidden = data === undefined || trial === undefined;
    if (!data || !trial) return;
    this.#data = data;
    this.#end_s = scale.end_s;
    const name = `${labelOf(this.report, trial.variant)}, trial ${trial.number}`;
    this.#name.textContent = name;
    this.#holder.setAttribute("aria-label", `${data.panel.title}: ${name}`);
    this.#holder.hidden = data.gap !== null;
    this.#gap.hidden = data.gap === null;
    this.#gap.replaceChildren(data.gap === null ? "" : notAvailable(data.gap));
    this.#read(this.cursor.value);
    if (data.gap !== null) return;
    const option = (theme: Theme) =>
      panelOption(
        { panel: data, scale, bin_s: this.report.bin_s, end_s: trial.end_s, spans: spans(trial) },
        theme,
      );
    if (this.#chart) this.#chart.draw(option);
    else this.#chart = new Chart(this.id, this.#holder, option);
  }

  #read(t_s: CursorTime): void {
    const data = this.#data;
    if (!data) return;
    const entries = data.lines.map((line) => {
      const item = entry({ label: line.label, swatch: lineSwatchOf(data.panel, line.place) });
      const bin = t_s === null ? null : binAt(t_s, this.report.bin_s, line.values.length);
      const reading = bin === null ? "" : withUnit(line.values[bin], data.panel.unit);
      item.append(h("output", {}, reading));
      return item;
    });
    this.#key.replaceChildren(...entries);
  }
}
