/** Loads manifests for commands that work without a server: from directories, from standard input, or from both. */

import { diskFailure } from "../../lib/files/disk-sentence.ts";
import { StartError } from "../../lib/start-error.ts";
import { visible } from "../../lib/text/visible.ts";
import type { SourceProblem } from "../../model/objects/source.ts";
import { type LoadOptions, loadManifests, type Manifests } from "../../offline/load/load-manifests.ts";
import type { Host } from "./host.ts";
import { inputMark } from "./offline-options.ts";

// Ten times the size of 10,000 objects as kubectl writes them.
const maxInputBytes = 256 * 1024 * 1024;

interface InputOptions extends Omit<LoadOptions, "directories" | "input"> {
  /** Directories, and `-` for standard input. An empty list reads piped input. */
  readonly manifests: readonly string[];
}

/**
 * Loads the manifests.
 * @throws {StartError} if there is nothing to read, or standard input cannot be read.
 */
export async function loadInput({ manifests, ...options }: InputOptions, host: Host): Promise<Manifests> {
  return await loadManifests({ ...options, ...(await inputOf(manifests, host)) });
}

/** Returns where to read manifests: directories, and what standard input has. @throws {StartError} as `loadInput`. */
export async function inputOf(
  manifests: readonly string[],
  host: Host,
): Promise<Pick<LoadOptions, "directories" | "input">> {
  const directories = manifests.filter((path) => path !== inputMark);
  return { directories, input: readsInput(manifests) ? await readInputBytes(host) : undefined };
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

/**
 * Refuses manifests that are not understood completely.
 * @throws {StartError}
 */
export function assertReadable(problems: readonly SourceProblem[], { writeError }: Pick<Host, "writeError">): void {
  if (problems.length === 0) return;
  for (const problem of problems) writeError(problemLine(problem));
  const count = problems.length === 1 ? "1 problem" : `${problems.length} problems`;
  throw new StartError(`Nothing is compared because of ${count}: correct the manifests, davit lint shows more`);
}

/** Returns a problem as a line for a terminal. */
export function problemLine({ origin, message }: SourceProblem): string {
  return `${visible(origin)}: ${visible(message)}\n`;
}
