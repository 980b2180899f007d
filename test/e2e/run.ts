/** Programs that are run to their end. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";

export interface RunOptions {
  /** What it reads. */
  readonly input?: string;
  /** Then it is cut off. */
  readonly timeoutMs?: number;
  /** Added to this process's own. */
  readonly environment?: Readonly<Record<string, string>>;
}

/** How a program ended. */
export interface Ended {
  /** Null when it was cut off. */
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

const usualLimitMs = 120_000;

/** Whatever comes of it. @throws {Error} when it cannot be started. */
export async function attempt(command: readonly string[], options: RunOptions = {}): Promise<Ended> {
  const [program = "", ...words] = command;
  const { input = "", timeoutMs = usualLimitMs, environment } = options;
  const child = spawn(program, words, { timeout: timeoutMs, env: { ...process.env, ...environment } });
  const closed = once(child, "close");
  // It may end before it has read everything; how it ended tells more.
  child.stdin.on("error", () => {});
  child.stdin.end(input);
  const [[code], stdout, stderr] = await Promise.all([closed, text(child.stdout), text(child.stderr)]);
  return { code: typeof code === "number" ? code : null, stdout, stderr };
}

/**
 * @returns its standard output.
 * @throws {Error} with what it wrote, when it does not end well.
 */
export async function run(command: readonly string[], options: RunOptions = {}): Promise<string> {
  const { code, stdout, stderr } = await attempt(command, options);
  if (code === 0) return stdout;
  const how = code === null ? "was cut off" : `ended with ${code}`;
  throw new Error(`${command.join(" ")} ${how}\n${stdout}${stderr}`);
}
