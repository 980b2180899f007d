/**
 * `make recording`: runs `make run`, boots a machine from it with `make boot`, and draws both terminals over time:
 * docs/first-boot.svg, which README.md shows. It takes the ports of `make run`, and needs QEMU and `make boot-assets`.
 *
 * What the programs write is drawn as it is. Only waits of more than a second are shortened.
 */

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { homedir, hostname } from "node:os";
import { join } from "node:path";
import { drawRecording, type Frame } from "./recording-svg.ts";
import { Terminal } from "./terminal.ts";

const root = join(import.meta.dirname, "../..");
const path = join(root, "docs/first-boot.svg");

const columns = 100;
const maxWaitMs = 1_000;
const frameMs = 200;
const limitMs = 180_000;

/** What a program wrote, and when. */
interface Piece {
  readonly atMs: number;
  readonly text: string;
}

interface Recorded {
  readonly command: string;
  readonly child: ChildProcess;
  readonly pieces: Piece[];
}

const davit = record("make run");
try {
  await written(davit, "Try:");
  const machine = record("make boot");
  try {
    await written(machine, "davit:/#");
  } finally {
    stop(machine);
  }
  const text = [...davit.pieces, ...machine.pieces].map((piece) => piece.text).join("");
  const words = new Set(text.split(/[\s"'=,:()]+/));
  const shown = [root, homedir(), hostname()].filter((name) => words.has(name) || words.has(`${name}/`));
  if (shown.length > 0) throw new Error(`The recording would show names of this computer: ${shown.join(", ")}`);
  const shortened = shortenWaits([davit, machine].flatMap(({ pieces }) => pieces.map(({ atMs }) => atMs)));
  const panes = [
    { title: "davit", height: 15, frames: framesOf(davit, 15, shortened) },
    { title: "a machine's serial console (QEMU)", height: 24, frames: framesOf(machine, 24, shortened) },
  ];
  await writeFile(path, drawRecording(panes, columns));
} finally {
  stop(davit);
  await once(davit.child, "exit");
}

/** Starts a command in a terminal of its own, so that it shows its colours. */
function record(command: string): Recorded {
  const pieces: Piece[] = [{ atMs: Date.now(), text: `$ ${command}\r\n` }];
  const inside = `stty cols ${columns} rows 24; exec ${command}`;
  const child = spawn("script", ["--quiet", "--flush", "--command", inside, "/dev/null"], {
    cwd: root,
    // A make below another one names its directory.
    env: { ...process.env, MAKEFLAGS: undefined, MAKELEVEL: undefined },
    stdio: ["pipe", "pipe", "inherit"],
  });
  child.stdout?.setEncoding("utf8").on("data", (text: string) => pieces.push({ atMs: Date.now(), text }));
  return { command, child, pieces };
}

/** `script` hands the signal on to what it runs. */
function stop({ child }: Recorded): void {
  child.kill("SIGTERM");
}

async function written({ command, child, pieces }: Recorded, text: string): Promise<void> {
  const endMs = Date.now() + limitMs;
  const all = () => pieces.map((piece) => piece.text).join("");
  while (!all().includes(text)) {
    if (child.exitCode !== null || Date.now() > endMs) throw new Error(`${command} did not say "${text}"\n${all()}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/** Where each moment is once no wait is longer than `maxWaitMs`. */
function shortenWaits(moments: readonly number[]): (atMs: number) => number {
  const sorted = moments.toSorted((a, b) => a - b);
  const places = new Map<number, number>();
  let place = 0;
  for (const [at, moment] of sorted.entries()) {
    place += Math.min(maxWaitMs, moment - (sorted[at - 1] ?? moment));
    places.set(moment, place);
  }
  return (atMs) => places.get(atMs) ?? 0;
}

function framesOf({ pieces }: Recorded, height: number, shortened: (atMs: number) => number): readonly Frame[] {
  const terminal = new Terminal(columns, height);
  const frames: Frame[] = [];
  for (const [at, { atMs, text }] of pieces.entries()) {
    terminal.write(text);
    const next = pieces[at + 1];
    const frame = Math.ceil(shortened(atMs) / frameMs);
    // Of several changes within a frame, the last one is drawn.
    if (next !== undefined && Math.ceil(shortened(next.atMs) / frameMs) === frame) continue;
    frames.push({ atMs: frame * frameMs, rows: terminal.rows() });
  }
  return frames;
}
