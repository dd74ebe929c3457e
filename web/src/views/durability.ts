/** What power cuts found: for each variant how many, how many of all do damage at most, and the evidence of each damage. */
import { OUTCOMES, powerCutOption } from "../charts/power_cut";
import {
  RECOVERY_CAPTION,
  RECOVERY_TITLE,
  recoveryBars,
  recoveryHeight,
  recoveryKey,
  recoveryOption,
} from "../charts/recovery";
import type { CutCount, DurabilityTest, PowerCut, Report } from "../format/report";
import { timelineTitle, worstCut } from "../model/power_cuts";
import { decimalSize, latency, number } from "../model/units";
import { Chart } from "./chart";
import { h, notAvailable, scrolling, section } from "./dom";
import { areaEntry } from "./key";
import { type Column, dataTable } from "./table";

interface Row {
  readonly variant: string;
  readonly test: DurabilityTest;
}

const COLUMNS: readonly Column<Row>[] = [
  { head: "Variant", cell: ({ variant }) => variant },
  { head: "Power cuts", isNumeric: true, cell: ({ test }) => `${test.made} of ${test.planned}` },
  { head: "Dropped something", isNumeric: true, cell: ({ test }) => number(test.dropped) },
  { head: "Did damage", isNumeric: true, cell: ({ test }) => number(test.damaged) },
  {
    head: "At most (95 %)",
    isNumeric: true,
    cell: ({ test }) =>
      test.damaged_share_at_most === null
        ? notAvailable("nothing was learned from any cut")
        : `${(100 * test.damaged_share_at_most).toFixed(1)} %`,
  },
  {
    head: "Commits lost",
    isNumeric: true,
    cell: ({ test }) => `${number(test.lost_commits)} of ${number(test.acknowledged)}`,
  },
  {
    head: "At most, in one cut",
    isNumeric: true,
    cell: ({ test }) => (test.lost_commits === 0 ? "none" : mostLost(test)),
  },
  {
    head: "Recovery, longest",
    isNumeric: true,
    cell: ({ test }) =>
      test.recovery_max_s === null
        ? notAvailable("the server never came up again")
        : `${test.recovery_max_s.toFixed(1)} s`,
  },
];

/** The recovery point: commits, how far back they go, and WAL. */
function mostLost(test: DurabilityTest): string {
  const time = test.most_lost_time_s ?? null;
  const wal = test.most_lost_wal_bytes ?? null;
  return [
    number(test.most_lost_commits),
    time === null ? "" : latency(time * 1e9),
    wal === null ? "" : `${decimalSize(wal)} of WAL`,
  ]
    .filter(Boolean)
    .join(", ");
}

interface Example {
  readonly variant: string;
  readonly cut: PowerCut;
  readonly kind: string;
  readonly count: number;
  readonly evidence: readonly string[];
}

const EXAMPLES: readonly Column<Example>[] = [
  { head: "Variant", cell: ({ variant }) => variant },
  { head: "Cut", isNumeric: true, cell: ({ cut }) => String(cut.number) },
  { head: "When", cell: ({ cut }) => `in ${cut.moment}, ${cut.mode}` },
  { head: "Damage", cell: ({ kind, count }) => `${kind} (${number(count)})` },
  { head: "Evidence", cell: ({ evidence }) => evidence[0] },
];

/** Where the cuts fell, by variant, moment and mode. */
interface Fall {
  readonly variant: string;
  readonly counts: readonly CutCount[];
}

/** The cuts of each variant by moment and mode: how many did damage, of how many. */
function falls(rows: readonly Row[]): HTMLElement | null {
  const counted = rows.map(({ variant, test }) => ({ variant, counts: test.grid ?? [] }));
  const all = counted.flatMap(({ counts }) => counts);
  const kinds = [...new Set(all.map(({ moment, mode }) => `${moment}, ${mode}`))];
  if (kinds.length === 0) return null;
  const columns: Column<Fall>[] = [
    { head: "Variant", cell: ({ variant }) => variant },
    ...kinds.map((kind) => ({
      head: kind,
      isNumeric: true,
      cell: ({ counts }: Fall) => {
        const count = counts.find(({ moment, mode }) => `${moment}, ${mode}` === kind);
        if (count === undefined) return notAvailable("no cut was made");
        const text = `${number(count.damaged)} of ${number(count.made)}`;
        return count.damaged > 0 ? h("strong", { class: "bad" }, text) : text;
      },
    })),
  ];
  return scrolling("Cuts that did damage, by moment and mode", dataTable(columns, counted));
}

function timeline(report: Report): HTMLElement[] {
  const worst = worstCut(report);
  if (worst === null) return [];
  const title = timelineTitle(worst);
  const holder = h("div", { class: "chart", role: "img", "aria-label": title });
  new Chart("power-cut", holder, (theme) => powerCutOption(worst.timeline, theme));
  const key = OUTCOMES.map(({ label, colour }) => areaEntry(label, colour));
  return [h("h3", {}, title), h("ul", { class: "key" }, ...key), holder];
}

function recovery(report: Report): HTMLElement[] {
  const bars = recoveryBars(report);
  if (bars.length === 0) return [];
  const holder = h("div", {
    class: "chart",
    role: "img",
    "aria-label": RECOVERY_TITLE,
    style: `height: ${recoveryHeight(bars)}px`,
  });
  new Chart("recovery", holder, (theme) => recoveryOption(bars, theme));
  const key = recoveryKey().map(({ label, swatch }) => areaEntry(label, swatch.colour));
  return [
    h("h3", {}, RECOVERY_TITLE),
    h("ul", { class: "key" }, ...key),
    holder,
    h("p", { class: "footnote" }, RECOVERY_CAPTION),
  ];
}

/** Nothing where no cuts were planned. */
export function durabilityView(report: Report): HTMLElement | null {
  const rows = report.analysis.variants.flatMap(({ label, durability }) =>
    durability ? [{ variant: label, test: durability }] : [],
  );
  if (rows.length === 0) return null;
  const examples = rows.flatMap(({ variant, test }) =>
    test.examples.flatMap((cut) => (cut.damage ?? []).map((damage) => ({ variant, cut, ...damage }))),
  );
  const gaps = rows.flatMap(({ variant, test }) =>
    [...test.not_checked, ...test.gaps].map((gap) => ({ variant, ...gap })),
  );
  const { durability } = report.sections;
  const controls = report.analysis.cut_controls;
  return section(
    "durability",
    durability.title,
    durability.note,
    scrolling("Power cuts by variant", dataTable(COLUMNS, rows)),
    controls !== null && h("p", {}, controls.sentence),
    falls(rows),
    ...timeline(report),
    ...recovery(report),
    examples.length > 0 && scrolling("What was damaged", dataTable(EXAMPLES, examples)),
    gaps.length > 0 &&
      h(
        "ul",
        { class: "footnote" },
        ...gaps.map(({ variant, what, reason }) =>
          h("li", {}, `${variant}: ${what}: `, notAvailable(reason)),
        ),
      ),
  );
}
