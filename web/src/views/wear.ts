/** Bytes that the run wrote to each disk, and the wear that the drives report. */
import type { DiskWear, Report, SmartReading } from "../format/report";
import { size } from "../model/units";
import { h, notAvailable } from "./dom";
import { row } from "./facts";

export function wearView(report: Report): HTMLElement {
  const { wear } = report;
  if (!wear) return h("p", { class: "na" }, "n/a: bytes written to the disks were not counted in this run");
  return h(
    "article",
    { class: "storage wear" },
    h("h3", {}, report.sections.wear.title),
    h("p", { class: "note" }, report.sections.wear.note),
    h(
      "dl",
      { class: "facts" },
      ...wear.disks.map(diskRow),
      wear.disks.length === 0 && row("disks", "none: nothing of this run is stored on a disk"),
      wear.max_written_bytes !== null && row("budget", size(wear.max_written_bytes)),
      ...wear.gaps.map((gap) => row(gap.what, notAvailable(gap.reason))),
    ),
  );
}

function diskRow(disk: DiskWear): HTMLElement {
  const used = `endurance used ${endurance(disk.before)} before, ${endurance(disk.after)} after`;
  const wear = disk.before || disk.after ? used : (disk.gaps[0] && `wear n/a: ${disk.gaps[0].reason}`) || "";
  return row(
    [disk.disk, disk.model].filter(Boolean).join(", "),
    `${size(disk.written_bytes)} (${disk.storages.join(", ")})${wear && `; ${wear}`}`,
    (disk.after ?? disk.before)?.source ?? null,
  );
}

function endurance(reading: SmartReading | null): string {
  return reading?.percentage_used == null ? "n/a" : `${reading.percentage_used} %`;
}
