/**
 * Loads manifests without a server. The result has the documents that `davit serve` would write into an empty store
 * once it has read all manifests, and the status that `davit serve` would report for each object. `loadManifests` uses
 * the code of the directory source and of the controller (listing, parser, admission, holdings, planner). So it decides
 * like a server.
 *
 *   const manifests = await loadManifests({ directories: ["manifests"], log });
 *   const index = bootIndexOf(manifests);
 *   const configs = new BootConfigs({ index, authority: "192.0.2.1:8080", grub });
 *   configs.render("ipxe", { labels, rawQuery, userAgent: "" });   // byte for byte what the server answers
 *
 * `loadManifests` writes nothing, starts no store and follows no change. The result shows the files at the time of
 * reading.
 */

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { BootIndex } from "../../boot/selection/boot-index.ts";
import type { MachineSamples } from "../../controller/core/machine-samples.ts";
import { StoredDocuments } from "../../controller/core/stored-documents.ts";
import type { MachineIdentities } from "../../controller/machines/identities.ts";
import { Planner } from "../../controller/planner.ts";
import type { Planned } from "../../controller/step.ts";
import { toRfc3339 } from "../../lib/clock.ts";
import { assert } from "../../lib/errors.ts";
import type { Log } from "../../lib/log.ts";
import { encodeDocument, type SyncedDocument, syncedPath } from "../../model/objects/documents.ts";
import { clearTexts } from "../../model/objects/secret-texts.ts";
import type { SourceView } from "../../model/objects/source.ts";
import { parseTemplate } from "../../render/template/template.ts";
import { Admission } from "../../sources/admission/admission.ts";
import { readCrds } from "../../sources/admission/crds.ts";
import { Holdings } from "../../sources/directory/holdings.ts";
import { type FileProblem, type ListedFile, listFiles } from "../../sources/directory/list-files.ts";
import { parseInPlace } from "../../sources/directory/parse-in-place.ts";
import { ManifestParser } from "../../sources/directory/parser.ts";
import type { FileContent } from "../../sources/directory/read-file.ts";
import { textBegin } from "../../sources/directory/yaml-documents.ts";
import { ObjectPlaces } from "./object-places.ts";
import { type ReadPart, readInput } from "./read-input.ts";

export interface LoadOptions {
  /** Files, and directories that davit reads like those of `davit serve --manifests`. */
  readonly directories: readonly string[];
  /**
   * The content of standard input; undefined if the caller did not read it. It has YAML documents, or the List that
   * `kubectl get profiles.davit.dev,groups.davit.dev -o yaml` writes.
   */
  readonly input?: Uint8Array | undefined;
  /** The value that `davit serve` would get as `--admin-namespace`. */
  readonly adminNamespace?: string | undefined;
  /** Receives a line for each bug in davit that loading reveals, and no other lines. */
  readonly log: Pick<Log, "error">;
  /**
   * davit calls this from time to time. While it reads files, `count` of `total` files are done. While it reads
   * standard input, `count` of `total` parts of the input are done.
   */
  readonly progress?: (count: number, total: number) => void;
}

/** The path and text of each document that a store would have. Some of the texts come from Secrets. */
export type DocumentTexts = readonly (readonly [path: string, text: string])[];

export interface Manifests {
  /** The accepted objects, the refusals, and every problem of files and documents. */
  readonly view: SourceView & { readonly problems: readonly FileProblem[] };
  /** Advice on the files without problems. A file with a problem gets no advice. */
  readonly advice: readonly FileProblem[];
  readonly places: ObjectPlaces;
  /** For each Profile and Group, its status and the findings behind the status. */
  readonly planned: readonly Planned[];
  /** What Machines may define for templates. */
  readonly machineSamples: Pick<MachineSamples, "of">;
  readonly machineIdentities: Pick<MachineIdentities, "rivalOf">;
  readonly documents: DocumentTexts;
}

/** What the manifests are, without a plan for them. */
type ReadManifests = Pick<Manifests, "view" | "advice" | "places">;

/** Reads manifests, and plans what `davit serve` would write for them. @throws {Error} as `readManifests`. */
export async function loadManifests(options: LoadOptions): Promise<Manifests> {
  const read = await readManifests(options);
  return { ...read, ...planManifests(read.view, options) };
}

/**
 * Reads manifests. A mistake in a manifest throws nothing: the `view` or a status reports the mistake.
 * @throws {Error} if davit's own CRD files cannot be read, or the parser's thread cannot be started.
 */
export async function readManifests(options: Omit<LoadOptions, "adminNamespace" | "log">): Promise<ReadManifests> {
  const crds = await readCrds();
  const { directories, input, progress } = options;
  const listing = await listFiles(directories, undefined, true);
  const parser = new ManifestParser(crds);
  const parts: ReadPart[] = [];
  try {
    const { files: listed } = listing;
    const read = (count: number) => progress?.(count, listed.length);
    const small = await parseInPlace(crds, listed);
    if (small !== undefined) read(small.length);
    const files = small ?? (await parser.parse(listed, read));
    parts.push(...files.flatMap((file, at) => partOf(listing.files[at], file)));
  } finally {
    await parser.stop();
  }
  if (input !== undefined) parts.push(...readInput(input, new Admission(crds), progress));
  const view = new Holdings();
  const places = new ObjectPlaces();
  for (const { text, file } of parts) places.add(text, file);
  view.take({ files: parts.map(({ file }) => file), problems: listing.problems, isAtRest: true });
  const advice = parts.flatMap(({ file }) => (file.problems.length === 0 ? (file.advice ?? []) : []));
  return { view, advice, places };
}

function partOf(listed: ListedFile | undefined, file: FileContent): readonly ReadPart[] {
  assert(listed !== undefined, "The parser answers for each file");
  const { label, path } = listed;
  return [{ text: { file: label, start: textBegin, read: () => readFileSync(path, "utf8") }, file }];
}

/** Returns a boot index that has the manifests' documents and is open for requests. */
export function bootIndexOf({ documents }: Pick<Manifests, "documents">): BootIndex {
  const index = new BootIndex({ log: { error: () => assert(false, "The planner writes what the index reads") } });
  index.replaced(documents);
  index.open();
  return index;
}

/** Plans what `davit serve` would write into an empty store for the objects of a view. */
export function planManifests(
  view: SourceView,
  { log, adminNamespace }: Pick<LoadOptions, "log" | "adminNamespace">,
): Pick<Manifests, "planned" | "documents" | "machineSamples" | "machineIdentities"> {
  // This store is empty, so the planner removes nothing and makes no tombstones.
  const planner = plannerOver(new StoredDocuments(() => 0), { view, log, adminNamespace });
  const { planned, writes } = planner.plan(planner.names());
  const written = writes.map(({ path, text }) => {
    assert(text !== undefined, "What is not stored is not removed");
    return [path, text] as const;
  });
  const mark: SyncedDocument = { source: "directory", at: toRfc3339(0), revision: "", complete: view.complete };
  const documents: Manifests["documents"] = [...written, [syncedPath, encodeDocument(mark)]];
  const { samples, identities } = planner.machines;
  return { planned, documents, machineSamples: samples, machineIdentities: identities };
}

/** Returns a planner for the objects of a view and the stored documents. */
export function plannerOver(
  documents: StoredDocuments,
  { view, log, adminNamespace }: Pick<LoadOptions, "log" | "adminNamespace"> & { readonly view: SourceView },
): Planner {
  return new Planner({
    source: { view },
    documents,
    log,
    sha256,
    secretTexts: clearTexts(sha256),
    checkTemplate: parseTemplate,
    // Nothing expires here: whoever writes tombstones drops them.
    tombstoneTtlSeconds: 1,
    adminNamespace,
  });
}

export function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
