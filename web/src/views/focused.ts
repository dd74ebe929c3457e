/** From the trials in focus to their variants. */
import type { Report, ReportTrial } from "../format/report";
import type { Focus } from "../model/focus";
import type { Attention } from "../model/looks";

export function trialOf(report: Report, number: number): ReportTrial | undefined {
  return report.trials.find((trial) => trial.number === number);
}

/** Ids of the variants in focus, the left one first. */
export function focusedVariants(report: Report, focus: Focus): string[] {
  const numbers = focus.right === null ? [focus.left] : [focus.left, focus.right];
  return numbers.flatMap((number) => trialOf(report, number)?.variant ?? []);
}

/** What a reader looks at in a chart of all variants. */
export function attentionOf(report: Report, focus: Focus, pointed: string | null): Attention {
  const focused = focusedVariants(report, focus).map((id) => labelOf(report, id));
  return { pointed, focused, of: report.analysis.variants.length };
}

export function labelOf(report: Report, variant: string): string {
  return report.analysis.variants.find((each) => each.id === variant)?.label ?? variant;
}
