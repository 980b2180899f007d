/**
 * A machine is installed as often as somebody granted it: davit as a process, with objects from files. What is lost,
 * restored, set back or sent by a stranger opens no install.
 */

import { cp, readdir, rename, rm, writeFile } from "node:fs/promises";
import { setTimeout } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { DavitProcess } from "../../tools/davit-process.ts";
import {
  bootOf,
  configOf,
  type Grant,
  InstallWorld,
  ledgerId,
  queryOf,
  report,
  stateOf,
} from "../helpers/install-world.ts";

const soon = { timeout: 60_000, interval: 50 };
const limitMs = 300_000;
const noPermit = "503 no permit to install";

let world: InstallWorld;
beforeEach(async () => {
  world = await InstallWorld.make();
});
afterEach(() => world.stop());

/** Starts davit, and grants generation 1 in its ledger. */
async function serveGranted(timeout?: string): Promise<{ davit: DavitProcess; ledger: string }> {
  const davit = await world.serve();
  const ledger = await ledgerId(davit);
  await world.write({ grant: { generation: 1, ledger }, ...(timeout !== undefined && { timeout }) });
  await expect.poll(() => isPermitted(davit), soon).toBe(true);
  return { davit, ledger };
}

/** By a preview, which spends nothing. */
async function isPermitted({ opsUrl }: DavitProcess, number = 9): Promise<boolean> {
  const response = await fetch(`${opsUrl}/preview?${queryOf(number)}`);
  return (await response.text()).includes("/assets/wipe");
}

describe("a machine", { timeout: limitMs }, () => {
  it("waits without a grant, installs once with it, reports, and then boots its disk", async () => {
    const davit = await world.serve();
    expect(await bootOf(davit)).toBe(noPermit);
    const ledger = await ledgerId(davit);
    expect(ledger).toMatch(/^[0-9a-f]{8}$/);
    await world.write({ grant: { generation: 1, ledger } });
    await expect.poll(() => isPermitted(davit), soon).toBe(true);
    // Neither a preview nor a HEAD spends the permit.
    expect(await bootOf(davit, 1, "HEAD")).not.toBe("200");
    expect(await stateOf(davit)).toBe("");
    expect(await bootOf(davit)).toBe("install");
    expect(await stateOf(davit)).toBe("Claimed");
    // The answer may be lost: the script is repeated.
    expect(await bootOf(davit)).toBe("install");
    expect(await bootOf(davit, 1, "HEAD")).toBe("200");
    const path = await configOf(davit);
    expect(path).toMatch(/^\/report\/[\w-]{32}$/);
    expect(await stateOf(davit)).toBe("Installing");
    // From now on the machine gets its disk, but its installer still gets its configs.
    expect(await bootOf(davit)).toBe("disk");
    expect(await configOf(davit)).toBe(path);
    expect(await report(davit, path, "progress")).toBe(200);
    expect(await report(davit, path)).toBe(200);
    expect(await report(davit, path)).toBe(200);
    expect(await report(davit, path, "failed")).toBe(409);
    expect(await stateOf(davit)).toBe("Installed");
    expect(await configOf(davit)).toBe(noPermit);
    for (const _ of [1, 2, 3]) expect(await bootOf(davit)).toBe("disk");
    await davit.stop("SIGKILL");
    const again = await world.serve();
    expect(await bootOf(again)).toBe("disk");
    // Only a higher generation that names installed machines installs again.
    await world.write({ grant: { generation: 2, ledger } });
    await expect.poll(() => isPermitted(again), soon).toBe(true);
    expect(await bootOf(again)).toBe("disk");
    await world.write({ grant: { generation: 3, ledger, scope: "All" } });
    await expect.poll(() => bootOf(again), soon).toBe("install");
    expect(await report(again, path)).toBe(404);
  });

  it("that never reports boots its disk, and becomes Unconfirmed", async () => {
    const { davit } = await serveGranted("1m");
    expect(await bootOf(davit)).toBe("install");
    await configOf(davit);
    expect(await bootOf(davit)).toBe("disk");
    await expect.poll(() => stateOf(davit), { timeout: 150_000, interval: 500 }).toBe("Unconfirmed");
    expect([await bootOf(davit), await configOf(davit)]).toEqual(["disk", noPermit]);
  });

  it("whose install failed waits until somebody grants another one", async () => {
    const { davit, ledger } = await serveGranted();
    expect(await bootOf(davit)).toBe("install");
    expect(await report(davit, await configOf(davit), "failed")).toBe(200);
    expect(await bootOf(davit)).toBe(noPermit);
    await world.write({ grant: { generation: 2, ledger } });
    await expect.poll(() => bootOf(davit), soon).toBe("install");
  });

  it("opens nothing by forged, replayed or foreign tokens", async () => {
    const { davit } = await serveGranted();
    expect([await bootOf(davit, 1), await bootOf(davit, 2)]).toEqual(["install", "install"]);
    const [first, second] = [await configOf(davit, 1), await configOf(davit, 2)];
    const forged = `${second.slice(0, -4)}AAAA`;
    const mixed = first.slice(0, -20) + second.slice(-20);
    for (const path of [forged, mixed, `${second}AAAA`, "/report/x", "/report/"]) {
      expect(await report(davit, path)).toBe(404);
    }
    expect([await stateOf(davit, 1), await stateOf(davit, 2)]).toEqual(["Installing", "Installing"]);
    // Another machine's token closes that machine's install, and nothing else.
    expect(await report(davit, second, "failed")).toBe(200);
    expect([await bootOf(davit, 1), await bootOf(davit, 2)]).toEqual(["disk", noPermit]);
    expect(await report(davit, second, "installing")).toBe(409);
    expect(await bootOf(davit, 2)).toBe(noPermit);
  });
});

describe("a ledger", { timeout: limitMs }, () => {
  const restart = async (davit: DavitProcess, between: () => Promise<void>) => {
    await davit.stop("SIGKILL");
    await between();
    return await world.serve();
  };

  it("that is lost, or moved away, is another one: no grant names it, and a new grant does", async () => {
    const { davit, ledger } = await serveGranted();
    expect(await bootOf(davit, 1)).toBe("install");
    const again = await restart(davit, () => rename(world.at("data/ledger"), world.at("aside")));
    const other = await ledgerId(again);
    expect(other).not.toBe(ledger);
    for (const number of [1, 2]) expect(await bootOf(again, number)).toBe(noPermit);
    await world.write({ grant: { generation: 1, ledger: other } });
    await expect.poll(() => bootOf(again, 2), soon).toBe("install");
  });

  it("that is restored from an older copy is another one, and keeps what is installed", async () => {
    const { davit } = await serveGranted();
    expect(await bootOf(davit, 1)).toBe("install");
    expect(await report(davit, await configOf(davit, 1))).toBe(200);
    await davit.stop();
    await cp(world.at("data/ledger"), world.at("copy"), { recursive: true });
    const later = await world.serve();
    expect(await bootOf(later, 2)).toBe("install");
    expect(await report(later, await configOf(later, 2))).toBe(200);
    const restored = await restart(later, async () => {
      await rm(world.at("data/ledger"), { recursive: true });
      await rename(world.at("copy"), world.at("data/ledger"));
    });
    expect([await bootOf(restored, 1), await bootOf(restored, 2)]).toEqual(["disk", noPermit]);
    expect(await bootOf(restored, 3)).toBe(noPermit);
  });

  it("whose mark is damaged opens nothing, and says so", async () => {
    const { davit } = await serveGranted();
    expect(await bootOf(davit, 1)).toBe("install");
    expect(await report(davit, await configOf(davit, 1))).toBe(200);
    const again = await restart(davit, () => writeFile(world.at("data/ledger-mark"), "{"));
    expect([await bootOf(again, 1), await bootOf(again, 2)]).toEqual(["disk", "503 permit not logged yet"]);
    const { opsUrl } = again;
    expect(await (await fetch(`${opsUrl}/readyz?verbose`)).text()).toContain("the mark of the ledger cannot be read");
  });

  it("that is damaged ends the start, or begins anew where the operator wants that", async () => {
    const { davit } = await serveGranted();
    expect(await bootOf(davit, 1)).toBe("install");
    await davit.stop("SIGKILL");
    const names = (await readdir(world.at("data/ledger"))).filter((name) => name.endsWith(".log"));
    for (const name of names) await writeFile(world.at("data/ledger", name), "nonsense that is no log at all");
    await expect(world.serve()).rejects.toThrow(/ledger/);
    const again = await world.serve(["--on-damage", "move-aside"]);
    expect(again.log.map(({ msg, part }) => `${part} ${msg}`)).toContain("ledger store was damaged, it begins empty");
    expect([await bootOf(again, 1), await bootOf(again, 2)]).toEqual([noPermit, noPermit]);
  });
});

describe("objects", { timeout: limitMs }, () => {
  it("that are deleted and created again grant nothing twice", async () => {
    const { davit, ledger } = await serveGranted();
    expect(await bootOf(davit, 1)).toBe("install");
    expect(await report(davit, await configOf(davit, 1), "failed")).toBe(200);
    await rm(world.at("manifests/objects.yaml"));
    await world.write({ more: "" });
    await expect.poll(() => isPermitted(davit), soon).toBe(false);
    await world.write({ grant: { generation: 1, ledger } });
    await expect.poll(() => isPermitted(davit), soon).toBe(true);
    await setTimeout(200);
    expect(await bootOf(davit, 1)).toBe(noPermit);
    expect(await bootOf(davit, 2)).toBe("install");
  });

  it.each<[string, Partial<Grant>]>([
    ["another ledger", { generation: 1, ledger: "00000000" }],
    ["no ledger", { generation: 1 }],
    ["an until that is over", { generation: 1, until: "2020-01-01T00:00:00Z" }],
    ["an until that is too far ahead", { generation: 1, until: "2090-01-01T00:00:00Z" }],
  ])("that name %s grant nothing", async (_name, grant) => {
    const davit = await world.serve();
    const ledger = await ledgerId(davit);
    await world.write({ grant: { generation: 1, ...(grant.until !== undefined && { ledger }), ...grant } });
    await setTimeout(3_000);
    expect(await bootOf(davit)).toBe(noPermit);
    expect(await stateOf(davit)).toBe("");
  });
});
