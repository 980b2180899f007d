/** Reads the state that `davit diff` compares manifests with: a running davit, a backup, or a directory. */

import { statSync } from "node:fs";
import { digestOf, withoutSecrets } from "../../http/ops/without-secrets.ts";
import { ledgerRootPath } from "../../installs/ledger/ledger-documents.ts";
import { diskFailure } from "../../lib/files/disk-sentence.ts";
import { diskFiles } from "../../lib/files/files.ts";
import type { Log } from "../../lib/log.ts";
import { StartError } from "../../lib/start-error.ts";
import { visible } from "../../lib/text/visible.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "../../model/json.ts";
import { davitRoot } from "../../model/objects/documents.ts";
import { clearReader } from "../../model/objects/secret-texts.ts";
import { comparable, unreadablePath } from "../../offline/diff/apply.ts";
import type { RecordedLabels } from "../../offline/diff/compared-machines.ts";
import { type DocumentTexts, loadManifests } from "../../offline/load/load-manifests.ts";
import { readBackup } from "../../store/backup/backup.ts";
import { storePath } from "../../store/core/node.ts";
import { filesAmong } from "../../store/watch/changed-files.ts";
import type { Host } from "../core/host.ts";
import { assertReadable } from "../core/load-input.ts";
import { readVersion } from "../core/version.ts";
import { postOperations } from "../machine/operations.ts";
import type { DiffConfig } from "./diff-options.ts";

/** What davit has before the manifests are applied. */
interface ReadState {
  /** For people. */
  readonly place: string;
  readonly documents: DocumentTexts;
  /** The machines that a running davit knows; undefined for a directory and a backup. */
  readonly recorded?: readonly RecordedLabels[];
  readonly adminNamespace: string | undefined;
}

interface ReadTools {
  readonly log: Pick<Log, "error">;
  readonly host: Host;
  /** Digests of the texts of Secrets among the manifests: a running davit compares its own with them. */
  readonly secrets: Readonly<Record<string, string>>;
}

/**
 * Reads the state.
 * @throws {StartError | WalError} with a sentence for people.
 */
export async function readBefore(config: DiffConfig, tools: ReadTools): Promise<ReadState> {
  const { from } = config;
  const state = await (from === undefined ? readRunning(config, tools) : readPath(from, config, tools));
  const path = unreadablePath(state.documents);
  if (path === undefined) return state;
  throw new StartError(`Reading ${state.place}: document "${visible(path)}" is of a later davit: run its davit diff`);
}

async function readPath(
  from: string,
  { adminNamespace }: Pick<DiffConfig, "adminNamespace">,
  { log, host, secrets }: ReadTools,
): Promise<ReadState> {
  const place = `"${from}"`;
  if (!statSync(from).isDirectory()) {
    const { tree } = await readBackup(() => diskFiles.readPieces(from), place).catch((error: unknown) => {
      throw diskFailure("Reading", from, error);
    });
    const isObject = ([path]: readonly [string, string]) => !path.startsWith(`${ledgerRootPath}/`);
    const stored = [...filesAmong(tree.walk(storePath(davitRoot)))].filter(isObject);
    const texts = new Map<string, string>(stored);
    const digestAt = (path: string) => digestOf(path, texts.get(path), clearReader);
    // A davit names texts of Secrets by a key of its own, and manifests have none.
    const named = stored.map(
      ([path, text]) => [path, withoutSecrets(path, text, { digests: secrets, digestAt })] as const,
    );
    return { place: `backup ${from}`, documents: comparable(named), adminNamespace };
  }
  const { view, documents } = await loadManifests({ directories: [from], adminNamespace, log });
  assertReadable(view.problems, host);
  return { place: from, documents: comparable(documents), adminNamespace };
}

const missing =
  "it does not show its objects: --ops-url must name the operations listener of a davit serve of this version";

async function readRunning(config: DiffConfig, { secrets }: ReadTools): Promise<ReadState> {
  const { origin } = config.opsUrl;
  const answer = await postOperations(config, "/documents", { secrets }, missing);
  const fail = (why: string) => new StartError(`Asking "${origin}": ${why}`);
  const { version, documents, machines } = answer;
  const own = readVersion();
  if (typeof version !== "string" || version !== own) {
    const theirs = typeof version === "string" ? `davit ${visible(version).slice(0, 64)}` : "another davit";
    throw fail(`it is ${theirs}, and this is davit ${own}: compare by the davit diff of the same version`);
  }
  const adminNamespace = typeof answer.adminNamespace === "string" ? answer.adminNamespace : undefined;
  if (config.adminNamespace !== undefined && config.adminNamespace !== adminNamespace) {
    const theirs = adminNamespace === undefined ? "none" : `"${adminNamespace}"`;
    throw fail(`its --admin-namespace is ${theirs}: leave --admin-namespace out, davit diff takes that of the other`);
  }
  const texts = listOf(documents).flatMap(documentOf);
  const recorded = listOf(machines).flatMap(machineOf);
  return { place: `the davit at ${origin}`, documents: comparable(texts), recorded, adminNamespace };
}

function listOf(value: JsonValue | undefined): readonly JsonValue[] {
  return Array.isArray(value) ? value : [];
}

function documentOf(value: JsonValue): readonly (readonly [path: string, text: string])[] {
  const [path, text] = listOf(value);
  return typeof path === "string" && typeof text === "string" ? [[path, text]] : [];
}

function machineOf(value: JsonValue): readonly RecordedLabels[] {
  if (!isJsonObject(value) || !isJsonObject(value.labels)) return [];
  const { group } = value;
  return [{ labels: textsIn(value.labels), ...(typeof group === "string" && { group }) }];
}

function textsIn(labels: JsonObject): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(labels).flatMap(([name, text]) => (typeof text === "string" ? [[name, text]] : [])),
  );
}
