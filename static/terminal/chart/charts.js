// The one place that knows where the chart library lies, and which version.
export * from "../../vendor/lightweight-charts-5.2.1/lightweight-charts.mjs";
