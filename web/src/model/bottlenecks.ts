/** The order in which waits are shown. */
import type { WaitShare } from "../format/report";

/** Rarer than this on the mean, a wait is not shown. */
const SHOWN = 0.005;
const MOST = 20;

/** Clients first, then by kind of process; the commonest first in each. */
export function waitsByKind(waits: readonly WaitShare[]): WaitShare[] {
  const place = (share: WaitShare) => (share.kind === "client backend" ? "" : share.kind);
  return waits
    .filter((share) => share.processes >= SHOWN)
    .sort((a, b) => place(a).localeCompare(place(b)) || b.processes - a.processes)
    .slice(0, MOST);
}
