import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { gzipSync } from "node:zlib";
import { defineConfig, type Plugin } from "vite";

const OUT = path.resolve(import.meta.dirname, "dist");

/** Removes an earlier build, but not the file that keeps the folder in the repository. */
function clean(): Plugin {
  return {
    name: "clean",
    apply: "build",
    buildStart() {
      for (const name of readdirSync(OUT)) {
        if (name !== ".gitignore") rmSync(path.join(OUT, name), { recursive: true });
      }
    },
  };
}

/** Leaves each file compressed only, as the program embeds it. */
function compress(): Plugin {
  return {
    name: "compress",
    apply: "build",
    enforce: "post",
    closeBundle() {
      for (const entry of readdirSync(OUT, { recursive: true, withFileTypes: true })) {
        if (!entry.isFile() || entry.name === ".gitignore") continue;
        const file = path.join(entry.parentPath, entry.name);
        writeFileSync(`${file}.gz`, gzipSync(readFileSync(file), { level: 9 }));
        rmSync(file);
      }
    },
  };
}

export default defineConfig({
  base: "/ui/",
  plugins: [clean(), compress()],
  build: {
    outDir: OUT,
    emptyOutDir: false,
    target: "es2022",
    // Files of data: addresses would need a wider policy.
    assetsInlineLimit: 0,
    // The licences of what is in the bundle.
    license: { fileName: "licenses.md" },
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 600,
  },
  server: {
    // `npm run dev` shows the pages of a server that `isolith serve --no-token` has started.
    proxy: { "/v1": "http://127.0.0.1:7411", "/ui/session": "http://127.0.0.1:7411" },
  },
});
