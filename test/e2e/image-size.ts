/** What an image adds to its base, as a registry would keep it. */

import { spawnSync } from "node:child_process";
import { gzipSync } from "node:zlib";

// A layer of davit's, uncompressed, with room.
const maxLayerBytes = 1024 ** 3;

/**
 * @param archive of docker, whose layers are as they are in the file system.
 * @returns bytes of the layers that have a part of davit's, compressed by gzip.
 */
export function compressedBytesOverBase(archive: string): number {
  const layers = entries(["--list", "--file", archive]).filter((name) => /^[^/]+\.tar$/.test(name));
  let bytes = 0;
  for (const layer of layers) {
    const content = output(["--extract", "--to-stdout", "--file", archive, layer]);
    const names = entries(["--list", "--file=-"], content);
    if (names.some((name) => /^\/?(opt\/davit|nodejs)\//.test(name))) bytes += gzipSync(content).length;
  }
  return bytes;
}

function entries(words: readonly string[], input?: Buffer): readonly string[] {
  return output(words, input).toString().trim().split("\n");
}

/** @throws {Error} with what tar complains of. */
function output(words: readonly string[], input?: Buffer): Buffer {
  const { status, stdout, stderr } = spawnSync("tar", words, { input, maxBuffer: maxLayerBytes });
  if (status !== 0) throw new Error(`tar ${words.join(" ")} ended with ${status}\n${stderr}`);
  return stdout;
}
