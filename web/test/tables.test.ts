// @vitest-environment happy-dom
import { expect, test } from "vitest";
import type { PageTable } from "../src/format/report";
import { ownTables, storageTables } from "../src/views/tables";
import { report } from "./sample";

const table: PageTable = {
  id: "outages",
  title: "Faults and failover",
  note: "Without writes is the clients' own time.",
  place: "storage",
  heads: ["Variant", "Without writes"],
  rows: [
    ["FIRST 1 (a)", "697 ms"],
    ["FIRST 1 (b)", "<b>710 ms</b>"],
  ],
};

test("without tables nothing is shown", () => {
  expect(storageTables(report({}))).toEqual([]);
  expect(ownTables(report({}))).toEqual([]);
});

test("title, note, heads and cells are shown as text, each table in its place", () => {
  const own = { ...table, id: "new", title: "New", place: "own" as const };
  const shown = report({ tables: [table, own] });
  const [inStorage, ...others] = storageTables(shown);
  expect(others).toEqual([]);
  expect(inStorage?.querySelector("h3")?.textContent).toBe("Faults and failover");
  expect(inStorage?.textContent).toContain(table.note);
  expect([...(inStorage?.querySelectorAll("thead th") ?? [])].map((head) => head.textContent)).toEqual(
    table.heads,
  );
  const rows = [...(inStorage?.querySelectorAll("tbody tr") ?? [])].map((row) =>
    [...row.children].map((cell) => cell.textContent),
  );
  expect(rows).toEqual(table.rows);
  const [section] = ownTables(shown);
  expect(section?.id).toBe("new");
  expect(section?.querySelector("h2")?.textContent).toBe("New");
});
