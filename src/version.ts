import { readFileSync } from "node:fs";
import { isJsonObject } from "./model/json.ts";

/** The version in package.json, which lies above `src/` and above `dist/` alike. */
export function readVersion(): string {
  const manifest: unknown = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
  return isJsonObject(manifest) && typeof manifest.version === "string" ? manifest.version : "unknown";
}
