/** How each variant and each curve of a sweep is drawn: the same in every chart, key and table of a page. */
import type { ScalingCurve, Sweep, VariantResult } from "../format/report";
import { type ColourName, HUES, PALETTE, paletteColour } from "./colours";

/** Colour, dash and marker of a variant or of a curve. No two of a page have all three in common. */
export interface Look {
  readonly colour: ColourName;
  /** Of dash and marker; 0 is a whole line with circles. */
  readonly style: number;
  /** An A/A twin has the colour and the marker of the variant that it doubles. */
  readonly isTwin: boolean;
}

/** What the looks depend on. */
export interface Drawn {
  readonly variants: readonly Pick<VariantResult, "id" | "label" | "is_baseline" | "is_aa_twin">[];
  readonly sweep: Pick<Sweep, "factors" | "curves"> | null;
}

export interface Looks {
  /** By id. */
  readonly variants: ReadonlyMap<string, Look>;
  /** In the order of the sweep's curves. */
  readonly curves: readonly Look[];
}

export const FIRST_LOOK: Look = { colour: paletteColour(0), style: 0, isTwin: false };
/** Of the only curve of a sweep, whose points have the colours of their variants. */
const NEUTRAL: Look = { colour: "ink", style: 0, isTwin: false };

/** The look at a place: colours first, dashes and markers where the hues begin again. */
export function lookAt(place: number): Look {
  return { colour: paletteColour(place), style: Math.floor(place / HUES), isTwin: false };
}

/**
 * The looks of a report.
 *
 * Where a sweep has several curves over its first number, colours are those of the curves: a variant has its curve's, and a
 * dash and a marker by its place on it. Elsewhere each variant has a separate look, the baseline the first; the others are in the
 * order of their ids, not of their ranks, so that the pages of two runs and of a running one agree.
 */
export function looksOf(analysis: Drawn): Looks {
  const variants = new Map<string, Look>();
  const { curves, first } = curvesOf(analysis);
  const levels = Math.max(1, ...first.map(({ points }) => points.length));
  // A round of the palette takes as many styles as a curve has levels.
  const atCurve = (place: number, level = 0): Look => ({
    colour: paletteColour(place),
    style: Math.floor(place / PALETTE.length) * levels + level,
    isTwin: false,
  });
  const at = first.length > 1 ? atCurve : lookAt;
  let used = first.length > 1 ? first.length : 0;
  if (first.length > 1)
    first.forEach(({ points }, place) => {
      points.forEach(({ variant }, level) => {
        variants.set(variant, atCurve(place, level));
      });
    });
  const others = analysis.variants
    .filter((variant) => !variant.is_aa_twin && !variants.has(variant.id))
    .sort((a, b) => Number(b.is_baseline) - Number(a.is_baseline) || (a.id < b.id ? -1 : 1));
  for (const { id } of others) variants.set(id, at(used++));
  analysis.variants.forEach((variant, place) => {
    const doubled = analysis.variants[place - 1];
    if (!variant.is_aa_twin) return;
    variants.set(variant.id, { ...((doubled && variants.get(doubled.id)) ?? FIRST_LOOK), isTwin: true });
  });
  const places = new Map(first.map((curve, place) => [curve, place]));
  const looks = curves.map((curve) => {
    if (curves.length === 1) return NEUTRAL;
    const place = first.length > 1 ? places.get(curve) : undefined;
    return at(place ?? used++);
  });
  return { variants, curves: looks };
}

/** All curves of a sweep, and those over its first number. */
function curvesOf({ sweep }: Drawn): { curves: readonly ScalingCurve[]; first: readonly ScalingCurve[] } {
  const number = sweep?.factors.find((factor) => factor.unit !== null);
  const curves = sweep?.curves ?? [];
  return { curves, first: curves.filter((curve) => curve.factor === number?.name) };
}

/** Lengths of dashes and gaps, in pixels; empty for a whole line. After a long dash come as many dots as the style says. */
export function dashOf({ style, isTwin }: Look): readonly number[] {
  if (isTwin) return [2, 2];
  return style === 0 ? [] : [9, 3, ...Array.from({ length: style - 1 }, () => [2, 3]).flat()];
}

/** Outlines in a box of 10 by 10. */
const MARKERS = [
  "M10,5A5,5,0,1,1,0,5A5,5,0,1,1,10,5Z",
  "M0.7,0.7H9.3V9.3H0.7Z",
  "M5,0.5L10,9.5H0Z",
  "M5,0L10,5L5,10L0,5Z",
  "M0,0.5H10L5,9.5Z",
  "M3.3,0H6.7V3.3H10V6.7H6.7V10H3.3V6.7H0V3.3H3.3Z",
  "M0,0H10L0,10H10Z",
  "M0,0V10L10,0V10Z",
] as const;

/** The outline of a look's marker. */
export function markerOf({ style }: Look): string {
  return MARKERS[style % MARKERS.length] ?? MARKERS[0];
}

/** What a reader looks at: the name that is pointed at in a key, and the names in focus. */
export interface Attention {
  readonly pointed: string | null;
  readonly focused: readonly string[];
  /** How many lines share the chart. */
  readonly of: number;
}

/** How strong a line is drawn. Of many, those in focus stand out; what is pointed at does, too, and all else fades. */
export function strength(
  name: string,
  { pointed, focused, of }: Attention,
): { width: number; opacity: number } {
  if (pointed !== null) return pointed === name ? { width: 2.5, opacity: 1 } : { width: 1, opacity: 0.15 };
  if (of <= HUES) return { width: 1.75, opacity: 1 };
  return focused.includes(name) ? { width: 2.5, opacity: 1 } : { width: 1.25, opacity: 0.8 };
}

/** Nothing is pointed at, and nothing in focus. */
export const NO_ATTENTION: Attention = { pointed: null, focused: [], of: 1 };

/** What stands in a key before a name, drawn as it is in the chart. */
export interface Swatch {
  readonly colour: ColourName;
  /** Null where the chart has no lines. */
  readonly line: { readonly width: number; readonly dash: readonly number[] } | null;
  /** Null where the lines have no markers. */
  readonly marker: { readonly outline: string; readonly size: number; readonly isHollow: boolean } | null;
  /** Of the whole swatch. */
  readonly opacity: number;
  /** A filled band instead of a line. */
  readonly isArea: boolean;
}

export interface KeyEntry {
  readonly label: string;
  readonly swatch: Swatch;
}

const EMPTY: Omit<Swatch, "colour"> = { line: null, marker: null, opacity: 1, isArea: false };

/** The swatch of an area. */
export function areaSwatch(colour: ColourName): Swatch {
  return { ...EMPTY, colour, isArea: true };
}

/** The swatch of a line without markers. */
export function lineSwatch(colour: ColourName, width: number, dash: readonly number[] = []): Swatch {
  return { ...EMPTY, colour, line: { width, dash } };
}

/** The swatch of a marker without a line. */
export function markerSwatch(look: Look, size: number, isHollow = false): Swatch {
  return {
    ...EMPTY,
    colour: look.colour,
    marker: { outline: markerOf(look), size, isHollow },
    opacity: look.isTwin ? TWIN_OPACITY : 1,
  };
}

/** An A/A twin's markers have the colour of its double, but paler. */
export const TWIN_OPACITY = 0.45;

/** The swatch of a variant in tables: its line and its marker. */
export function variantSwatch(look: Look): Swatch {
  return { ...markerSwatch(look, 6), line: { width: 1.75, dash: dashOf(look) } };
}
