/** The peer of the boot benchmarks: a matchbox binary that `MATCHBOX` names, with the same groups as files. */

import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Matchbox, startMatchbox as startOn } from "../test/import-matchbox/matchbox-process.ts";
import { benchBoot, benchMetadata, benchSelector, ignitionTemplate } from "./machines.ts";

/** Starts a binary with this many groups. Its boot arguments are no templates, so they stay as they are. */
export async function startMatchbox(binary: string, groups: number): Promise<Matchbox> {
  const directory = await mkdtemp(join(tmpdir(), "davit-bench-matchbox-"));
  const remove = () => rm(directory, { recursive: true });
  try {
    await writeData(directory, groups);
    const matchbox = await startOn(binary, directory, directory);
    return {
      ...matchbox,
      stop: async () => {
        await matchbox.stop();
        await remove();
      },
    };
  } catch (error) {
    await remove();
    throw error;
  }
}

async function writeData(directory: string, groups: number): Promise<void> {
  for (const folder of ["groups", "profiles", "ignition"]) await mkdir(join(directory, folder));
  const { kernel, initrd, args } = benchBoot;
  const profile = { id: "linux", name: "Linux", boot: { kernel, initrd, args }, ignition_id: "linux.ign" };
  await writeFile(join(directory, "profiles", "linux.json"), JSON.stringify(profile));
  await writeFile(
    join(directory, "ignition", "linux.ign"),
    ignitionTemplate((name) => `{{.${name}}}`),
  );
  for (let at = 0; at < groups; at++) {
    const id = `node-${at}`;
    const group = { id, name: id, profile: "linux", selector: benchSelector(at, groups), metadata: benchMetadata(at) };
    await writeFile(join(directory, "groups", `${id}.json`), JSON.stringify(group));
  }
}
