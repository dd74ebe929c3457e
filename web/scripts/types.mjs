// Makes the types in src/format from the published JSON Schemas; with --check only says whether they are fresh.
import { readFile, writeFile } from "node:fs/promises";
import { compile } from "json-schema-to-typescript";

const TYPES = { report: "Report", live: "LiveProtocol" };

for (const [name, root] of Object.entries(TYPES)) {
  const published = `docs/reference/${name}.schema.json`;
  const types = `src/format/${name}.ts`;
  const schema = JSON.parse(await readFile(new URL(`../../${published}`, import.meta.url), "utf8"));
  const text = await compile(schema, root, {
    bannerComment: `// Made by \`npm run types\` from ${published}. Do not edit.`,
    additionalProperties: false,
  });
  const file = new URL(`../${types}`, import.meta.url);
  if (process.argv.includes("--check")) {
    const found = await readFile(file, "utf8").catch(() => "");
    if (found !== text) {
      console.error(`${types} is not what the schema says; run: npm run types`);
      process.exitCode = 1;
    }
  } else {
    await writeFile(file, text);
  }
}
