/** What the catalogue of `plinth serve` knows without its page: the order of its rows, and which a filter shows. */

export type Order = "ascending" | "descending";

/** What a row says in a column: text, and the value of a figure; an empty value is of a figure that is not known. */
export interface Cell {
  readonly text: string;
  readonly value: string | undefined;
}

const byText = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

/** Compares two cells of a column. What is not known comes last in either order. */
export function compareCells(left: Cell, right: Cell, order: Order): number {
  const sign = order === "ascending" ? 1 : -1;
  if (left.value === undefined || right.value === undefined)
    return sign * byText.compare(left.text, right.text);
  if (left.value === "" || right.value === "") return Number(left.value === "") - Number(right.value === "");
  return sign * (Number(left.value) - Number(right.value));
}

/** Whether a text has every word of a filter, in any order and case. */
export function matches(text: string, filter: string): boolean {
  const within = text.toLowerCase();
  return filter
    .toLowerCase()
    .split(/\s+/)
    .every((word) => within.includes(word));
}
