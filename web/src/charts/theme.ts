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
