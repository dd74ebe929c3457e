/** The table of the catalogue, which the server has written: this sorts and filters it, and puts changed rows in place. */
import { type Cell, compareCells, matches, type Order } from "../model/catalogue";
import { h } from "./dom";

interface Sorting {
  readonly column: number;
  readonly order: Order;
}

interface Row {
  readonly element: HTMLTableRowElement;
  /** As the server wrote it. */
  readonly written: string;
  readonly cells: readonly Cell[];
  readonly text: string;
}

export class CatalogueView {
  readonly #body: HTMLTableSectionElement;
  readonly #heads: readonly HTMLTableCellElement[];
  readonly #filter = h("input", {
    type: "search",
    id: "filter",
    autocomplete: "off",
    placeholder: "any words",
  });
  readonly #shown = h("output", { for: "filter" });
  #rows = new Map<string, Row>();
  /** The server's order until a column is chosen. */
  #sorting: Sorting | null = null;

  constructor(private readonly page: Document) {
    this.#body = found(page, "tbody");
    this.#heads = [...page.querySelectorAll<HTMLTableCellElement>("thead th")];
    this.#heads.forEach((head, column) => {
      if (head.dataset["order"]) this.#makeSortable(head, column);
    });
    found(page, ".controls").append(h("label", { class: "filter" }, "Filter ", this.#filter), this.#shown);
    this.#filter.addEventListener("input", () => this.#show());
    this.#filter.addEventListener("keydown", (event) => {
      if (event.key === "Enter") event.preventDefault(); // it does not compare
    });
    this.#body.addEventListener("change", () => this.#count());
    this.#read(rowsOf(this.page));
    this.#recall();
    this.#show();
  }

  /** Shows the catalogue of a newer page. A row that has not changed stays as it is, with its tick and focus. */
  replace(newer: Document): void {
    found(this.page, "#count").textContent = found(newer, "#count").textContent;
    for (const id of ["#none", "#bundles"]) found(this.page, id).hidden = found(newer, id).hidden;
    this.#read(rowsOf(newer));
    this.#show();
  }

  /** Says that the server does not answer; nothing when it does. */
  connection(text: string): void {
    const notice = found(this.page, "#connection");
    notice.hidden = text === "";
    if (notice.textContent !== text) notice.textContent = text;
  }

  #read(elements: readonly HTMLTableRowElement[]): void {
    const before = this.#rows;
    this.#rows = new Map();
    for (const element of elements) {
      const key = element.dataset["key"] ?? "";
      const written = element.outerHTML;
      const old = before.get(key);
      const ours = element.ownerDocument === this.page ? element : this.page.importNode(element, true);
      const row = old?.written === written ? old : read(ours, written);
      if (old && old !== row) takeOver(old.element, row.element);
      this.#rows.set(key, row);
      before.delete(key);
    }
    for (const { element } of before.values()) element.remove();
  }

  #show(): void {
    const rows = [...this.#rows.values()];
    const { column = 0, order = "ascending" } = this.#sorting ?? {};
    if (this.#sorting)
      rows.sort((left, right) => compareCells(cell(left, column), cell(right, column), order));
    for (const row of rows) row.element.hidden = !matches(row.text, this.#filter.value);
    rows.forEach(({ element }, place) => {
      const there = this.#body.children[place];
      if (there !== element) this.#body.insertBefore(element, there ?? null);
    });
    while (this.#body.children.length > rows.length) this.#body.lastElementChild?.remove();
    this.#heads.forEach((head, place) => {
      if (place === column && this.#sorting) head.setAttribute("aria-sort", order);
      else head.removeAttribute("aria-sort");
    });
    this.#count();
    this.#keep();
  }

  #count(): void {
    const rows = [...this.#rows.values()];
    const shown = rows.filter(({ element }) => !element.hidden).length;
    const ticked = rows.filter(
      ({ element }) => element.querySelector<HTMLInputElement>("input")?.checked,
    ).length;
    const parts = [
      shown < rows.length && `${shown.toLocaleString("en")} of ${rows.length.toLocaleString("en")} shown`,
      ticked > 0 && `${ticked.toLocaleString("en")} ticked`,
    ];
    this.#shown.textContent = parts.filter(Boolean).join(", ");
  }

  #makeSortable(head: HTMLTableCellElement, column: number): void {
    const first: Order = head.dataset["order"] === "descending" ? "descending" : "ascending";
    const button = h("button", { type: "button", class: "sorting" }, head.textContent);
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const { column: now, order } = this.#sorting ?? {};
      this.#sorting = {
        column,
        order: now !== column ? first : order === "ascending" ? "descending" : "ascending",
      };
      this.#show();
    });
  }

  /** Filter and order are in the address, so that they are still there on the way back from a report. */
  #keep(): void {
    const kept = new URLSearchParams();
    if (this.#filter.value) kept.set("filter", this.#filter.value);
    if (this.#sorting) kept.set("sort", `${this.#sorting.column}-${this.#sorting.order}`);
    const { location, history } = this.page.defaultView ?? {};
    const hash = kept.size > 0 ? `#${kept}` : "";
    if (location && history && location.hash !== hash)
      history.replaceState(null, "", hash || location.pathname + location.search);
  }

  #recall(): void {
    const kept = new URLSearchParams(this.page.defaultView?.location.hash.slice(1));
    this.#filter.value = kept.get("filter") ?? "";
    const [column = "", order] = kept.get("sort")?.split("-") ?? [];
    const isOrder = order === "ascending" || order === "descending";
    if (isOrder && this.#heads[Number(column)]?.dataset["order"])
      this.#sorting = { column: Number(column), order };
  }
}

function read(element: HTMLTableRowElement, written: string): Row {
  const cells = [...element.querySelectorAll<HTMLElement>("td")].map((each) => ({
    text: textOf(each),
    value: each.dataset["value"],
  }));
  return { element, written, cells, text: cells.map(({ text }) => text).join(" ") };
}

function textOf(element: HTMLElement): string {
  return element.textContent?.trim() ?? "";
}

function rowsOf(page: Document): HTMLTableRowElement[] {
  return [...page.querySelectorAll<HTMLTableRowElement>("tbody tr")];
}

function cell(row: Row, column: number): Cell {
  return row.cells[column] ?? { text: "", value: undefined };
}

/** The tick and the focus of a row that is replaced. */
function takeOver(old: HTMLTableRowElement, row: HTMLTableRowElement): void {
  const focusable = (of: HTMLTableRowElement) => [...of.querySelectorAll<HTMLElement>("input, a")];
  const [ticked, box] = [old.querySelector("input"), row.querySelector("input")];
  if (ticked && box) box.checked = ticked.checked;
  const { activeElement } = old.ownerDocument;
  const focused = activeElement instanceof HTMLElement ? focusable(old).indexOf(activeElement) : -1;
  old.replaceWith(row);
  focusable(row)[focused]?.focus();
}

function found<E extends HTMLElement>(page: Document, selector: string): E {
  const element = page.querySelector<E>(selector);
  if (!element) throw new Error(`the page has no ${selector}`);
  return element;
}
