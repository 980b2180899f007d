/** Loads manifests for commands that work without a server: from directories, from standard input, or from both. */

import { StartError } from "../lib/start-error.ts";
import { type LoadOptions, loadManifests, type Manifests } from "../offline/load-manifests.ts";
import { diskFailure } from "./failure.ts";
import type { Host } from "./host.ts";
import { inputMark } from "./offline-options.ts";

// Ten times the size of 10,000 objects as kubectl writes them.
const maxInputBytes = 256 * 1024 * 1024;

export interface InputOptions extends Omit<LoadOptions, "directories" | "input"> {
  /** Directories, and `-` for standard input. An empty list reads piped input. */
  readonly manifests: readonly string[];
}

/**
 * Loads the manifests.
 * @throws {StartError} if there is nothing to read, or standard input cannot be read.
 */
export async function loadInput({ manifests, ...options }: InputOptions, host: Host): Promise<Manifests> {
  const directories = manifests.filter((path) => path !== inputMark);
  const input = readsInput(manifests) ? await readInputBytes(host) : undefined;
  return await loadManifests({ ...options, directories, input });
}

/** True if standard input is among the manifests, or no manifests are given. */
export function readsInput(manifests: readonly string[]): boolean {
  return manifests.length === 0 || manifests.includes(inputMark);
}

async function readInputBytes({ input }: Host): Promise<Uint8Array> {
  if (input.isTerminal) {
    throw new StartError("No manifests: give --manifests DIR, or pipe in what kubectl get -o yaml writes");
  }
  const pieces: Uint8Array[] = [];
  let sizeBytes = 0;
  try {
    for await (const piece of input.pieces()) {
      pieces.push(piece);
      sizeBytes += piece.length;
      if (sizeBytes > maxInputBytes) {
        throw new StartError(`Reading standard input: it is larger than ${maxInputBytes / 2 ** 20} MiB`);
      }
    }
  } catch (error) {
    throw diskFailure("Reading", "standard input", error);
  }
  return Buffer.concat(pieces);
}
