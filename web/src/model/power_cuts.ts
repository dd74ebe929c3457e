/** Which power cut of a report has the time line that is shown. */
import type { CommitTimeline, PowerCut, Report } from "../format/report";
import { number } from "./units";

/** The cut that lost the most commits, of those whose ledger tells when they were acknowledged. */
export function worstCut(report: Report): WorstCut | null {
  const cuts = report.analysis.variants.flatMap(({ label, durability }) =>
    (durability?.examples ?? []).flatMap((cut) =>
      cut.timeline ? [{ variant: label, cut, timeline: cut.timeline, lost: sum(cut.timeline.lost) }] : [],
    ),
  );
  return cuts.reduce<WorstCut | null>((worst, one) => (worst && worst.lost >= one.lost ? worst : one), null);
}

export interface WorstCut {
  readonly variant: string;
  readonly cut: PowerCut;
  readonly timeline: CommitTimeline;
  readonly lost: number;
}

/** For a time line of it. */
export function timelineTitle({ variant, cut, lost }: WorstCut): string {
  return `Acknowledged commits before cut ${cut.number} of ${variant}: ${number(lost)} were lost`;
}

const sum = (counts: readonly number[]) => counts.reduce((all, one) => all + one, 0);
