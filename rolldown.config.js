// The program of the container image: all commands in a few files, so that a start reads these and not thousands.
// It lies as deep below the package as the sources do, which find crds/ and package.json two levels above them.

import { copyFileSync, globSync, readFileSync } from "node:fs";
import { defineConfig } from "rolldown";
import { parse } from "yaml";
import { readCommit } from "./src/commands/core/version.ts";
import { compiledSchemas } from "./tools/packaging/compiled-schemas.ts";

const openpgp = "node_modules/openpgp";

const thirdParty = {
  name: "third-party",
  // The folders of the packages in the bundle, for NOTICES and for the list of its parts (SBOM).
  generateBundle(_options, bundle) {
    const modules = Object.values(bundle).flatMap((chunk) => chunk.moduleIds ?? []);
    const folders = modules.flatMap(
      (id) => /node_modules\/(?:@[^/]+\/)?[^/]+(?!.*\/node_modules\/)/.exec(id)?.[0] ?? [],
    );
    const source = `${JSON.stringify([...new Set([...folders, openpgp])].sort(), undefined, 2)}\n`;
    this.emitFile({ type: "asset", fileName: "packages.json", source });
  },
  // openpgp's license (LGPL-3.0) asks that users can replace it: it stays a file of its own, as its authors publish it.
  writeBundle: ({ dir }) => copyFileSync(`${openpgp}/dist/node/openpgp.mjs`, `${dir}/openpgp.mjs`),
};

// What packages would load for what davit does not use: schemas of routes, requests without a network, exemplars of
// metrics, and source maps of compiled templates. V8 would read 0.8 MB of it at each start.
const unused = new Set([
  "@fastify/ajv-compiler",
  "@fastify/fast-json-stringify-compiler",
  "@opentelemetry/api",
  "light-my-request",
  "source-map",
]);
const withoutUnused = {
  name: "without-unused",
  resolveId: (id) => (unused.has(id) ? "\0unused" : undefined),
  load: (id) => (id === "\0unused" ? "export {};" : undefined),
};

// The schemas by which davit admits objects. The descriptions are for `kubectl explain`, and are most of the text.
const crds = globSync("crds/*.yaml", { cwd: import.meta.dirname })
  .toSorted()
  .map((file) =>
    JSON.stringify(parse(readFileSync(file, "utf8")), (key, value) => (isDescription(key, value) ? undefined : value)),
  );

function isDescription(key, value) {
  return key === "description" && typeof value === "string";
}

export default defineConfig({
  // A thread is started by its file's name, so each is an entry beside the program.
  input: {
    main: "src/main.ts",
    "parse-worker": "src/sources/directory/parse-worker.ts",
    "trial-worker": "src/controller/trials/trial-worker.ts",
    "digest-worker": "src/http/assets/digest-worker.ts",
    "render-worker": "src/boot/making/render-worker.ts",
    "try-worker": "src/app/boot/try-worker.ts",
    "sign-worker": "src/trust/sign/sign-worker.ts",
    "boot-thread-worker": "src/app/threads/boot-thread-worker.ts",
  },
  platform: "node",
  external: ["openpgp"],
  plugins: [thirdParty, withoutUnused, compiledSchemas(crds)],
  transform: {
    define: {
      DAVIT_COMMIT: JSON.stringify(process.env.DAVIT_COMMIT || readCommit(import.meta.dirname)),
      DAVIT_CRDS: JSON.stringify(crds),
    },
  },
  output: {
    dir: "dist/bundle",
    format: "esm",
    cleanDir: true,
    paths: { openpgp: "./openpgp.mjs" },
    // Names and lines stay, for stacks that can be read.
    minify: "dce-only",
    entryFileNames: "[name].js",
    chunkFileNames: "[name]-[hash].js",
  },
});
