/** From the trials in focus to their variants. */
import type { Report, ReportTrial } from "../format/report";
import type { Focus } from "../model/focus";

export function trialOf(report: Report, number: number): ReportTrial | undefined {
  return report.trials.find((trial) => trial.number === number);
}

/** Ids of the variants in focus, the left one first. */
export function focusedVariants(report: Report, focus: Focus): string[] {
  const numbers = focus.right === null ? [focus.left] : [focus.left, focus.right];
  return numbers.flatMap((number) => trialOf(report, number)?.variant ?? []);
}

export function labelOf(report: Report, variant: string): string {
  return report.analysis.variants.find((each) => each.id === variant)?.label ?? variant;
}
