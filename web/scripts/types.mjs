// Makes src/format/report.ts from the published JSON Schema; with --check only says whether it is fresh.
import { readFile, writeFile } from "node:fs/promises";
import { compile } from "json-schema-to-typescript";

const SCHEMA = new URL("../../docs/reference/report.schema.json", import.meta.url);
const TYPES = new URL("../src/format/report.ts", import.meta.url);

const schema = JSON.parse(await readFile(SCHEMA, "utf8"));
const text = await compile(schema, "Report", {
  bannerComment: "// Made by `npm run types` from docs/reference/report.schema.json. Do not edit.",
  additionalProperties: false,
});
if (process.argv.includes("--check")) {
  const found = await readFile(TYPES, "utf8").catch(() => "");
  if (found !== text) {
    console.error("src/format/report.ts is not what the schema says; run: npm run types");
    process.exit(1);
  }
} else {
  await writeFile(TYPES, text);
}
