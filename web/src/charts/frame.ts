/** A chart that stands alone: its title and key above it, in one SVG. */
import { format } from "echarts/core";
import type { KeyEntry } from "../model/looks";
import { type Shape, swatchShapes, swatchWidth } from "./swatch";
import type { Theme } from "./theme";

/** In pixels, of every chart that stands alone. */
export const WIDTH = 860;
const MARGIN = 24;
const TITLE_PX = 16;
const KEY_PX = 12;
const ROW = 20;
const NOTICE_PX = 10;
const NOTICE_ROW = 14;
/** Letters of a label at most; longer ones would leave no room for others. */
const MOST_LETTERS = 70;
/** Mean width of a letter, in parts of the size of the type; a little more than it is. */
const LETTER = 0.6;

export interface Framed {
  readonly title: string;
  readonly key: readonly KeyEntry[];
  /** The chart, WIDTH wide. */
  readonly svg: string;
  readonly height: number;
  /** What must stand below every chart of the report. */
  readonly notice?: string | undefined;
}

/** The whole SVG document. A key of one entry says nothing and is left out. */
export function framed({ title, key, svg, height, notice }: Framed, theme: Theme): string {
  const rows = key.length > 1 ? keyRows(key) : [];
  const top = MARGIN + TITLE_PX + 10;
  const head = top + rows.length * ROW + 4;
  const below = noticeLines(notice ?? "");
  const whole = head + height + below.length * NOTICE_ROW + (below.length > 0 ? 8 : 0);
  const texts = rows.flatMap((row, at) => row.map((entry) => keyEntry(entry, top + at * ROW, theme)));
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${whole}" viewBox="0 0 ${WIDTH} ${whole}" role="img" font-family="${format.encodeHTML(theme.font)}">`,
    `<title>${format.encodeHTML(title)}</title>`,
    `<rect width="100%" height="100%" fill="${theme.paper}"/>`,
    text(
      cut(title, (WIDTH - 2 * MARGIN) / (TITLE_PX * LETTER)),
      MARGIN,
      MARGIN + TITLE_PX / 2 + 4,
      TITLE_PX,
      theme.ink,
    ),
    ...texts,
    `<svg y="${head}" width="${WIDTH}" height="${height}">${svg}</svg>`,
    ...below.map((line, at) =>
      text(line, MARGIN, head + height + (at + 1) * NOTICE_ROW - 4, NOTICE_PX, theme.muted),
    ),
    "</svg>",
  ].join("\n");
}

/** A text in lines that fit between the margins, broken at spaces. */
function noticeLines(notice: string): string[] {
  const most = Math.floor((WIDTH - 2 * MARGIN) / (NOTICE_PX * LETTER));
  const lines: string[] = [];
  for (const word of notice.split(" ").filter(Boolean)) {
    const longer = `${lines.at(-1) ?? ""} ${word}`.trim();
    if (lines.length > 0 && longer.length <= most) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines;
}

interface PlacedEntry extends KeyEntry {
  readonly x: number;
}

/** Between a swatch and its label, and between entries. */
const GAP = 6;
const ENTRY_GAP = 18;

/** Entries next to one another, in as many rows as they take. */
function keyRows(key: readonly KeyEntry[]): PlacedEntry[][] {
  const rows: PlacedEntry[][] = [[]];
  let x = MARGIN;
  for (const { label, swatch } of key) {
    const shown = cut(label, MOST_LETTERS);
    const width = swatchWidth(swatch) + GAP + shown.length * KEY_PX * LETTER + ENTRY_GAP;
    if (x > MARGIN && x + width > WIDTH - MARGIN) {
      rows.push([]);
      x = MARGIN;
    }
    rows.at(-1)?.push({ label: shown, swatch, x });
    x += width;
  }
  return rows;
}

function keyEntry({ label, swatch, x }: PlacedEntry, y: number, theme: Theme): string {
  const shapes = swatchShapes(swatch, theme.colours[swatch.colour], theme.paper).map(written).join("");
  const drawing = `<g transform="translate(${x} ${y + 3})">${shapes}</g>`;
  return drawing + text(label, x + swatchWidth(swatch) + GAP, y + 13, KEY_PX, theme.muted);
}

function written({ tag, attributes }: Shape): string {
  const all = Object.entries(attributes).map(([name, value]) => `${name}="${value}"`);
  return `<${tag} ${all.join(" ")}/>`;
}

function text(content: string, x: number, y: number, size: number, colour: string): string {
  return `<text x="${x}" y="${y}" font-size="${size}" fill="${colour}">${format.encodeHTML(content)}</text>`;
}

function cut(label: string, letters: number): string {
  const all = [...label];
  return all.length > letters ? `${all.slice(0, Math.floor(letters) - 1).join("")}…` : label;
}
