import { readFileSync } from "node:fs";
import { isJsonObject } from "../model/json.ts";
import type { CliCommand } from "./host.ts";

/** Prints the version. */
export const version: CliCommand = {
  name: "version",
  summary: "print the version",
  run: async (_args, host) => {
    host.write(`davit ${readVersion()}\n`);
    return 0;
  },
};

/** The version in package.json, which is two levels above this file in `src/`, in `dist/` and in a bundle alike. */
export function readVersion(): string {
  const manifest: unknown = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));
  return isJsonObject(manifest) && typeof manifest.version === "string" ? manifest.version : "unknown";
}
