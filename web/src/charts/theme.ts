/** Colours and type of charts. The page reads them from its style sheet; without a page they are plain data. */
import type { ColourName } from "../model/colours";
import type { EChartsOption } from "./echarts";

export interface Theme {
  readonly ink: string;
  readonly muted: string;
  readonly rule: string;
  readonly paper: string;
  readonly warmup: string;
  readonly checkpoint: string;
  readonly action: string;
  readonly font: string;
  readonly colours: Readonly<Record<ColourName, string>>;
}

/** A theme of the style sheet's custom properties, of which `read` gives the value of one by its name without dashes. */
export function themeOf(read: (name: string) => string): Theme {
  return {
    ink: read("ink"),
    muted: read("muted"),
    rule: read("rule"),
    paper: read("surface"),
    warmup: read("warmup"),
    checkpoint: read("checkpoint"),
    action: read("action"),
    font: read("sans"),
    colours: {
      "c-1": read("c-1"),
      "c-2": read("c-2"),
      "c-3": read("c-3"),
      "c-4": read("c-4"),
      "c-5": read("c-5"),
      "c-6": read("c-6"),
      "c-7": read("c-7"),
      "c-8": read("c-8"),
      "c-9": read("c-9"),
      "c-10": read("c-10"),
      "c-11": read("c-11"),
      "c-12": read("c-12"),
      "c-13": read("c-13"),
      "c-14": read("c-14"),
      "c-15": read("c-15"),
      "c-16": read("c-16"),
      "shade-1": read("shade-1"),
      "shade-2": read("shade-2"),
      "shade-3": read("shade-3"),
      ink: read("ink"),
      bad: read("bad"),
    },
  };
}

/** What every chart has in common. */
export function withTheme(option: EChartsOption, theme: Theme): EChartsOption {
  return {
    animation: false,
    textStyle: { fontFamily: theme.font, color: theme.muted },
    ...option,
  };
}

/** The look of every tooltip. */
export function tooltipLook(theme: Theme) {
  return {
    confine: true,
    backgroundColor: theme.paper,
    borderColor: theme.rule,
    textStyle: { color: theme.ink, fontSize: 12 },
  };
}
