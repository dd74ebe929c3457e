/** What stands in a key before a name: the line, marker or band as it is drawn in the chart. */
import type { Swatch } from "../model/looks";

/** Size of a swatch, in pixels. A line is long enough for the longest dash and a few dots. */
export const SWATCH = { width: 30, height: 12 };
const MARKER_BOX = 10;
const SQUARE = 12;

/** An element of SVG, for those who make it in a document and for those who write it. */
export interface Shape {
  readonly tag: "line" | "path" | "rect";
  readonly attributes: Readonly<Record<string, string | number>>;
}

/** The width of a swatch, which is a line's only where there is one. */
export function swatchWidth({ line }: Swatch): number {
  return line ? SWATCH.width : SQUARE;
}

/** The shapes of a swatch. `paint` is the colour, `ground` that of hollow markers. */
export function swatchShapes(swatch: Swatch, paint: string, ground: string): Shape[] {
  const { line, marker, isArea } = swatch;
  const width = swatchWidth(swatch);
  const middle = SWATCH.height / 2;
  const shapes: Shape[] = [];
  if (isArea)
    shapes.push({
      tag: "rect",
      attributes: { x: 0, y: 0, width: SQUARE, height: SQUARE, rx: 2, fill: paint },
    });
  if (line)
    shapes.push({
      tag: "line",
      attributes: {
        ...{ x1: 0, x2: width, y1: middle, y2: middle },
        ...{ stroke: paint, "stroke-width": line.width },
        ...(line.dash.length > 0 ? { "stroke-dasharray": line.dash.join(" ") } : {}),
      },
    });
  if (marker) {
    const zoom = marker.size / MARKER_BOX;
    const place = `translate(${(width - marker.size) / 2} ${middle - marker.size / 2}) scale(${zoom})`;
    shapes.push({
      tag: "path",
      attributes: {
        ...{ d: marker.outline, transform: place, fill: marker.isHollow ? ground : paint },
        ...(marker.isHollow ? { stroke: paint, "stroke-width": 1.75 / zoom } : {}),
      },
    });
  }
  if (swatch.opacity === 1) return shapes;
  return shapes.map(({ tag, attributes }) => ({
    tag,
    attributes: { ...attributes, opacity: swatch.opacity },
  }));
}
