// Looks at a page from inside. Each function is sent to the browser on its own: it may use nothing outside of itself.

/** Each row of the ranking, and what is wrong with its bar. */
export function ranking() {
  return [...document.querySelectorAll(".ranking tbody tr")].map((row) => {
    const svg = row.querySelector(".bar svg");
    const variant = [...row.querySelector("th").childNodes].find(
      (node) => node.nodeType === Node.TEXT_NODE,
    ).textContent;
    const measured = row.querySelector(".na") === null;
    const hatched = [...svg.querySelectorAll("rect")].some((rect) =>
      rect.getAttribute("fill")?.startsWith("url("),
    );
    const grade = row.querySelector(".badge").classList;
    const safe = grade.contains("keeps") || grade.contains("assumed");
    const problem =
      measured &&
      !(svg.querySelector(".fill")?.getBoundingClientRect().width > 0) &&
      row.offsetParent !== null
        ? "no bar"
        : measured && hatched === safe
          ? `safe is ${safe}, but hatched is ${hatched}`
          : null;
    return { variant, hatched, trials: svg.querySelectorAll(".trial").length, problem };
  });
}

/** Each line of the tables beside the published study: its figures, and which marks it has on the axis. */
export function published() {
  return [...document.querySelectorAll("table.published")].map((table) =>
    [...table.querySelectorAll("tbody tr")].map((row) => {
      const drawing = row.querySelector("svg");
      const circles = [...drawing.querySelectorAll("circle")];
      const places = circles.map((circle) => Number.parseFloat(circle.getAttribute("cx")));
      return {
        name: row.querySelector("th").textContent,
        cells: [...row.querySelectorAll("td:not(.marks)")].map((cell) => cell.textContent),
        marks: [...new Set(circles.map((circle) => circle.classList[0]))],
        outside: places.some((place) => !(place >= 0 && place <= 100)),
      };
    }),
  );
}

/** Texts of one row of the ranking that stand over one another, such as a verdict over a badge. */
export function rankingOverlaps() {
  const found = [];
  for (const row of document.querySelectorAll(".ranking tbody tr")) {
    if (row.offsetParent === null) continue;
    const texts = [];
    const walker = document.createTreeWalker(row, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      if (walker.currentNode.textContent.trim() === "") continue;
      const range = document.createRange();
      range.selectNodeContents(walker.currentNode);
      for (const box of range.getClientRects())
        texts.push({ text: walker.currentNode.textContent, node: walker.currentNode, box });
    }
    texts.forEach((a, i) => {
      for (const b of texts.slice(i + 1)) {
        const across = Math.min(a.box.right, b.box.right) - Math.max(a.box.left, b.box.left);
        const down = Math.min(a.box.bottom, b.box.bottom) - Math.max(a.box.top, b.box.top);
        if (a.node !== b.node && across > 1 && down > 3)
          found.push(`ranking: "${a.text}" stands over "${b.text}"`);
      }
    });
  }
  return found;
}

/** Tables and texts that need to be scrolled to be seen: `of` says where that may not be. */
export function scrolledAway(of) {
  return [...document.querySelectorAll(of)]
    .filter((box) => box.offsetParent !== null && box.scrollWidth > box.clientWidth + 1)
    .map(
      (box) => `"${box.getAttribute("aria-label")}" is cut off by ${box.scrollWidth - box.clientWidth} px`,
    );
}

/** What stands out of the sheet to the right; nobody can scroll there. */
export function outOfSheet() {
  const right = document.body.getBoundingClientRect().right;
  return [...document.querySelectorAll("main td, main th, main p, main pre, main .chart, main dd")]
    .filter((each) => each.getClientRects().length > 0 && each.getBoundingClientRect().right > right + 1)
    .map((each) => `"${each.textContent.slice(0, 40)}" stands out of the sheet`);
}

/** Charts whose drawing is not of the size of their place. */
export function ofAnotherSize() {
  return [...document.querySelectorAll(".chart")]
    .filter((chart) => chart.offsetParent !== null)
    .filter((chart) => {
      const drawing = chart.querySelector("svg")?.getBoundingClientRect();
      return (
        !drawing ||
        Math.abs(drawing.width - chart.clientWidth) > 2 ||
        Math.abs(drawing.height - chart.clientHeight) > 2
      );
    })
    .map((chart) => `chart "${chart.getAttribute("aria-label")}" is not drawn for the sheet`);
}

/** Heads of columns that stand otherwise than the figures below them. */
export function headsAside() {
  const found = new Set();
  for (const table of document.querySelectorAll("table")) {
    const heads = table.tHead ? [...table.tHead.rows[0].cells] : [];
    for (const cell of table.querySelectorAll("tbody td.num")) {
      const head = heads[cell.cellIndex];
      if (head === undefined || cell.offsetParent === null) continue;
      const [above, below] = [head, cell].map((each) => getComputedStyle(each).textAlign);
      if (above !== below) found.add(`the head "${head.textContent}" is set ${above}, its figures ${below}`);
    }
  }
  return [...found];
}

/** The rows of the section on endurance, as they are read. */
export function written() {
  return [...document.querySelectorAll("#endurance tbody tr")].map((row) =>
    [...row.cells].map((cell) => cell.textContent),
  );
}

/** The rows of each table that a labelled region holds, by its label. */
export function tables() {
  const found = [...document.querySelectorAll(".scrolling > table")].map((table) => [
    table.parentElement.getAttribute("aria-label"),
    [...table.tBodies[0].rows].map((row) => [...row.cells].map((cell) => cell.textContent)),
  ]);
  return Object.fromEntries(found);
}

/** Where the synced cursor stands in the charts of the time series. */
export function cursorState() {
  const visible = (element) => element.offsetParent !== null;
  const charts = [...document.querySelectorAll("#seconds .chart")].filter(visible);
  const lines = charts.map((chart) => chart.querySelector(".cursor")).filter((line) => line && !line.hidden);
  const left = (line) => line.getBoundingClientRect().left - line.parentElement.getBoundingClientRect().left;
  return {
    charts: charts.length,
    lines: lines.length,
    times: [...new Set(lines.map((line) => line.dataset.t))],
    offsets: [...new Set(lines.map((line) => Math.round(left(line))))],
    silent: charts
      .filter((chart) =>
        [...chart.parentElement.querySelectorAll("output")].every((output) => output.textContent === ""),
      )
      .map((chart) => chart.getAttribute("aria-label")),
  };
}

/** What stands for each variant in the keys and tables about all of them: by section, its label and the colour of its swatch. */
export function swatches() {
  const sections = ["#ranking table", "#trials .key", "#latency .key", "#latency table", "#trade-offs .key"];
  const found = sections.map((of) => [
    of,
    [...document.querySelectorAll(`${of} .swatch`)]
      .filter((swatch) => swatch.closest("td, th, li").getClientRects().length > 0)
      .map((swatch) => {
        const shape = swatch.firstElementChild;
        const { stroke, fill } = getComputedStyle(shape);
        const painted = shape.getAttribute("stroke") === null ? fill : stroke;
        return { label: swatch.nextSibling.textContent, colour: painted };
      }),
  ]);
  return Object.fromEntries(found);
}

/** How opaque each line of a section's chart is drawn. */
export function opacities(of) {
  return [...document.querySelectorAll(`${of} .chart svg path[stroke]`)]
    .filter((path) => path.getAttribute("fill") === "none" || path.getAttribute("fill") === "transparent")
    .map((path) => Number(path.getAttribute("stroke-opacity") ?? 1));
}

/** The names of the panes of one side, and all that is drawn in them. */
export function panes(side) {
  const found = [...document.querySelectorAll(`.pane:${side === "left" ? "first" : "last"}-child`)];
  const paths = (pane) =>
    [...pane.querySelectorAll(".chart:not([hidden]) svg path")].map((path) => path.getAttribute("d"));
  return {
    names: [...new Set(found.map((pane) => pane.querySelector(".pane-name").textContent))],
    drawing: found.flatMap(paths).join("|"),
  };
}

/** Text that stands out of its chart, over other text of its chart, or out of a box that hides it. */
export function clippedText() {
  const found = [];
  for (const svg of document.querySelectorAll(".chart svg")) {
    if (svg.parentElement.offsetParent === null) continue;
    const chart = svg.closest(".chart").getAttribute("aria-label");
    const outer = svg.getBoundingClientRect();
    const boxes = [...svg.querySelectorAll("text")]
      .filter((text) => text.textContent.trim() !== "")
      .map((text) => ({ text: text.textContent, box: text.getBoundingClientRect() }));
    for (const { text, box } of boxes) {
      const out = Math.max(
        outer.left - box.left,
        box.right - outer.right,
        outer.top - box.top,
        box.bottom - outer.bottom,
      );
      if (out > 1) found.push(`"${text}" stands ${Math.round(out)} px out of chart "${chart}"`);
    }
    boxes.forEach((a, i) => {
      for (const b of boxes.slice(i + 1)) {
        const across = Math.min(a.box.right, b.box.right) - Math.max(a.box.left, b.box.left);
        const down = Math.min(a.box.bottom, b.box.bottom) - Math.max(a.box.top, b.box.top);
        if (across > 1 && down > 2) found.push(`"${a.text}" and "${b.text}" overlap in chart "${chart}"`);
      }
    });
  }
  for (const element of document.querySelectorAll("body *")) {
    if (!(element instanceof HTMLElement) || element.offsetParent === null) continue;
    const { overflowX, textOverflow } = getComputedStyle(element);
    const hides = overflowX === "hidden" || overflowX === "clip" || textOverflow === "ellipsis";
    if (hides && element.scrollWidth > element.clientWidth + 1 && !element.closest(".chart")) {
      found.push(`"${element.textContent.slice(0, 40)}" is cut off`);
    }
    const outer = element.closest(".scrolling, pre, nav, .chart, .skip");
    if (outer === null && element.getBoundingClientRect().right > document.documentElement.clientWidth + 1) {
      found.push(`"${element.textContent.slice(0, 40)}" stands out of the window`);
    }
  }
  return [...new Set(found)];
}

/** Text with less contrast than WCAG 2.2 asks for (4.5, for large text 3). */
export function lowContrast() {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  canvas.canvas.width = canvas.canvas.height = 1;
  const paint = (layers) => {
    for (const layer of layers) {
      canvas.fillStyle = layer;
      canvas.fillRect(0, 0, 1, 1);
    }
    return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const luminance = (rgb) => {
    const [r, g, b] = rgb.map((c) =>
      c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4,
    );
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const layers = new Map(); // one list for all elements below the same backgrounds
  const backgrounds = (element) => {
    if (element === null) return ["white"];
    if (!layers.has(element)) {
      const behind = backgrounds(element.parentElement);
      const own = getComputedStyle(element).backgroundColor;
      layers.set(element, own === "rgba(0, 0, 0, 0)" ? behind : [...behind, own]);
    }
    return layers.get(element);
  };
  const measured = new Map();
  const contrastOf = (colour, behind) => {
    const key = [...behind, colour].join();
    if (!measured.has(key)) {
      const [a, b] = [luminance(paint([...behind, colour])), luminance(paint(behind))];
      measured.set(key, (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05));
    }
    return measured.get(key);
  };
  const found = new Map();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    const drawn =
      element.closest("script, noscript, option, .skip") === null && element.getClientRects().length > 0;
    if (!drawn || walker.currentNode.textContent.trim() === "") continue;
    const style = getComputedStyle(element);
    const behind = backgrounds(element);
    const colour = element instanceof SVGElement ? style.fill : style.color;
    const contrast = contrastOf(colour, behind);
    const large = Number.parseFloat(style.fontSize) >= 24;
    if (contrast < (large ? 3 : 4.5)) {
      found.set(
        `${colour} on ${behind.at(-1)}`,
        `contrast ${contrast.toFixed(2)} of "${walker.currentNode.textContent.trim().slice(0, 40)}"`,
      );
    }
  }
  return [...found.values()];
}
