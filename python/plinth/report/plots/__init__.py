"""Plots of a run for a terminal: throughput over time, latency percentiles, and the curves of a sweep."""

from plinth.report.plots.page import render_plots

__all__ = ["render_plots"]
