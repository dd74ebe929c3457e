/** Making elements. Text only ever goes in as text, so that no label of a user's is taken for HTML. */

export type Child = Node | string | null | undefined | false;
export type Attributes = Record<string, string | number | boolean | null | undefined>;

function fill<E extends Element>(element: E, attributes: Attributes, children: readonly Child[]): E {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    // A policy without inline styles forbids the attribute; what it says may be set.
    if (name === "style" && element instanceof HTMLElement) element.style.cssText = String(value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(
    ...children.filter(
      (child): child is Node | string => child !== null && child !== undefined && child !== false,
    ),
  );
  return element;
}

/** An HTML element. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  return fill(document.createElement(tag), attributes, children);
}

/** An SVG element. */
export function svg<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): SVGElementTagNameMap[K] {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

/** On a small screen only what answers the question is open at first: the rest would be many screens long. */
const SMALL_SCREEN = "(max-width: 44rem)";
const OPEN_ON_SMALL_SCREENS = ["scaling", "ranking"];

/** A section of the page, to be folded by its heading, and with a line on what is shown for who wants it. */
export function section(id: string, title: string, lead: Child, ...children: Child[]): HTMLElement {
  return h(
    "section",
    { id, "aria-labelledby": `${id}-title` },
    h(
      "details",
      { class: "fold", open: OPEN_ON_SMALL_SCREENS.includes(id) || !matchMedia(SMALL_SCREEN).matches },
      h("summary", {}, h("h2", { id: `${id}-title` }, title)),
      lead && h("p", { class: "lead" }, lead),
      ...children,
    ),
  );
}

/** Opens a section that is folded. */
export function openedSection(section: Element): void {
  for (const fold of section.querySelectorAll<HTMLDetailsElement>(":scope > .fold")) fold.open = true;
}

/** On paper every section is open; afterwards they are as they were. The details within them stay closed. */
window.addEventListener("beforeprint", () => {
  for (const fold of document.querySelectorAll<HTMLDetailsElement>(".fold:not([open])")) {
    fold.open = true;
    fold.dataset.closed = "";
  }
});
window.addEventListener("afterprint", () => {
  for (const fold of document.querySelectorAll<HTMLDetailsElement>(".fold[data-closed]")) {
    fold.open = false;
    delete fold.dataset.closed;
  }
});

/** A box that scrolls sideways on a small screen, by keyboard too. */
export function scrolling(label: string, child: Node): HTMLElement {
  return h("div", { class: "scrolling", tabindex: 0, role: "region", "aria-label": label }, child);
}

/** "n/a" with the reason behind it. */
export function notAvailable(reason: string): HTMLElement {
  return h("span", { class: "na" }, `n/a: ${reason}`);
}
