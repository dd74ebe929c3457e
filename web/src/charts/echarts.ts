/** ECharts, with only the parts that charts of a report use. It draws SVG, in a page and without one. */
import {
  BarChart,
  type BarSeriesOption,
  LineChart,
  type LineSeriesOption,
  ScatterChart,
  type ScatterSeriesOption,
} from "echarts/charts";
import {
  GridComponent,
  type GridComponentOption,
  MarkAreaComponent,
  type MarkAreaComponentOption,
  TooltipComponent,
  type TooltipComponentOption,
} from "echarts/components";
import * as echarts from "echarts/core";
import { LabelLayout } from "echarts/features";
import { SVGRenderer } from "echarts/renderers";
import type { TooltipComponentFormatterCallbackParams } from "echarts/types/dist/option";

echarts.use([
  BarChart,
  LineChart,
  ScatterChart,
  GridComponent,
  MarkAreaComponent,
  TooltipComponent,
  LabelLayout,
  SVGRenderer,
]);

/** What the option of a chart may hold: a part that is not used above is an error of the compiler. */
export type EChartsOption = echarts.ComposeOption<
  | BarSeriesOption
  | LineSeriesOption
  | ScatterSeriesOption
  | GridComponentOption
  | MarkAreaComponentOption
  | TooltipComponentOption
>;

/** What ECharts hands to the formatter of a tooltip. */
export type TooltipParameters = TooltipComponentFormatterCallbackParams;

export type { BarSeriesOption, LineSeriesOption, ScatterSeriesOption };
export { echarts };
