// The program of the container image: all commands in a few files, so that a start reads these and not thousands.
// It lies as deep below the package as the sources do, which find crds/ and package.json two levels above them.

import { defineConfig } from "rolldown";

export default defineConfig({
  // A thread is started by its file's name, so each is an entry beside the program.
  input: {
    main: "src/main.ts",
    "parse-worker": "src/directory/parse-worker.ts",
    "trial-worker": "src/controller/trials/trial-worker.ts",
    "digest-worker": "src/http/assets/digest-worker.ts",
    "render-worker": "src/boot/making/render-worker.ts",
    "try-worker": "src/app/try-worker.ts",
    "sign-worker": "src/sign/sign-worker.ts",
  },
  platform: "node",
  output: {
    dir: "dist/bundle",
    format: "esm",
    cleanDir: true,
    // Names and lines stay, for stacks that can be read.
    minify: "dce-only",
    entryFileNames: "[name].js",
    chunkFileNames: "[name]-[hash].js",
  },
});
