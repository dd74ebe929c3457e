/** How each machine of a fleet drove its part of the load. */
import type { MachineText, Report } from "../format/report";
import { h, scrolling } from "./dom";
import { type Column, dataTable } from "./table";

const COLUMNS: readonly Column<MachineText>[] = [
  { head: "Variant", cell: (one) => one.variant },
  { head: "Machine", cell: (one) => one.machine },
  { head: "Trials", cell: (one) => String(one.trials) },
  { head: "Clients", cell: (one) => String(one.clients) },
  { head: "Done", cell: (one) => one.done },
  { head: "Latency", cell: (one) => one.latency },
  { head: "Busy", cell: (one) => one.busy },
  { head: "Start", cell: (one) => one.start },
];

/** Nothing where this machine alone drove the load. */
export function loadMachinesView(report: Report): HTMLElement | null {
  if (report.machines.length === 0) return null;
  const { title, note } = report.sections.machines;
  return h(
    "article",
    { class: "devices" },
    h("h3", {}, title),
    h("p", { class: "footnote" }, note),
    scrolling(title, dataTable(COLUMNS, report.machines)),
  );
}
