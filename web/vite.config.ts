import { viteSingleFile } from "vite-plugin-singlefile";
import { defineConfig } from "vitest/config";

// One file with everything in it, fonts too: a report opens from file:// on a machine without network.
export default defineConfig({
  plugins: [viteSingleFile({ removeViteModuleLoader: true })],
  build: {
    target: "es2022",
    outDir: "../python/plinth/report",
    emptyOutDir: false,
    assetsInlineLimit: 1_000_000,
    rolldownOptions: { input: "viewer.html" },
  },
  test: { include: ["test/**/*.test.ts"] },
});
