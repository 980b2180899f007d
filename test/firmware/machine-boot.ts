/** A davit with its boot assets, and machines that boot from it, one after the other. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFailed } from "vitest";
import { startDavit } from "../../tools/davit-process.ts";
import { type Architecture, buildBootAssets } from "../../tools/firmware/boot-assets.ts";
import type { Lan } from "../../tools/firmware/lan.ts";
import { hostSeenByMachine, type Machine } from "../../tools/firmware/machine.ts";
import { type Onlooker, powerOn, type Run, tail } from "./power-on.ts";

// A boot takes 10 to 15 seconds without hardware virtualisation, and several times that beside busy neighbours.
const bootLimitMs = 180_000;
/** For a test that boots one machine. */
export const bootTestLimitMs = bootLimitMs + 30_000;
/** For the hook that calls `startBootServer`. */
export const startLimitMs = 90_000;

export interface BootServer {
  /** `host:port` of the boot service, on this computer and as a machine sees it. */
  readonly authority: string;
  readonly authoritySeenByMachine: string;
  /** Of the listener for operators, on this computer. */
  readonly opsUrl: string;
  /** davit's data directory. */
  readonly dataDir: string;
  /** The directory that `/assets/` serves. */
  readonly assets: string;
  /** A new directory, which goes when the server stops. */
  makeDirectory(): string;
  /** Boots a machine and waits until it is off. When the test fails, the last lines of its screen are printed. */
  boot(machine: Machine, onlooker?: Onlooker): Promise<Run>;
  /** Ends davit in the middle of whatever it does (SIGKILL). */
  crash(): Promise<void>;
  /** Starts it again after that, on the same port and with what it had stored. Resolves when it answers machines. */
  startAgain(): Promise<void>;
  stop(): Promise<void>;
}

export interface BootServerOptions {
  /** Of the machines. */
  readonly architecture?: Architecture;
  /** Where davit shall be, and its machines; this computer and QEMU's user network unless given. */
  readonly lan?: Lan;
}

/**
 * Builds the assets and starts a davit.
 * @param source words of the command line that say where its objects come from.
 */
export async function startBootServer(
  source: readonly string[],
  { architecture = "amd64", lan }: BootServerOptions = {},
): Promise<BootServer> {
  const folder = mkdtempSync(join(tmpdir(), "davit-firmware-"));
  const remove = () => rmSync(folder, { recursive: true, force: true });
  const assets = join(folder, "assets");
  const dataDir = join(folder, "data");
  const start = (place: readonly string[]) => {
    const args = [...source, "--assets-dir", assets, ...place];
    return startDavit({ dataDir, args, ...(lan && { within: lan.enter }) });
  };
  let davit = await buildBootAssets(join(assets, "quickstart"), architecture)
    .then(() => start(lan === undefined ? [] : ["--boot-address", lan.authority]))
    .catch((cause: unknown) => {
      remove();
      throw cause;
    });
  const { host, port } = new URL(davit.bootUrl);
  return {
    authority: lan?.authority ?? host,
    authoritySeenByMachine: lan?.authority ?? `${hostSeenByMachine}:${port}`,
    // Another one after `startAgain`.
    get opsUrl() {
      return davit.opsUrl;
    },
    assets,
    dataDir,
    makeDirectory: () => mkdtempSync(join(folder, "more-")),
    boot: async (machine, onlooker) => {
      const run = await powerOn(machine, { timeoutMs: bootLimitMs, ...(onlooker && { onlooker }) });
      onTestFailed(() => void process.stderr.write(`${tail(run.screen)}\n`));
      return run;
    },
    crash: async () => void (await davit.stop("SIGKILL")),
    startAgain: async () => {
      davit = await start(["--boot-address", host]);
    },
    stop: async () => {
      await davit.stop();
      remove();
    },
  };
}
