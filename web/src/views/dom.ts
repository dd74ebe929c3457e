/** Making elements. Text only ever goes in as text, so that no label of a user's is taken for HTML. */

type Child = Node | string | null | undefined | false;
type Attributes = Record<string, string | number | boolean | null | undefined>;

function fill<E extends Element>(element: E, attributes: Attributes, children: readonly Child[]): E {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    element.setAttribute(name, value === true ? "" : String(value));
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

/** A section of the page with its heading and, for who wants it, a line on what is shown. */
export function section(id: string, title: string, lead: Child, ...children: Child[]): HTMLElement {
  return h(
    "section",
    { id, "aria-labelledby": `${id}-title` },
    h("h2", { id: `${id}-title` }, title),
    lead && h("p", { class: "lead" }, lead),
    ...children,
  );
}

/** A box that scrolls sideways on a small screen, by keyboard too. */
export function scrolling(label: string, child: Node): HTMLElement {
  return h("div", { class: "scrolling", tabindex: 0, role: "region", "aria-label": label }, child);
}

/** "n/a" with the reason behind it. */
export function notAvailable(reason: string): HTMLElement {
  return h("span", { class: "na" }, `n/a: ${reason}`);
}
