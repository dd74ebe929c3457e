import { defineConfig } from "vite";

// The page of a run that goes on: a script and a style sheet, which `plinth serve` serves.
export default defineConfig({
  define: { "process.env.NODE_ENV": JSON.stringify("production") },
  build: {
    target: "es2022",
    outDir: "../python/plinth/serve",
    emptyOutDir: false,
    lib: { entry: "src/live.ts", formats: ["es"], fileName: () => "live.js", cssFileName: "live" },
  },
});
