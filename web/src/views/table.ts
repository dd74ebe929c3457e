/** Every table of the page is made here, from its columns and its rows. */
import { type Attributes, type Child, h, notAvailable } from "./dom";

/** What is in a cell or a head: text, elements, or several of them. */
export type Content = Child | readonly Child[];

/** A column. The first one of a table holds the heads of its rows, unless the table says otherwise. */
export interface Column<Row> {
  readonly head: Content;
  readonly cell: (row: Row) => Content;
  /** Figures are set to the right, and so is their head. */
  readonly isNumeric?: boolean;
  /** Class of every cell. */
  readonly class?: string;
  readonly headClass?: string;
  /** Attributes of one cell; a class here is taken in place of the column's. */
  readonly attributes?: (row: Row) => Attributes;
}

/** From which column on one cell says why a row has no figures. */
export interface MissingCells {
  readonly fromColumn: number;
  readonly reason: string;
}

export interface TableOptions<Row> {
  readonly class?: string;
  readonly caption?: string;
  /** The column that holds the heads of the rows; null where no column does. */
  readonly rowHead?: number | null;
  /** A table whose first column names what is in the others needs no heads. */
  readonly hasHeads?: boolean;
  readonly rowAttributes?: (row: Row) => Attributes;
  /** Null for a row of which all is known. */
  readonly missing?: (row: Row) => MissingCells | null;
}

/** Rows under a common head. */
export interface RowGroup<Row> {
  readonly head: Content;
  readonly rows: readonly Row[];
}

/** A table with one row for each of `rows`. */
export function dataTable<Row>(
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  options: TableOptions<Row> = {},
): HTMLTableElement {
  return table(columns, options, [h("tbody", {}, ...rows.map((row) => tableRow(columns, row, options)))]);
}

/** A table whose rows are in groups, each under a head as wide as the table. */
export function groupedTable<Row>(
  columns: readonly Column<Row>[],
  groups: readonly RowGroup<Row>[],
  options: TableOptions<Row> = {},
): HTMLTableElement {
  const bodies = groups.map((group) =>
    h(
      "tbody",
      {},
      h("tr", {}, h("th", { scope: "rowgroup", colspan: columns.length }, ...children(group.head))),
      ...group.rows.map((row) => tableRow(columns, row, options)),
    ),
  );
  return table(columns, options, bodies);
}

function table<Row>(
  columns: readonly Column<Row>[],
  { class: name, caption, hasHeads = true }: TableOptions<Row>,
  bodies: readonly HTMLTableSectionElement[],
): HTMLTableElement {
  return h(
    "table",
    { class: name },
    caption && h("caption", {}, caption),
    hasHeads &&
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          ...columns.map((column) =>
            h("th", { scope: "col", class: classes(column.headClass, column) }, ...children(column.head)),
          ),
        ),
      ),
    ...bodies,
  );
}

function tableRow<Row>(
  columns: readonly Column<Row>[],
  row: Row,
  { rowHead = 0, rowAttributes, missing }: TableOptions<Row>,
): HTMLTableRowElement {
  const gap = missing?.(row) ?? null;
  const known = gap === null ? columns : columns.slice(0, gap.fromColumn);
  const cells = known.map((column, place) => {
    const own = { class: classes(column.class, column), ...column.attributes?.(row) };
    return place === rowHead
      ? h("th", { ...own, scope: "row" }, ...children(column.cell(row)))
      : h("td", own, ...children(column.cell(row)));
  });
  return h(
    "tr",
    rowAttributes?.(row) ?? {},
    ...cells,
    gap && h("td", { colspan: columns.length - gap.fromColumn }, notAvailable(gap.reason)),
  );
}

function classes(own: string | undefined, { isNumeric }: { readonly isNumeric?: boolean }): string | null {
  return [own, isNumeric && "num"].filter(Boolean).join(" ") || null;
}

function children(content: Content): readonly Child[] {
  return isSeveral(content) ? content : [content];
}

function isSeveral(content: Content): content is readonly Child[] {
  return Array.isArray(content);
}
