import { defineConfig } from "vite";

// The catalogue of `plinth serve`: its script, and the style sheet of all its pages but the live one.
export default defineConfig({
  build: {
    target: "es2022",
    outDir: "../python/plinth/serve",
    emptyOutDir: false,
    lib: {
      entry: "src/catalogue.ts",
      formats: ["es"],
      fileName: () => "catalogue.js",
      cssFileName: "catalogue",
    },
  },
});
