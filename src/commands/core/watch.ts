/** Prints a text once, or again whenever it has changed. */

import type { Clock } from "../../lib/clock.ts";
import { StartError } from "../../lib/start-error.ts";
import type { Host } from "./host.ts";

interface WatchedOutput {
  readonly host: Pick<Host, "write" | "writeError" | "outputIsTerminal" | "stop">;
  readonly clock: Pick<Clock, "sleep">;
  /** False: print once. */
  readonly watch: boolean;
}

const turnMs = 2_000;
/** Moves the cursor to the first place of the screen, and removes everything after it. */
const clearScreen = "\u001b[H\u001b[2J";

/**
 * Prints what `make` returns. With `watch` it goes on until the host stops: on a terminal the text replaces the earlier
 * one; in a pipe only lines are printed that the earlier text did not have. After a failure it tries again.
 * @throws {StartError} from the first call of `make`.
 */
export async function printWatched(options: WatchedOutput, make: () => Promise<string>): Promise<void> {
  const { host, clock, watch } = options;
  const first = await make();
  host.write(watch && host.outputIsTerminal ? `${clearScreen}${first}` : first);
  const shown: LastPrinted = { text: first, problem: undefined };
  while (watch && !host.stop.aborted) {
    await clock.sleep(turnMs, host.stop);
    if (!host.stop.aborted) await printChange(options, shown, make);
  }
}

/** What was printed last. */
interface LastPrinted {
  text: string;
  problem: string | undefined;
}

async function printChange({ host }: WatchedOutput, shown: LastPrinted, make: () => Promise<string>): Promise<void> {
  try {
    const next = await make();
    if (next !== shown.text || shown.problem !== undefined) {
      host.write(changeOf(shown.text, next, host.outputIsTerminal));
    }
    [shown.text, shown.problem] = [next, undefined];
  } catch (error) {
    if (!(error instanceof StartError)) throw error;
    if (error.message !== shown.problem) host.writeError(`${error.message}\n`);
    shown.problem = error.message;
  }
}

function changeOf(before: string, now: string, isTerminal: boolean): string {
  if (isTerminal) return `${clearScreen}${now}`;
  const known = new Set(before.split("\n"));
  return now
    .split("\n")
    .filter((line) => !known.has(line))
    .map((line) => `${line}\n`)
    .join("");
}
