/** The colours of variants and of lines, by their names in the style sheet. */

/** Eight hues, then the same in a darker shade. */
export const PALETTE = [
  ...(["c-1", "c-2", "c-3", "c-4", "c-5", "c-6", "c-7", "c-8"] as const),
  ...(["c-9", "c-10", "c-11", "c-12", "c-13", "c-14", "c-15", "c-16"] as const),
] as const;
/** Hues of the palette. */
export const HUES = 8;
/** Shades of one hue, for percentiles. */
export const SHADES = ["shade-1", "shade-2", "shade-3"] as const;

export type ColourName = (typeof PALETTE)[number] | (typeof SHADES)[number] | "ink" | "bad";

/** The name of a place's colour in the palette, which begins again at its end. */
export function paletteColour(place: number): ColourName {
  return PALETTE[place % PALETTE.length] ?? "ink";
}
