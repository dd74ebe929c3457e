/** The seconds of one trial, or of two side by side on the same scales, under one cursor. */
import type { Mark, Report, ReportTrial } from "../format/report";
import { type Focus, Store } from "../model/focus";
import { binAt, panelsOf, scaleOf } from "../model/timeline";
import { UNIT_NAMES } from "../model/units";
import type { CursorTime } from "./cursor";
import { h, scrolling, section } from "./dom";
import { labelOf, trialOf } from "./focused";
import { spanEntry } from "./key";
import { Pane } from "./pane";
import { picker } from "./picker";
import { type Column, dataTable } from "./table";

const LEAD =
  "One trial, or two side by side on the same scales. Point at a chart, or use the arrow keys in it, to read values.";

export function timelineView(report: Report, focus: Store<Focus>): HTMLElement {
  const cursor = new Store<CursorTime>(null);
  const rows = report.panels.map((panel) => ({
    panel,
    left: new Pane(report, `${panel.id}-left`, cursor),
    right: new Pane(report, `${panel.id}-right`, cursor),
  }));
  const eventLists = h("div", { class: "panes" });
  const body = h(
    "div",
    { class: "panels" },
    ...rows.map(({ panel, left, right }) =>
      h(
        "section",
        { class: "panel", "aria-label": panel.title },
        h("h3", {}, panel.title, h("small", {}, ` ${UNIT_NAMES[panel.unit]}`)),
        h("p", { class: "note" }, panel.note),
        h("div", { class: "panes" }, left.element, right.element),
      ),
    ),
    eventLists,
  );
  const time = h("output", { class: "cursor-time" });
  cursor.watch((t_s) => {
    time.textContent = t_s === null ? "" : bin(t_s, report.bin_s);
  });
  focus.watch(({ left, right }) => {
    const trials = [trialOf(report, left), right === null ? undefined : trialOf(report, right)] as const;
    body.classList.toggle("paired", trials[1] !== undefined);
    eventLists.replaceChildren(
      ...trials.filter((trial) => trial !== undefined).map((trial) => events(report, trial)),
    );
    const data = trials.map((trial) => trial && panelsOf(report, trial));
    rows.forEach((row, place) => {
      const shown = [data[0]?.[place], data[1]?.[place]] as const;
      const scale = {
        ...scaleOf(
          shown.filter((each) => each !== undefined),
          trials,
        ),
        cores: report.host.cores,
      };
      row.left.show(shown[0], trials[0], scale);
      row.right.show(shown[1], trials[1], scale);
    });
  });
  return section(
    "seconds",
    "Second by second",
    report.bin_s === 1 ? LEAD : `${LEAD} ${binned(report.bin_s)}`,
    h(
      "ul",
      { class: "key" },
      spanEntry("warm-up", "warmup"),
      spanEntry("checkpoint", "checkpoint"),
      spanEntry("action", "action"),
    ),
    h(
      "div",
      { class: "controls pickers" },
      picker(report, focus, "left"),
      picker(report, focus, "right"),
      time,
    ),
    body,
  );
}

/** The events of a trial, from the server's log or its counters. */
function events(report: Report, trial: ReportTrial): HTMLElement {
  const title = `Events of trial ${trial.number}, ${labelOf(report, trial.variant)}: ${trial.marks.length}`;
  return h(
    "details",
    {},
    h("summary", {}, title),
    scrolling(title, dataTable(EVENTS, trial.marks, { rowHead: null, hasHeads: false })),
  );
}

const EVENTS: readonly Column<Mark>[] = [
  { head: "Time", isNumeric: true, cell: (mark) => `${mark.t_s.toFixed(1)} s` },
  { head: "Event", cell: (mark) => mark.kind },
  { head: "Text", cell: (mark) => mark.text },
];

function binned(bin_s: number): string {
  return (
    `To keep this file small, each point covers ${bin_s} s: the mean, or for latencies the highest second. ` +
    "The bundle has every second."
  );
}

function bin(t_s: number, bin_s: number): string {
  const from = (binAt(t_s, bin_s, Number.POSITIVE_INFINITY) ?? 0) * bin_s;
  return bin_s === 1 ? `second ${from}` : `seconds ${from} to ${from + bin_s}`;
}
