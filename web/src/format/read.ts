/** Reading the report that is embedded in this page. */
import type { Report } from "./report";

/** The newest format that this viewer knows. */
export const REPORT_VERSION = 1;

/** The text cannot be shown; the message is for people. */
export class UnreadableReport extends Error {}

/** Parses a report. Throws UnreadableReport for an empty place, broken JSON or a newer format. */
export function parseReport(text: string): Report {
  if (text.trim() === "") {
    throw new UnreadableReport(
      "This page holds no report: it is the bare viewer. `plinth report BUNDLE` fills it.",
    );
  }
  let document: Report;
  try {
    document = JSON.parse(text) as Report;
  } catch (error) {
    throw new UnreadableReport(`The report in this page is damaged: ${String(error)}`);
  }
  const version = document.schema_version;
  if (!Number.isInteger(version) || version > REPORT_VERSION) {
    throw new UnreadableReport(
      `The report in this page has format ${String(version)}; this viewer knows up to ${REPORT_VERSION}.`,
    );
  }
  return document;
}
