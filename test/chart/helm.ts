/** Helm as these suites use it: each file of `charts/davit/ci/` is a way to install the chart, and one rendering. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { parseAllDocuments } from "yaml";
import { isJsonObject, type JsonObject } from "../../src/model/json.ts";
import { type ChartToolName, chartToolPath } from "../../tools/build/chart-tools.ts";
import { chartDirectory } from "../../tools/generate/chart-files.ts";

/** How a program ended. */
export interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

const ciDirectory = join(chartDirectory, "ci");

/** The names of the ways to install the chart, such as `followers`. */
export const ways: readonly string[] = readdirSync(ciDirectory)
  .filter((name) => name.endsWith("-values.yaml"))
  .map((name) => name.replace(/-values\.yaml$/, ""));

/** The file of a way. */
export function valuesOf(way: string): string {
  return join(ciDirectory, `${way}-values.yaml`);
}

/** Runs one of the chart's tools, and waits for its end, be it good or bad. */
export async function runTool(tool: ChartToolName, args: readonly string[], input = ""): Promise<Ended> {
  // Nothing of the user's: no repositories, no plugins, no cluster.
  const child = spawn(chartToolPath(tool), args, { env: { HOME: tmpdir() } });
  const ended = once(child, "close");
  // It may end before it has read everything; how it ended tells more.
  child.stdin.on("error", () => {});
  child.stdin.end(input);
  const [[code], stdout, stderr] = await Promise.all([ended, text(child.stdout), text(child.stderr)]);
  return { code: Number(code ?? -1), stdout, stderr };
}

export interface RenderOptions {
  /** Default: `ci/default-values.yaml`. */
  readonly way?: string;
  readonly namespace?: string;
  readonly helm?: "helm" | "helm3";
  /** Further words of the command line. */
  readonly args?: readonly string[];
}

/** `helm template` of the release davit, whatever comes of it. */
export async function template(options: RenderOptions = {}): Promise<Ended> {
  const { way = "default", namespace = "netboot", helm = "helm", args = [] } = options;
  return await runTool(helm, ["template", "davit", chartDirectory, "-n", namespace, "-f", valuesOf(way), ...args]);
}

/**
 * The text of a rendering.
 * @throws {Error} with what helm complains of.
 */
export async function rendered(options: RenderOptions = {}): Promise<string> {
  const { code, stdout, stderr } = await template(options);
  if (code !== 0) throw new Error(`Rendering ${options.way}: helm ended with ${code}\n${stderr}`);
  return stdout;
}

/** An object of a rendering. */
export interface Manifest extends JsonObject {
  readonly kind: string;
  readonly metadata: JsonObject & { readonly name: string };
}

/** @throws {Error} when a document is not an object with a kind and a name, or not valid YAML. */
export function manifestsOf(yaml: string): readonly Manifest[] {
  return parseAllDocuments(yaml).flatMap((document) => {
    if (document.errors.length > 0) throw document.errors[0];
    const value: unknown = document.toJS();
    if (value === null || value === undefined) return [];
    if (!isManifest(value)) throw new Error(`Reading a rendering: ${JSON.stringify(value)} is no object of Kubernetes`);
    return [value];
  });
}

function isManifest(value: unknown): value is Manifest {
  return (
    isJsonObject(value) &&
    typeof value.kind === "string" &&
    isJsonObject(value.metadata) &&
    typeof value.metadata.name === "string"
  );
}

/** The object at a path of names, such as `["spec", "template"]`; empty when there is none. */
export function within(value: JsonObject, ...names: readonly string[]): JsonObject {
  return names.reduce<JsonObject>((object, name) => (isJsonObject(object[name]) ? object[name] : {}), value);
}

/** The objects of a list; none when there is no list. */
export function objectsIn(value: unknown): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter(isJsonObject) : [];
}

/** The template of a workload's pods, or a Pod itself; undefined for everything else. */
export function podOf(manifest: Manifest): JsonObject | undefined {
  if (manifest.kind === "Pod") return manifest;
  return isJsonObject(manifest.spec) && isJsonObject(manifest.spec.template) ? manifest.spec.template : undefined;
}

/** The containers of a pod, those that run before it included. */
export function containersOf(pod: JsonObject): readonly JsonObject[] {
  const spec = within(pod, "spec");
  return [...objectsIn(spec.initContainers), ...objectsIn(spec.containers)];
}
