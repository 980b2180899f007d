/** A machine in QEMU that waits for its approval, and a person who gives it in a browser. */

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { isJsonObject, type JsonValue } from "../../src/model/json.ts";
import { openChromium } from "../../tools/generate/browser.ts";
import { approvalName, approvalObjects } from "../firmware/approval-objects.ts";
import { bootSector, diskGreeting } from "../firmware/bootable-disk.ts";
import { linesWith } from "../firmware/guest-checks.ts";
import { type LinedServer, startLinedServer } from "../firmware/lined-server.ts";
import { bootTestLimitMs, startLimitMs } from "../firmware/machine-boot.ts";
import { missing } from "../helpers/requirements.ts";
import { type ConsoleCluster, startConsoleCluster } from "./console-cluster.ts";
import { newPerson, signIn } from "./people.ts";

const isLeftOut = missing(
  "chromium",
  "kube-apiserver",
  "kubectl",
  "qemu",
  "ipxe-rom",
  "cloud-kernel",
  "busybox-static",
);

const mac = "52:54:00:a1:9f:01";
const name = approvalName(mac);
const person = "system:serviceaccount:default:approver";

describe.skipIf(isLeftOut)("a machine that waits for its approval", () => {
  let world: ConsoleCluster;
  let server: LinedServer;
  let browser: Browser;

  beforeAll(async () => {
    world = await startConsoleCluster();
    [server, browser] = await Promise.all([
      startLinedServer(["--kubernetes", "--kubeconfig", world.kubeconfig]),
      openChromium(),
    ]);
  }, 2 * startLimitMs);
  afterAll(async () => {
    await browser?.close();
    await server?.stop();
    await world?.stop();
  });

  /** QEMU's machine with a disk that says hello. */
  function newMachine() {
    const disk = join(server.makeDirectory(), "machine.img");
    writeFileSync(disk, Buffer.concat([bootSector(), Buffer.alloc(1 << 20)]));
    return {
      mac,
      uuid: "a1b2c3d4-0000-4000-8000-0000000a9f01",
      firmware: "bios",
      disk,
      loader: server.loader,
    } as const;
  }

  it("appears in the waiting room, and boots when a person has clicked", { timeout: bootTestLimitMs }, async () => {
    const { page, troubles } = await newPerson(browser);
    await signIn(page, server.opsUrl, world.tokens.approver);
    await page.getByRole("link", { name: "Waiting room" }).click();
    await expect.poll(() => page.locator("h1").textContent()).toBe("Waiting room");
    const row = page.getByRole("row").filter({ hasText: mac });
    expect(await row.count()).toBe(0);
    // The page must not be loaded again.
    await page.evaluate(() => Object.assign(globalThis, { isSamePage: true }));

    await world.cluster.apply(approvalObjects(mac, false));
    const run = server.boot(newMachine());
    // The machine has asked: the row has its address.
    await row.filter({ hasText: "127.0.0.1" }).waitFor();
    await row.getByText("ipxe: 503 machine not approved").waitFor();
    expect(await page.evaluate(() => "isSamePage" in globalThis)).toBe(true);

    await row.getByRole("checkbox").check();
    await page.getByRole("button", { name: "Approve" }).click();
    await page.getByText(`default/${name} is approved`).waitFor();
    const { screen } = await run;

    expect(linesWith(screen, diskGreeting)).toEqual([diskGreeting]);
    await page.getByRole("link", { name: "Back" }).click();
    await row.waitFor({ state: "detached" });
    expect(troubles).toEqual([]);

    const { body } = await world.cluster.ask({ path: `/apis/davit.dev/v1alpha1/namespaces/default/machines/${name}` });
    expect(body).toMatchObject({ spec: { approved: true } });
    expect(ownersOf(body.metadata, "f:approved")).toEqual(["davit-console"]);
    const writes = await world.writes();
    const approvals = writes.filter(({ resource, verb }) => resource === "machines" && verb === "patch");
    expect(approvals).toMatchObject([{ user: person, name }]);
    const byDavit = writes.filter(({ user }) => user === "system:serviceaccount:default:davit");
    expect(byDavit.length).toBeGreaterThan(0);
    expect(byDavit.filter(({ resource }) => !resource.endsWith("/status"))).toEqual([]);
  });
});

/** The field managers of a field of the spec. */
function ownersOf(metadata: JsonValue | undefined, field: string): readonly JsonValue[] {
  const managed = isJsonObject(metadata) && Array.isArray(metadata.managedFields) ? metadata.managedFields : [];
  return managed.flatMap((entry) => {
    if (!isJsonObject(entry) || entry.subresource === "status") return [];
    const fields = isJsonObject(entry.fieldsV1) ? entry.fieldsV1["f:spec"] : undefined;
    return isJsonObject(fields) && field in fields && entry.manager !== undefined ? [entry.manager] : [];
  });
}
