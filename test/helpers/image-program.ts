/** davit as its image runs it: the bundle (`npm run bundle`), with the options that the Containerfile gives to Node. */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { DavitOptions } from "../../tools/davit-process.ts";

const root = join(import.meta.dirname, "../..");

/** @throws {Error} for a Containerfile without an ENTRYPOINT that is a list. */
export function imageProgram(): Required<Pick<DavitOptions, "program" | "nodeArgs">> {
  const [, list = ""] = /^ENTRYPOINT (\[.*\])$/m.exec(readFileSync(join(root, "Containerfile"), "utf8")) ?? [];
  const words: unknown = JSON.parse(list);
  const texts = Array.isArray(words) ? words.filter((word) => typeof word === "string") : [];
  return { program: join(root, "dist/bundle/main.js"), nodeArgs: texts.slice(1, -1) };
}
