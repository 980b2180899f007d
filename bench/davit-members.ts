/**
 * davits that are members of one store, on three members of etcd, all of them processes on this machine. They run as
 * the image runs them (`npm run bundle`).
 */

import { cpSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type EtcdMembers, startEtcdV3 } from "../test/helpers/etcd-v3.ts";
import { imageProgram } from "../test/helpers/image-program.ts";
import { type DavitProcess, startDavit } from "../tools/davit-process.ts";
import { manifests } from "./store-peers.ts";

/** As they run. */
export interface DavitMembers {
  readonly etcd: EtcdMembers;
  /** The directory of objects that all of them follow. */
  readonly manifests: string;
  /** By their numbers. */
  readonly all: readonly DavitProcess[];
  /** Starts the davit of a number, on its data directory. */
  start(number: number): Promise<DavitProcess>;
}

export interface DavitMembersOptions {
  /** Of etcd; 4 GiB unless given. */
  readonly quotaBytes?: number;
  /** How wrong the clock of a davit is, in milliseconds. */
  readonly clockOffMs?: (number: number) => number;
  /** Writes what they follow into a new directory in a folder, and returns its path; the quickstart's unless given. */
  readonly writeObjects?: (folder: string) => string;
}

/** Starts a number of davits for `use`, and ends them. `BENCH_DIR` names a directory on the disk to measure. */
export async function withDavits(
  count: number,
  use: (members: DavitMembers) => Promise<void>,
  { quotaBytes = 4 * 2 ** 30, clockOffMs = () => 0, writeObjects = copyQuickstart }: DavitMembersOptions = {},
): Promise<void> {
  const etcd = await startEtcdV3({ count: 3, args: [`--quota-backend-bytes=${quotaBytes}`] });
  const folder = await mkdtemp(join(process.env.BENCH_DIR ?? tmpdir(), "davit-bench-members-"));
  const objects = writeObjects(folder);
  const all: DavitProcess[] = [];
  const start = async (number: number) => {
    const endpoints = etcd.urls.map(({ origin }) => origin).join(",");
    const url = `http://127.0.0.1:${20_000 + number}`;
    const args = ["--log-level", "info", "--store-etcd-endpoints", endpoints, "--store-advertise-url", url];
    const clock = `data:text/javascript,const n=Date.now;Date.now=()=>n()+(${clockOffMs(number)})`;
    const { program, nodeArgs: imageArgs } = imageProgram();
    const nodeArgs = [...imageArgs, ...(clockOffMs(number) === 0 ? [] : ["--import", clock])];
    const dataDir = join(folder, String(number));
    const davit = await startDavit({ manifests: objects, dataDir, args, program, nodeArgs });
    all[number] = davit;
    return davit;
  };
  try {
    for (let number = 0; number < count; number++) await start(number);
    await use({ etcd, manifests: objects, all, start });
  } finally {
    for (const davit of all) await davit.stop();
    await etcd.stop();
    await rm(folder, { recursive: true });
  }
}

function copyQuickstart(folder: string): string {
  const objects = join(folder, "manifests");
  cpSync(manifests, objects, { recursive: true });
  return objects;
}
