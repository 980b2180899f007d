import { readFileSync } from "node:fs";
import { isJsonObject } from "../model/json.ts";
import type { CliCommand } from "./host.ts";

/** `davit version`: prints the version. */
export const version: CliCommand = {
  name: "version",
  summary: "print the version",
  run: async (_args, host) => {
    host.write(`davit ${readVersion()}\n`);
    return 0;
  },
};

/** Returns the version in package.json. The relative path is the same in `src/`, in `dist/` and in a bundle. */
export function readVersion(): string {
  const manifest: unknown = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));
  return isJsonObject(manifest) && typeof manifest.version === "string" ? manifest.version : "unknown";
}
