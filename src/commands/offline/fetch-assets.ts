import { type FileHandle, mkdir } from "node:fs/promises";
import { AssetListError, type ListedAsset, readAssetList } from "../../assets/asset-list.ts";
import { download } from "../../assets/download.ts";
import { DownloadError } from "../../assets/get.ts";
import { systemClock } from "../../lib/clock.ts";
import { diskFailure } from "../../lib/files/disk-sentence.ts";
import { digestPieces, sha256Of } from "../../lib/files/file-digest.ts";
import { readSmallFile } from "../../lib/files/watched-files.ts";
import type { Log } from "../../lib/log.ts";
import { createLog } from "../../lib/logging/create-log.ts";
import type { Values } from "../../options/parsing.ts";
import { fileOption, newDirectoryOption } from "../../options/readers.ts";
import { configWithout, readOptions } from "../../options/rules.ts";
import { sentenceOf, workCommand } from "../core/command-line.ts";
import type { Host } from "../core/host.ts";
import { Progress, sizeText } from "../core/progress.ts";

const fetchAssetsOptions = {
  list: {
    ...fileOption("list", "what to fetch: a YAML sequence of {url, sha256, path}"),
    required: "No list of assets: give --list FILE",
  },
  assetsDir: {
    ...newDirectoryOption("assets-dir", "where to put it; created if it is missing"),
    required: "No assets directory: give --assets-dir DIR",
  },
};

/** The values of the options that `davit fetch-assets` was given. */
type FetchAssetsConfig = Values<typeof fetchAssetsOptions>;

/** The command `davit fetch-assets` fills an assets directory. A boot service may run at the same time. */
export const fetchAssets = workCommand({
  name: "fetch-assets",
  help: {
    usage: "fetch-assets --list FILE --assets-dir DIR",
    purpose: "Downloads missing assets, and checks each against its SHA-256.",
    options: fetchAssetsOptions,
  },
  readConfig: (args, environment, paths) => {
    const { values, problems } = readOptions(fetchAssetsOptions, args, environment, paths);
    return configWithout(problems, values);
  },
  work: async (config, host) => {
    const list = await readList(config, host);
    if (list === undefined) return 1;
    let failures = 0;
    for (const asset of list) {
      if (!(await isFetched(asset, config, host))) failures++;
      if (host.stop.aborted) break;
    }
    return failures === 0 && !host.stop.aborted ? 0 : 1;
  },
});

async function readList(
  { list, assetsDir }: FetchAssetsConfig,
  host: Host,
): Promise<readonly ListedAsset[] | undefined> {
  try {
    const assets = readAssetList(await readSmallFile(list));
    await mkdir(assetsDir, { recursive: true }).catch((error: unknown) => {
      throw diskFailure("Creating", assetsDir, error);
    });
    return assets;
  } catch (error) {
    for (const sentence of listProblems(list, error)) host.writeError(`${sentence}\n`);
    return undefined;
  }
}

function listProblems(list: string, error: unknown): readonly string[] {
  if (error instanceof AssetListError) return error.problems.map((problem) => `${list}: ${problem}`);
  const sentence = sentenceOf(diskFailure("Reading", list, error));
  if (sentence === undefined) throw error;
  return [sentence];
}

/**
 * Fetches one asset. Reports a failure and then returns false, so that the caller goes on with the other assets and one
 * run reports every failure.
 */
async function isFetched(asset: ListedAsset, { assetsDir }: FetchAssetsConfig, host: Host): Promise<boolean> {
  const log = host.outputIsTerminal ? undefined : createHostLog(host);
  const progress = new Progress(host, systemClock, `asset "${asset.path}" is being fetched`);
  let sizeBytes = 0;
  const retrying = (why: string, inMs: number) => {
    progress.endLine();
    if (log !== undefined) log.warn({ path: asset.path, why, inMs }, "asset is fetched again");
    else host.write(`${asset.path}: ${why}, again in ${Math.ceil(inMs / 1_000)} s\n`);
  };
  const advance = (bytes: number, totalBytes?: number) => {
    sizeBytes = bytes;
    progress.advance(bytes, totalBytes);
  };
  try {
    const options = {
      directory: assetsDir,
      clock: systemClock,
      signal: host.stop,
      sha256: (file: FileHandle) => sha256Of(file.createReadStream({ start: 0, autoClose: false, ...digestPieces })),
      progress: advance,
      retrying,
    };
    const isNew = await download(asset, options);
    const done = isNew ? `fetched, ${sizeText(sizeBytes)}, checked` : "there already, checked";
    progress.done(
      `${asset.path}: ${done}`,
      { path: asset.path, bytes: sizeBytes },
      isNew ? "asset fetched" : "asset is there",
    );
    return true;
  } catch (error) {
    progress.endLine();
    host.writeError(`${sentenceFor(asset, assetsDir, error)}\n`);
    return false;
  }
}

function createHostLog(host: Host): Log {
  return createLog({ level: "info", format: "json", destination: { write: (line) => host.write(line) } });
}

function sentenceFor({ path, url }: ListedAsset, assetsDir: string, error: unknown): string {
  // The message omits the URL's query, because the query of a presigned URL is a secret.
  if (error instanceof DownloadError) return `Fetching "${path}" from "${url.origin}${url.pathname}": ${error.message}`;
  const sentence = sentenceOf(diskFailure("Writing", `${assetsDir}/${path}`, error));
  if (sentence === undefined) throw error;
  return sentence;
}
