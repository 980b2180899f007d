/** A davit that serves manifests/examples/, and a machine for each of their Groups. */

import { mkdir, mkdtemp, readdir, readFile, rename, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { vi } from "vitest";
import { parseAllDocuments } from "yaml";
import { isJsonObject, type JsonObject, parseJsonObject } from "../../src/model/json.ts";
import { type DavitProcess, startDavit } from "../../tools/davit-process.ts";
import { runCommand } from "../helpers/command-under-test.ts";

const examples = join(import.meta.dirname, "../../manifests/examples");
const parts = { boot: ["ipxe", "grub"], ignition: ["ignition"], cloudConfig: ["cloud"], generic: ["generic"] } as const;

/** A machine of a Group of the examples. */
export interface Example {
  readonly file: string;
  readonly group: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly endpoints: readonly string[];
  /** True if the Profile installs by permits. */
  readonly needsPermit: boolean;
}

/** Reads a machine for each Group. */
export async function readExamples(): Promise<readonly Example[]> {
  const found: Example[] = [];
  for (const file of (await readdir(examples)).toSorted()) {
    const objects = parseAllDocuments(await readFile(join(examples, file), "utf8")).map((document) => document.toJS());
    const profiles = new Map(
      objects.filter(({ kind }) => kind === "Profile").map((each) => [each.metadata.name, each]),
    );
    for (const { kind, metadata, spec } of objects) {
      if (kind !== "Group") continue;
      const profile: unknown = profiles.get(spec.profileRef.name)?.spec;
      const endpoints = isJsonObject(profile) ? endpointsOf(profile) : [];
      const needsPermit = isJsonObject(profile) && "install" in profile;
      // A uuid of its own: one that two machines send names none of them.
      const uuid = `a1b2c3d4-0000-4000-8000-0000000009${String(found.length).padStart(2, "0")}`;
      const labels = { uuid, ...spec.selector.matchLabels };
      found.push({ file, group: metadata.name, labels, endpoints, needsPermit });
    }
  }
  return found;
}

function endpointsOf(spec: JsonObject): readonly string[] {
  const { genericParts } = spec;
  const names = Array.isArray(genericParts)
    ? genericParts.filter(isJsonObject).map(({ name }) => `generic/${name}`)
    : [];
  return [...Object.entries(parts).flatMap(([part, endpoints]) => (part in spec ? endpoints : [])), ...names];
}

export class ExampleDavit {
  readonly davit: DavitProcess;
  readonly #folder: string;

  private constructor(davit: DavitProcess, folder: string) {
    this.davit = davit;
    this.#folder = folder;
  }

  static async start(): Promise<ExampleDavit> {
    const folder = await mkdtemp(join(tmpdir(), "davit-examples-"));
    const manifests = join(folder, "manifests");
    for (const name of [manifests, join(folder, "assets")]) await mkdir(name);
    for (const file of await readdir(examples)) await put(folder, file, await readFile(join(examples, file), "utf8"));
    const args = ["--assets-dir", join(folder, "assets")];
    return new ExampleDavit(await startDavit({ manifests, dataDir: join(folder, "data"), args }), folder);
  }

  async stop(): Promise<void> {
    await this.davit.stop();
    await rm(this.#folder, { recursive: true });
  }

  /** Asks as a machine that sends all labels of the example. */
  ask(endpoint: string, labels: Example["labels"]): Promise<Response> {
    return fetch(`${this.davit.bootUrl}/${endpoint}?${new URLSearchParams(labels)}`);
  }

  /** Opens an install for each of the machines, with its files, and returns once davit has read all grants. */
  async grant(installers: readonly Example[]): Promise<void> {
    for (const { file, group } of installers) await this.#grant(file, group);
    // In the order of their Groups' names: the last one is read with the others.
    for (const { group } of installers) {
      await vi.waitUntil(async () => (await this.#generationOf(group)) === 1, { timeout: 30_000, interval: 200 });
    }
    for (const { labels } of installers) await this.#putFiles(labels);
  }

  /** Puts each file into the assets directory that the preview of a machine says is missing. */
  async #putFiles(labels: Example["labels"]): Promise<void> {
    for (;;) {
      const preview = await (await fetch(`${this.davit.opsUrl}/preview?${new URLSearchParams(labels)}`)).text();
      const [, path] = /asset missing: (\/assets\/[\w./-]+)/.exec(preview) ?? [];
      if (path === undefined) return;
      const place = join(this.#folder, path);
      await mkdir(dirname(place), { recursive: true });
      await writeFile(place, path);
    }
  }

  /** Puts the printed lines into the Group's document, whose last field is one of `spec`. */
  async #grant(file: string, group: string): Promise<void> {
    const { output } = await runCommand([
      "machine",
      "install",
      `group/${group}`,
      "--print",
      "--ops-url",
      this.davit.opsUrl,
    ]);
    const [, lines = ""] = output.split("\nspec:\n");
    const documents = (await readFile(join(this.#folder, "manifests", file), "utf8")).split(/^---\n/m);
    const ofGroup = (text: string) => text.includes("kind: Group\n") && text.includes(`  name: ${group}\n`);
    await put(
      this.#folder,
      file,
      documents.map((text) => (ofGroup(text) ? `${text.trimEnd()}\n${lines}` : text)).join("---\n"),
    );
  }

  /** The generation of a Group's grant, as davit has read it. */
  async #generationOf(group: string): Promise<unknown> {
    const answer = await fetch(`${this.davit.opsUrl}/ledger?grant=group/default/${group}`);
    const { grant } = parseJsonObject(await answer.text()) ?? {};
    return isJsonObject(grant) && isJsonObject(grant.object) ? grant.object.generation : undefined;
  }
}

/** Moves a file in that is at rest. */
async function put(folder: string, file: string, text: string): Promise<void> {
  const elsewhere = join(folder, file);
  await writeFile(elsewhere, text);
  await utimes(elsewhere, 1, 1);
  await rename(elsewhere, join(folder, "manifests", file));
}
