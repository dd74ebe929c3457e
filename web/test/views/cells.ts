/** What is in the tables of a view, as it is read. */

/** The cells of a row: heads and data. */
export function cellsOf(row: Element | undefined): HTMLTableCellElement[] {
  return [...(row?.querySelectorAll<HTMLTableCellElement>("th, td") ?? [])];
}

/** The rows below the heads. */
export function bodyRows(element: ParentNode): HTMLTableRowElement[] {
  return [...element.querySelectorAll<HTMLTableRowElement>("tbody tr")];
}

/** The text of every cell below the heads, row by row. */
export function texts(element: ParentNode): string[][] {
  return bodyRows(element).map((row) => cellsOf(row).map((cell) => cell.textContent));
}

/** The table within the scrolling box of that label. */
export function tableOf(element: ParentNode, label: string): HTMLElement {
  const found = element.querySelector<HTMLElement>(`[aria-label="${label}"] table`);
  if (!found) throw new Error(`no table "${label}"`);
  return found;
}
