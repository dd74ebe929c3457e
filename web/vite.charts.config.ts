import { defineConfig } from "vite";

// The charts alone, for a JavaScript engine without a document.
export default defineConfig({
  // A library is built for its user to decide; nobody else uses this one, and an engine without Node has no process.
  define: { "process.env.NODE_ENV": JSON.stringify("production") },
  build: {
    target: "es2022",
    outDir: "../python/plinth/report",
    emptyOutDir: false,
    lib: { entry: "src/headless.ts", formats: ["iife"], name: "plinthHeadless", fileName: () => "charts.js" },
  },
});
