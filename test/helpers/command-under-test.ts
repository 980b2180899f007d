/** A command in this process, with a terminal, standard input and files that a test chooses. */

import { run } from "../../src/commands/commands.ts";
import type { Host } from "../../src/commands/core/host.ts";

export interface RunOptions {
  /** Standard input, in pieces. */
  readonly input?: Iterable<Uint8Array | string>;
  readonly inputIsTerminal?: boolean;
  readonly outputIsTerminal?: boolean;
  readonly environment?: Host["environment"];
}

export interface Ran {
  readonly code: number;
  readonly output: string;
  readonly errors: string;
}

/** Runs one command line to its end. */
export async function runCommand(args: readonly string[], options: RunOptions = {}): Promise<Ran> {
  const { input = [], inputIsTerminal = false, outputIsTerminal = false, environment = {} } = options;
  const output: string[] = [];
  const errors: string[] = [];
  const host: Host = {
    args,
    environment,
    outputIsTerminal,
    input: { isTerminal: inputIsTerminal, pieces: () => piecesOf(input) },
    write: (text) => output.push(text),
    writeError: (text) => errors.push(text),
    stop: new AbortController().signal,
    onExit: () => undefined,
    exit: () => undefined,
  };
  const code = await run(host);
  return { code, output: output.join(""), errors: errors.join("") };
}

async function* piecesOf(input: Iterable<Uint8Array | string>): AsyncIterable<Uint8Array> {
  for (const piece of input) yield Buffer.from(piece);
}
