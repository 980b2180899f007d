/** Backups have the ledger, and a restored ledger closes permits without opening any: davit as a process. */

import { readdir } from "node:fs/promises";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { DavitProcess } from "../../tools/davit-process.ts";
import { runCommand } from "../helpers/command-under-test.ts";
import { bootOf, configOf, InstallWorld, ledgerId, report, stateOf } from "../helpers/install-world.ts";

const soon = { timeout: 60_000, interval: 50 };
const noPermit = "503 no permit to install";

let world: InstallWorld;
beforeEach(async () => {
  world = await InstallWorld.make();
});
afterEach(() => world.stop());

/** Grants every machine of the Group an install, whatever it has. */
async function grantAll(davit: DavitProcess): Promise<void> {
  await world.write({ grant: { generation: 1, ledger: await ledgerId(davit), scope: "All" } });
  await expect.poll(() => bootOf(davit, 1), soon).toBe("install");
}

async function restoreTo(davit: DavitProcess, name: string, ...source: readonly string[]): Promise<DavitProcess> {
  const file = world.at(`${name}.backup`);
  await davit.stop("SIGKILL");
  expect((await runCommand(["inspect", file])).code).toBe(0);
  const { code, output, errors } = await runCommand([
    "restore",
    "--input",
    file,
    "--data-dir",
    world.at(name),
    ...source,
  ]);
  expect([code, errors]).toEqual([0, expect.any(String)]);
  expect(output + errors).toContain('"machines":3');
  return await world.serve([], { dataDir: world.at(name) });
}

it.each(["a running davit", "a data directory"])(
  "a restored backup of %s knows who is installed, and no grant opens an install again",
  { timeout: 300_000 },
  async (source) => {
    const davit = await world.serve();
    await grantAll(davit);
    expect(await report(davit, await configOf(davit, 1))).toBe(200);
    expect(await bootOf(davit, 2)).toBe("install");
    expect(await report(davit, await configOf(davit, 2), "failed")).toBe(200);
    expect(await bootOf(davit, 3)).toBe("install");
    const output = ["--output", world.at("restored.backup")];
    const dataDir = ["--data-dir", world.at("data")];
    if (source === "a data directory") await davit.stop();
    const from = source === "a data directory" ? dataDir : ["--store", davit.storeUrl, ...dataDir];
    expect((await runCommand(["backup", ...from, ...output])).code).toBe(0);
    const again = await restoreTo(davit, "restored");
    expect([await stateOf(again, 1), await stateOf(again, 2), await stateOf(again, 3)]).toEqual([
      "Installed",
      "Unconfirmed",
      "Unconfirmed",
    ]);
    // The objects still have the grant of the former ledger.
    for (const number of [1, 2, 3]) expect(await bootOf(again, number)).toBe("disk");
    expect(await bootOf(again, 4)).toBe(noPermit);
    expect(await (await fetch(`${again.opsUrl}/readyz?verbose`)).text()).toContain("names another ledger");
    await world.write({ grant: { generation: 2, ledger: await ledgerId(again), scope: "NeverInstalled" } });
    await expect.poll(() => bootOf(again, 4), soon).toBe("install");
    for (const number of [1, 2, 3]) expect(await bootOf(again, number)).toBe("disk");
  },
);

it("a restore takes no place that has a ledger: its entries are newer", { timeout: 300_000 }, async () => {
  const davit = await world.serve(["--backup-every", "1h", "--backup-dir", world.at("backups")]);
  await grantAll(davit);
  await expect.poll(async () => (await readdir(world.at("backups")).catch(() => [])).length, soon).toBe(1);
  await davit.stop();
  const [name = ""] = await readdir(world.at("backups"));
  const input = world.at("backups", name);
  const { code, errors } = await runCommand(["restore", "--input", input, "--data-dir", world.at("data")]);
  expect([code > 0, errors]).toEqual([true, expect.stringContaining("it is not empty")]);
  const diff = await runCommand(["diff", "--from", input, "--manifests", world.at("manifests")]);
  expect(diff.errors).not.toContain("later davit");
});
