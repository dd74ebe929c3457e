// @vitest-environment happy-dom
import { expect, test } from "vitest";
import { h } from "../../src/views/dom";
import { type Column, dataTable, groupedTable } from "../../src/views/table";
import { bodyRows, cellsOf, texts } from "./cells";

interface Row {
  readonly name: string;
  readonly tps: number | null;
}

const COLUMNS: readonly Column<Row>[] = [
  { head: "Variant", cell: (row) => row.name },
  { head: "tps", isNumeric: true, cell: (row) => [String(row.tps), h("small", {}, " per s")] },
  { head: "Note", class: "muted", cell: () => "<b>text</b>", attributes: (row) => ({ title: row.name }) },
];
const ROWS: readonly Row[] = [
  { name: "disk", tps: 10 },
  { name: "memory", tps: null },
];

test("heads are column heads, the first column holds row heads, and figures stand under their head", () => {
  const table = dataTable(COLUMNS, ROWS, { caption: "Throughput", class: "figures" });
  expect(table.className).toBe("figures");
  expect(table.querySelector("caption")?.textContent).toBe("Throughput");
  const heads = [...table.querySelectorAll<HTMLTableCellElement>("thead th")];
  expect(heads.map((head) => [head.textContent, head.getAttribute("scope"), head.className])).toEqual([
    ["Variant", "col", ""],
    ["tps", "col", "num"],
    ["Note", "col", ""],
  ]);
  const [name, tps, note] = cellsOf(bodyRows(table)[0]);
  expect(name?.outerHTML).toBe('<th scope="row">disk</th>');
  expect(tps?.outerHTML).toBe('<td class="num">10<small> per s</small></td>');
  expect(note?.outerHTML).toBe('<td class="muted" title="disk">&lt;b&gt;text&lt;/b&gt;</td>');
});

test("one cell says over the rest of a row why it has no figures", () => {
  const table = dataTable(COLUMNS, ROWS, {
    missing: ({ tps }) => (tps === null ? { fromColumn: 1, reason: "not measured" } : null),
  });
  const [known, gap] = bodyRows(table);
  expect(cellsOf(known)).toHaveLength(3);
  expect(cellsOf(gap).map((cell) => [cell.textContent, cell.getAttribute("colspan")])).toEqual([
    ["memory", null],
    ["n/a: not measured", "2"],
  ]);
});

test("a table may have row heads in another column, or none, and no column heads", () => {
  const second = dataTable(COLUMNS, ROWS, { rowHead: 1 });
  expect(cellsOf(bodyRows(second)[0]).map((cell) => cell.tagName)).toEqual(["TD", "TH", "TD"]);
  const none = dataTable(COLUMNS, ROWS, { rowHead: null, hasHeads: false });
  expect(none.querySelector("thead")).toBeNull();
  expect(none.querySelector("th")).toBeNull();
});

test("groups stand under a head as wide as the table", () => {
  const table = groupedTable(COLUMNS, [
    { head: "first", rows: ROWS },
    { head: "second", rows: ROWS.slice(1) },
  ]);
  const [, second] = table.querySelectorAll("tbody");
  expect(second?.querySelector("tr")?.innerHTML).toBe('<th scope="rowgroup" colspan="3">second</th>');
  expect(texts(table).map(([name]) => name)).toEqual(["first", "disk", "memory", "second", "memory"]);
});
