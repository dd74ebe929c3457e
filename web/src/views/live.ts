/** The page of a running run: its phase, the running trial second by second, the trials that have ended, and notes. */
import { lineSwatchOf, panelOption } from "../charts/panel";
import type { Theme } from "../charts/theme";
import { trialsKey, trialsOption } from "../charts/trials";
import type { LiveEnd, LivePage, Panel, TrialEnded } from "../format/live";
import {
  endedTrials,
  headline,
  type LivePanels,
  type LiveRun,
  livePanels,
  notes,
  planned,
  stateLines,
} from "../model/live";
import { looksOf } from "../model/looks";
import { highest, lowestAboveZero, type PanelData } from "../model/timeline";
import { latency, number, UNIT_NAMES, withUnit } from "../model/units";
import { Chart } from "./chart";
import { h, notAvailable, scrolling } from "./dom";
import { entry, keyOf, spanEntry } from "./key";
import { type Column, dataTable } from "./table";

export class LiveView {
  /** The sections of the page. */
  readonly elements: readonly HTMLElement[];
  readonly #head = h("h2", { id: "now-title", role: "status" });
  readonly #reason = h("p", { class: "lead" });
  readonly #lines = h("ul", { class: "kicker state" });
  readonly #bar = h("progress", { max: 1, "aria-label": "Trials done" });
  readonly #connection = h("p", { class: "muted", role: "status" });
  readonly #report: HTMLAnchorElement;
  readonly #panels: LivePanel[];
  readonly #running: HTMLElement;
  readonly #runningTitle = h("h2", { id: "seconds-title" });
  readonly #trials: LiveTrials;
  readonly #notes = h("ul", { class: "notes" });
  readonly #notesSection: HTMLElement;

  constructor(
    private readonly page: LivePage,
    report: string,
  ) {
    this.#report = h("a", { href: report, hidden: true });
    this.#panels = page.panels.map((panel) => new LivePanel(panel));
    this.#running = h(
      "section",
      { id: "seconds", "aria-labelledby": "seconds-title", hidden: true },
      this.#runningTitle,
      h("ul", { class: "key" }, spanEntry("warm-up", "warmup")),
      ...this.#panels.map((panel) => panel.element),
    );
    this.#trials = new LiveTrials();
    this.#notesSection = h(
      "section",
      { id: "notes", "aria-labelledby": "notes-title", hidden: true },
      h("h2", { id: "notes-title" }, "Notes, warnings and gaps"),
      this.#notes,
    );
    const now = h(
      "section",
      { id: "now", "aria-labelledby": "now-title" },
      this.#head,
      this.#reason,
      this.#bar,
      this.#lines,
      h("p", {}, this.#report),
      this.#connection,
    );
    this.elements = [now, this.#running, this.#trials.element, this.#notesSection];
  }

  /** What is between this page and the server; empty when all is well. */
  connection(text: string): void {
    setText(this.#connection, text);
  }

  show(run: LiveRun, end: LiveEnd | null): void {
    setText(this.#head, headline(run, end));
    setText(this.#reason, end?.reason ?? "");
    this.#reason.hidden = !end?.reason;
    this.#bar.hidden = end !== null || !run.began?.trials;
    this.#bar.value = run.ended.length / Math.max(1, run.trial?.trials ?? run.began?.trials ?? 1);
    this.#lines.replaceChildren(...(end === null ? stateLines(run) : []).map((line) => h("li", {}, line)));
    this.#report.hidden = end === null && run.ended.length === 0;
    setText(this.#report, end === null ? "Report of the trials so far" : "Report of this run");
    this.#showTrial(run);
    this.#trials.show(run);
    this.#showNotes(run);
  }

  #showTrial(run: LiveRun): void {
    this.#running.hidden = run.trial === null;
    if (run.trial === null) return;
    const { number, variant } = run.trial;
    const name = `${run.label(variant)}, trial ${number}`;
    setText(this.#runningTitle, run.isMeasuring ? `Second by second: ${name}` : `The last trial: ${name}`);
    const data = livePanels(run, this.page);
    this.#panels.forEach((panel, place) => {
      const shown = data.panels[place];
      if (shown) panel.show(shown, data, name, run.began?.cores ?? 1);
    });
  }

  #showNotes(run: LiveRun): void {
    const all = notes(run);
    this.#notesSection.hidden = all.length === 0;
    this.#notes.replaceChildren(...all.map((note) => h("li", {}, note)));
  }
}

/** A panel of the running trial, with the figures of its last second. */
class LivePanel {
  readonly element: HTMLElement;
  readonly #key = h("ul", { class: "key readings" });
  readonly #holder = h("div", { class: "chart", role: "img" });
  readonly #gap = h("p", { class: "gap" });
  #chart: Chart | null = null;

  constructor(panel: Panel) {
    this.element = h(
      "section",
      { class: "panel", "aria-label": panel.title },
      h("h3", {}, panel.title, h("small", {}, ` ${UNIT_NAMES[panel.unit]}`)),
      h("p", { class: "note" }, panel.note),
      this.#key,
      this.#holder,
      this.#gap,
    );
  }

  show(data: PanelData, { bin_s, end_s, whole_s, spans }: LivePanels, name: string, cores: number): void {
    this.#holder.hidden = data.gap !== null;
    this.#gap.hidden = data.gap === null;
    this.#gap.replaceChildren(data.gap === null ? "" : notAvailable(data.gap));
    this.#key.replaceChildren(...(data.gap === null ? data.lines : []).map((line) => reading(data, line)));
    if (data.gap !== null) return;
    this.#holder.setAttribute("aria-label", `${data.panel.title}: ${name}`);
    const scale = { highest: highest(data), lowest: lowestAboveZero(data), end_s: whole_s, cores };
    const option = (theme: Theme) => panelOption({ panel: data, scale, bin_s, end_s, spans }, theme);
    if (this.#chart) this.#chart.draw(option);
    else this.#chart = new Chart(data.panel.id, this.#holder, option);
  }
}

function reading({ panel }: PanelData, line: PanelData["lines"][number]): HTMLElement {
  const item = entry({ label: line.label, swatch: lineSwatchOf(panel, line.place) });
  item.append(h("output", {}, withUnit(line.values.at(-1), panel.unit)));
  return item;
}

/** The trials that have ended, as dots and as a table, the last one first. */
class LiveTrials {
  readonly element: HTMLElement;
  readonly #key = h("div", {});
  readonly #holder = h("div", {
    class: "chart tall",
    role: "img",
    "aria-label": "Throughput of every trial in the order in which they ran",
  });
  readonly #table = h("div", {});
  #chart: Chart | null = null;
  #shown = 0;
  #pointed: string | null = null;

  constructor() {
    this.element = h(
      "section",
      { id: "trials", "aria-labelledby": "trials-title", hidden: true },
      h("h2", { id: "trials-title" }, "Every trial so far"),
      h("p", { class: "lead" }, "Transactions per second. Every other block of trials is shaded."),
      this.#key,
      this.#holder,
      this.#table,
    );
  }

  show(run: LiveRun): void {
    this.element.hidden = run.ended.length === 0;
    if (run.ended.length === 0 || run.ended.length === this.#shown) return;
    this.#shown = run.ended.length;
    const variants = planned(run);
    const report = endedTrials(run);
    const looks = looksOf(variants);
    const focused = run.trial ? [run.label(run.trial.variant)] : [];
    const option = (theme: Theme) => {
      const attention = { pointed: this.#pointed, focused, of: run.variants.length };
      return trialsOption({ report, measure: "tps", looks, attention }, theme);
    };
    this.#pointed = null;
    const point = (label: string | null) => {
      this.#pointed = label;
      this.#chart?.draw(option);
    };
    this.#key.replaceChildren(keyOf(trialsKey({ report, looks }), point));
    if (this.#chart) this.#chart.draw(option);
    else this.#chart = new Chart("trials", this.#holder, option);
    this.#table.replaceChildren(
      scrolling("Every trial so far", dataTable(columns(run), [...run.ended].reverse())),
    );
  }
}

function columns(run: LiveRun): Column<TrialEnded>[] {
  const failure = { head: "Failure", cell: (trial: TrialEnded) => trial.failure ?? "" };
  return [
    { head: "Trial", cell: (trial) => String(trial.number), isNumeric: true },
    { head: "Variant", cell: (trial) => run.label(trial.variant) },
    { head: "tps", cell: ({ tps }) => (tps === null ? "n/a" : number(tps)), isNumeric: true },
    { head: "p50", cell: (trial) => known(trial.latency_p50_ns), isNumeric: true },
    { head: "p99", cell: (trial) => known(trial.latency_p99_ns), isNumeric: true },
    ...(run.ended.some((trial) => trial.failure !== null) ? [failure] : []),
  ];
}

function known(ns: number | null): string {
  return ns === null ? "n/a" : latency(ns);
}

/** Only where it differs, since readers of screens say what changes. */
function setText(element: HTMLElement, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}
