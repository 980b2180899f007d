/** Installs at a `davit boot`: it asks the writer for each, and boots disks without it. */

import { stat } from "node:fs/promises";
import type { Server } from "node:http";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type DavitBootProcess, type DavitProcess, storeOf } from "../../tools/davit-process.ts";
import { bootNow, bootOf, configOf, InstallWorld, ledgerId, report, stateOf } from "../helpers/install-world.ts";
import { startStoreRelay } from "../helpers/store-relay.ts";

const soon = { timeout: 60_000, interval: 50 };
const limitMs = 180_000;
const late = "503 permit not logged yet";

let world: InstallWorld;
const proxies: Server[] = [];
beforeEach(async () => {
  world = await InstallWorld.make();
});
afterEach(async () => {
  for (const proxy of proxies.splice(0)) proxy.closeAllConnections();
  await world.stop();
});

async function serveGranted(): Promise<DavitProcess> {
  const davit = await world.serve();
  await world.write({ grant: { generation: 1, ledger: await ledgerId(davit) } });
  return davit;
}

const storeAddress = ({ storeUrl }: DavitProcess) => ["--store-address", new URL(storeUrl).host];

/** Asks again until the follower has the objects and the ledger that the writer has. */
const installs = (davit: DavitBootProcess, number: number) =>
  expect.poll(() => bootOf(davit, number), soon).toBe("install");

describe("a follower", { timeout: limitMs }, () => {
  it("installs once, forwards reports, and boots the disk", async () => {
    const davit = await serveGranted();
    const follower = await world.boot(...storeOf(davit));
    await installs(follower, 1);
    expect(await stateOf(davit, 1)).toBe("Claimed");
    const path = await configOf(follower, 1);
    expect(path).toBe(await configOf(davit, 1));
    expect(await report(follower, path)).toBe(200);
    expect(await report(follower, "/report/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")).toBe(404);
    expect(await stateOf(davit, 1)).toBe("Installed");
    await expect.poll(() => bootOf(follower, 1), soon).toBe("disk");
    expect(await bootOf(davit, 1)).toBe("disk");
  });

  it("of a writer that is away lets installs wait and boots disks, after a restart from its copy, too", async () => {
    const davit = await serveGranted();
    const args = [...storeOf(davit), "--copy-file", world.at("copy"), "--limit", "source-grace=100ms"];
    const follower = await world.boot(...args);
    await installs(follower, 1);
    expect(await report(follower, await configOf(follower, 1))).toBe(200);
    await expect.poll(() => bootOf(follower, 1), soon).toBe("disk");
    await expect.poll(() => stat(world.at("copy.ledger")).then(({ mode }) => mode & 0o777), soon).toBe(0o600);
    // The copy on disk follows within seconds.
    await follower.stop();
    await davit.stop("SIGKILL");
    const alone = await world.boot(...args);
    expect(await bootOf(alone, 1)).toBe("disk");
    expect(await bootNow(alone, 2)).toMatch(/^503/);
    expect(await configOf(alone, 2)).toMatch(/^503/);
    expect(await report(alone, "/report/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")).toBe(503);
    await world.serve(storeAddress(davit));
    await installs(alone, 2);
  });

  it("of a writer of an earlier version lets installs wait", async () => {
    const davit = await serveGranted();
    const old = await earlierVersion(new URL(davit.storeUrl));
    const follower = await world.boot("--store", old, "--data-dir", davit.dataDir);
    const answers = new Set<string>();
    for (let count = 0; count < 20; count++) answers.add(await bootOf(follower, 1));
    expect([...answers].every((answer) => answer.startsWith("503"))).toBe(true);
    expect(answers).toContain(late);
    expect(await stateOf(davit, 1)).toBe("");
  });

  it("and its writer give one machine one install, whoever is asked first", async () => {
    const davit = await serveGranted();
    const follower = await world.boot(...storeOf(davit));
    await installs(davit, 9);
    const all = [1, 2, 3, 4, 5].flatMap((number) => [bootOf(davit, number), bootOf(follower, number)]);
    for (const boot of await Promise.all(all)) expect(["install", late]).toContain(boot);
    for (const number of [1, 2, 3, 4, 5]) {
      await configOf(davit, number);
      expect(await bootOf(davit, number)).toBe("disk");
      await expect.poll(() => bootOf(follower, number), soon).toBe("disk");
    }
  });
});

/** Passes on all requests but those that an earlier davit does not know. */
async function earlierVersion(store: URL): Promise<string> {
  const isLater = (target: string) => /^\/davit\/v1\/(ledger|permit|report)/.test(target);
  const { server, url } = await startStoreRelay(store, (target) => (isLater(target) ? 404 : undefined));
  proxies.push(server);
  return url;
}
