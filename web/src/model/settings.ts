/** Settings side by side. */
import type { SettingRow } from "../format/report";

/** More variants than this are named in a cell rather than given a column. */
export const MAX_COLUMNS = 6;

/** Whether variants differ in it, or might, since some could not be read. Where a server is does not count. */
export function differs(row: SettingRow): boolean {
  return row.kind !== "place" && (row.cells.length > 1 || row.unread.length > 0);
}

/** The value for one variant: its text, or null where it is not known or does not apply. */
export function valueFor(row: SettingRow, variant: string): string | null {
  return row.cells.find((cell) => cell.variants.includes(variant))?.text ?? null;
}

/** "a, b, c and 12 more" */
export function shortList(names: readonly string[], most = 4): string {
  if (names.length <= most) return names.join(", ");
  return `${names.slice(0, most).join(", ")} and ${names.length - most} more`;
}
