/** The colours of variants and of lines, by their names in the style sheet. */

export const PALETTE = ["c-1", "c-2", "c-3", "c-4", "c-5", "c-6", "c-7", "c-8"] as const;
/** Shades of one hue, for percentiles. */
export const SHADES = ["shade-1", "shade-2", "shade-3"] as const;

export type ColourName = (typeof PALETTE)[number] | (typeof SHADES)[number] | "grey" | "bad";

/** The name of a place's colour in the palette, which begins again at its end; null is grey. */
export function paletteColour(place: number | null): ColourName {
  return place === null ? "grey" : (PALETTE[place % PALETTE.length] ?? "grey");
}
