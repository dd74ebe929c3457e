/** The heads of tables. */
import { h } from "./dom";

/** One head a column; over columns of figures it stands to the right, as they do. */
export function tableHead(
  heads: readonly string[],
  figures: readonly string[] = [],
): HTMLTableSectionElement {
  const cells = heads.map((head) => h("th", { scope: "col", class: figures.includes(head) && "num" }, head));
  return h("thead", {}, h("tr", {}, ...cells));
}
