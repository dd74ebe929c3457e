/** Commits that wait for standbys: what the model predicts, what was measured, and its error. */
import type { CommitModel, Report } from "../format/report";
import { latency } from "../model/units";
import { h, scrolling } from "./dom";
import { type Column, dataTable } from "./table";

const NONE = "n/a";

/** The sum of the parts; null where one is not known. */
export function predictedNs(model: CommitModel): number | null {
  const { local_ns, round_trip_ns, flush_ns, sharing_ns } = model;
  if (local_ns == null || round_trip_ns == null || flush_ns == null) return null;
  return local_ns + round_trip_ns + flush_ns + (sharing_ns ?? 0);
}

/** Of a prediction; its simulation is not more exact. */
const LITTLE = 0.01;

/** What sharing flushes adds or takes away; nothing where that is little. */
function shared(model: CommitModel): string {
  const sharing = model.sharing_ns ?? 0;
  if (Math.abs(sharing) < LITTLE * (predictedNs(model) ?? 0)) return "";
  return ` ${sharing > 0 ? "+" : "-"} ${latency(Math.abs(sharing))} (shared flushes)`;
}

function error(model: CommitModel): string {
  const predicted = predictedNs(model);
  if (predicted === null || !model.measured_ns) return NONE;
  const percent = Math.round(100 * (predicted / model.measured_ns - 1));
  return `${percent < 0 ? "-" : "+"}${Math.abs(percent)} %`;
}

function parts(model: CommitModel): string {
  const { local_ns, round_trip_ns, flush_ns } = model;
  if (local_ns == null || round_trip_ns == null || flush_ns == null)
    return model.unavailable ?? "a part was not measured";
  return `local ${latency(local_ns)} (${model.local}) + round trip ${latency(round_trip_ns)} + flush ${latency(flush_ns)} (${model.standby})${shared(model)}`;
}

const COLUMNS: readonly Column<CommitModel>[] = [
  { head: "Variant", cell: (model) => model.variant },
  {
    head: "Commit, median",
    cell: (model) => (model.measured_ns == null ? NONE : latency(model.measured_ns)),
  },
  {
    head: "Predicted",
    cell: (model) => {
      const predicted = predictedNs(model);
      return predicted === null ? NONE : latency(predicted);
    },
  },
  { head: "Error", cell: error },
  { head: "Of which", cell: parts },
];

/** Nothing where no commit waits for a standby. */
export function commitsView(report: Report): HTMLElement | null {
  const models = report.analysis.commit_models ?? [];
  if (models.length === 0) return null;
  const { title, note } = report.sections.commits;
  return h(
    "article",
    { class: "devices" },
    h("h3", {}, title),
    h("p", { class: "footnote" }, note),
    scrolling(title, dataTable(COLUMNS, models)),
  );
}
