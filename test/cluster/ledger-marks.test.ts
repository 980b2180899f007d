/** The mark of a ledger in a real cluster: each ledger needs one of its own, and a mark that is gone opens nothing. */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { ClusterAccess } from "../../tools/cluster/cluster.ts";
import { type DavitProcess, startDavit } from "../../tools/davit-process.ts";
import { bootOf, hourMs, installAssets, installObjects, ledgerId } from "../helpers/install-world.ts";
import { missing } from "../helpers/requirements.ts";
import { sharedCluster } from "../helpers/shared-cluster.ts";

const soon = { timeout: 60_000, interval: 100 };
const asleep = "503 no permit to install";

describe.skipIf(missing("kube-apiserver", "kubectl"))("davits in one namespace", { timeout: 180_000 }, () => {
  let cluster: ClusterAccess;
  let folder: string;
  let clusters = 0;
  const running: DavitProcess[] = [];
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "davit-marks-"));
    cluster = await sharedCluster(`ledger-marks-${clusters++}`);
    await cluster.apply(installObjects(undefined));
  }, 240_000);
  afterEach(async () => {
    await Promise.all(running.splice(0).map((davit) => davit.stop("SIGKILL")));
    await cluster?.stop();
    await rm(folder, { recursive: true });
  });

  /** @param mark the ConfigMap; that of the preset unless given. */
  async function serve(name: string, mark?: string): Promise<DavitProcess> {
    const named = mark === undefined ? [] : ["--ledger-mark-configmap", mark];
    const args = [...named, ...(await installAssets(folder))];
    const davit = await startDavit({ kubeconfig: cluster.kubeconfig, dataDir: join(folder, name), args });
    running.push(davit);
    await expect.poll(() => ledgerId(davit), soon).toMatch(/^[0-9a-f]{8}$/);
    return davit;
  }

  const grant = (generation: number, ledger: string) =>
    cluster.apply(
      installObjects({ generation, ledger, until: new Date(Date.now() + hourMs).toISOString(), scope: "All" }),
    );

  const markOf = async (name: string) =>
    (await cluster.ask({ path: `/api/v1/namespaces/${cluster.namespace}/configmaps/${name}` })).body;

  it("with marks of their own keep their ledgers over restarts of each", async () => {
    const [one, two] = [await serve("one"), await serve("two", "two-davit-ledger")];
    const ids = [await ledgerId(one), await ledgerId(two)];
    await grant(1, ids[0] ?? "");
    await expect.poll(() => bootOf(one, 1), soon).toBe("install");
    expect(await bootOf(two, 1)).toBe(asleep);
    await Promise.all([one.stop("SIGKILL"), two.stop("SIGKILL")]);
    const again = [await serve("one"), await serve("two", "two-davit-ledger")];
    expect(await Promise.all(again.map(ledgerId))).toEqual(ids);
    expect(await markOf("davit-ledger")).toMatchObject({ data: { id: ids[0] } });
    expect(await markOf("two-davit-ledger")).toMatchObject({ data: { id: ids[1] } });
  });

  it("that share a mark never install both: the mark is that of the later one", async () => {
    const one = await serve("one");
    const first = await ledgerId(one);
    await grant(1, first);
    await expect.poll(() => bootOf(one, 1), soon).toBe("install");
    const two = await serve("two");
    const second = await ledgerId(two);
    await expect.poll(() => markOf("davit-ledger"), soon).toMatchObject({ data: { id: second } });
    // The earlier one can no longer prove that its ledger is whole.
    for (let number = 2; number < 6; number++) expect(await bootOf(one, number)).not.toBe("install");
    await expect
      .poll(async () => (await fetch(`${one.opsUrl}/readyz?verbose`)).text(), soon)
      .toContain("its mark cannot");
    await one.stop("SIGKILL");
    const again = await serve("one");
    expect([first, second]).not.toContain(await ledgerId(again));
    expect(await bootOf(again, 6)).toBe(asleep);
  });

  it("and one whose mark has another name begins a new ledger, aloud: no machine installs a second time", async () => {
    const davit = await serve("one");
    const former = await ledgerId(davit);
    await grant(1, former);
    await expect.poll(() => bootOf(davit, 1), soon).toBe("install");
    await davit.stop("SIGKILL");
    const renamed = await serve("one", "renamed");
    await expect.poll(() => ledgerId(renamed), soon).not.toBe(former);
    expect(renamed.log).toContainEqual(
      expect.objectContaining({ former, msg: "ledger is older than its mark, a new one begins" }),
    );
    expect(await bootOf(renamed, 2)).toBe(asleep);
    // The machine has claimed, so its disk may have a system.
    expect(await bootOf(renamed, 1)).not.toBe("install");
  });
});
