"""From a bundle and its analysis to a report: one HTML file, Markdown, CSV, JSON and the terminal table."""
