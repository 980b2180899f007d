/** The audit log of davit as a process: what changed for which machines, each permit, and nothing of a secret. */

import { execFileSync } from "node:child_process";
import { hash } from "node:crypto";
import { mkdtempSync, readFileSync, rmdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { rename, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { isJsonObject, type JsonObject, parseJsonObject } from "../../src/model/json.ts";
import {
  bootOf,
  configOf,
  type Grant,
  InstallWorld,
  installObjects,
  ledgerId,
  macOf,
  report,
} from "../helpers/install-world.ts";
import { missing } from "../helpers/requirements.ts";

const soon = { timeout: 60_000, interval: 50 };
const limitMs = 180_000;
const planted = "pl4nted-s3cret";
const machineCount = 200;

let world: InstallWorld;
beforeEach(async () => {
  world = await InstallWorld.make();
});
afterEach(() => world.stop());

/** Writes objects as somebody moves a finished file: an old version takes effect at once. */
async function write(manifests: string): Promise<void> {
  await writeFile(world.at("next.yaml"), manifests);
  await utimes(world.at("next.yaml"), 1, 1);
  await rename(world.at("next.yaml"), world.at("manifests", "objects.yaml"));
}

function linesIn(path: string): readonly JsonObject[] {
  const texts = readFileSync(path, "utf8").split("\n").slice(0, -1);
  return texts.map((text) => parseJsonObject(text) ?? { unreadable: text });
}

/** Objects of which every text has the secret: the name of none of them does. */
function withSecrets(grant: Grant | undefined, selector: string): string {
  return `${installObjects(grant)}---
apiVersion: v1
kind: Secret
metadata: {name: token, labels: {davit.dev/allow-template: "true"}}
stringData: {text: ${planted}-of-secret}
---
apiVersion: davit.dev/v1alpha1
kind: Profile
metadata: {name: everyday}
spec:
  effect: Boot
  boot: {kernel: /assets/k, args: [${planted}-argument]}
  metadata: {password: ${planted}-metadata}
  generic: {templateFrom: {secretKeyRef: {name: token, key: text}}}
  cloudConfig: {inline: "#cloud-config\\npassword: ${planted}-template\\n"}
---
apiVersion: davit.dev/v1alpha1
kind: Group
metadata: {name: web}
spec:
  selector: ${selector}
  profileRef: {name: everyday}
  metadata: {key: ${planted}-group}
`;
}

const narrow = `{matchLabels: {mac: "${macOf(1)}"}}`;
const wide = '{matchExpressions: [{key: mac, operator: Prefix, values: ["52:54:00"]}]}';

describe("the audit log", { timeout: limitMs }, () => {
  it("has a line for a wider selector, for each permit and each correction, and no secret", async () => {
    const path = world.at("audit.log");
    const args = ["--audit-log", path, "--tombstone-ttl", "1s"];
    await write(withSecrets(undefined, narrow));
    const davit = await world.serve(args);
    const lines = () => linesIn(path);
    const objects = () => lines().filter(({ event }) => event === "object");
    await expect.poll(() => objects().length, soon).toBe(4);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(
      objects()
        .map(({ kind, name, action }) => `${kind} ${name} ${action}`)
        .toSorted(),
    ).toEqual(["Group all created", "Group web created", "Profile everyday created", "Profile wipe created"]);

    for (let number = 1; number <= machineCount; number++) {
      await (await fetch(`${davit.bootUrl}/ipxe?mac=${macOf(number)}&token=${planted}-query`)).text();
    }
    await write(withSecrets(undefined, wide));
    await expect.poll(() => objects().length, soon).toBe(5);
    expect(objects().at(-1)).toEqual({
      audit: 1,
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
      event: "object",
      action: "updated",
      kind: "Group",
      namespace: "default",
      name: "web",
      generation: 1,
      file: expect.stringMatching(/^objects\.yaml, document 5 \(line \d+\)$/),
      sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
      changed: ["expressions", "selector"],
      profile: "default/everyday",
      groups: ["default/web"],
      groupCount: 1,
      machines: { before: 1, after: machineCount },
      serving: { before: "served", after: "served" },
      effect: { before: "Boot", after: "Boot" },
    });
    const bytes = readFileSync(world.at("manifests", "objects.yaml"));
    expect(objects().at(-1)?.sha256).toBe(hash("sha256", bytes, "hex"));

    const permits = () => lines().filter(({ event }) => event === "permit");
    const until = new Date(Date.now() + 24 * 60 * 60_000).toISOString();
    const grant: Grant = { generation: 1, ledger: await ledgerId(davit), until };
    await write(withSecrets(grant, wide));
    await expect.poll(() => permits().length, soon).toBe(1);
    // The everyday Group also selects the machine, by a mac. The installing one has the label in its query.
    await write(withSecrets(grant, narrow.replace("52-54-00-00-00-01", "52-54-00-00-00-c8")));
    await expect.poll(() => bootOf(davit, 7), soon).toBe("install");
    // davit may notice the second change only now, and answers 503 until it counts.
    await expect.poll(() => configOf(davit, 7), soon).not.toMatch(/^503 /);
    expect(await report(davit, await configOf(davit, 7))).toBe(200);
    const forget = { method: "POST", body: JSON.stringify({ machine: macOf(7) }) };
    const headers = { "content-type": "application/json", "x-davit-action": "forget" };
    expect((await fetch(`${davit.opsUrl}/machines/forget`, { ...forget, headers })).status).toBe(200);
    await write(withSecrets(undefined, narrow));
    await expect.poll(() => permits().length, soon).toBe(4);
    const identity = `mac/${macOf(7).replaceAll("-", ":")}`;
    const named = { event: "permit", grant: "group/default/all", generation: 1 };
    const machine = { machine: [identity], group: "default/all", profile: "default/wipe" };
    expect(permits()).toMatchObject([
      { ...named, action: "opened", scope: "NeverInstalled", until: expect.any(String) },
      { ...named, ...machine, action: "claimed", address: "127.0.0.1" },
      { ...named, ...machine, action: "closed", why: "installed", reported: "installed" },
      { ...named, action: "closed", why: "withdrawn" },
    ]);
    expect(lines().filter(({ event }) => event === "action")).toMatchObject([
      { action: "forget", via: "operations", machine: macOf(7) },
    ]);

    await expect.poll(() => objects().at(-1), soon).toMatchObject({ name: "web", machines: { after: 1 } });
    const count = lines().length;
    await davit.stop();
    const again = await world.serve(args);
    expect(await bootOf(again, 9)).not.toBe("install");
    await write(withSecrets(undefined, narrow).replace("effect: Boot", "effect: Install"));
    await expect.poll(() => lines().length, soon).toBe(count + 1);
    // After the restart only this change came: of a Profile, with the Group that has it.
    expect(lines().at(-1)).toMatchObject({
      kind: "Profile",
      name: "everyday",
      changed: ["effect"],
      groups: ["default/web"],
      machines: { before: 1, after: 1 },
      effect: { before: "Boot", after: "Install" },
    });
    await again.stop();
    expect(readFileSync(path, "utf8")).not.toContain(planted);
    expect(lines().every((line) => line.audit === 1)).toBe(true);
  });

  it("goes to standard output between the lines of the log", async () => {
    const davit = await world.serve(["--audit-log", "-"]);
    const names = () => davit.log.flatMap(({ audit, kind, name }) => (audit === 1 ? [`${kind} ${name}`] : []));
    await expect.poll(names, soon).toEqual(["Profile wipe", "Group all"]);
  });

  it("stops the start if its file can never be written, with what to do", async () => {
    const started = world.serve(["--audit-log", world.at("missing", "audit.log")]);
    await expect(started).rejects.toThrow("for --audit-log: its directory does not exist: create the directory");
  });
});

describe.skipIf(missing("tmpfs"))("on a disk of 64 KiB", () => {
  let disk: string;
  beforeEach(() => {
    disk = mkdtempSync(join(tmpdir(), "davit-audit-"));
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=64k", "tmpfs", disk]);
  });
  afterEach(() => {
    execFileSync("umount", [disk]);
    rmdirSync(disk);
  });

  it(
    "machines boot and objects change while it is full, and its lines come when there is room",
    async () => {
      const path = join(disk, "audit.log");
      const filler = join(disk, "filler");
      await write(withSecrets(undefined, narrow));
      const davit = await world.serve(["--audit-log", path]);
      await expect.poll(() => linesIn(path).length, soon).toBe(4);
      fillLastPage(path);
      fill(filler);
      const scriptOf = async (number: number) => (await fetch(`${davit.bootUrl}/ipxe?mac=${macOf(number)}`)).status;
      for (let change = 0; change < 2; change++) {
        const arg = `change-${change}`;
        await write(withSecrets(undefined, narrow).replace(`${planted}-argument`, arg));
        await expect.poll(() => scriptText(davit.bootUrl), soon).toContain(arg);
        expect(await scriptOf(1)).toBe(200);
      }
      const warnings = () => davit.log.filter(({ msg }) => String(msg).startsWith("audit log cannot be written"));
      await expect.poll(() => warnings().length, soon).toBe(1);
      const writable = async () => {
        const text = await (await fetch(`${davit.opsUrl}/metrics`)).text();
        return /^davit_audit_writable (\d)$/m.exec(text)?.[1];
      };
      await expect.poll(writable, soon).toBe("0");
      rmSync(filler);
      await expect.poll(() => linesIn(path).length, soon).toBe(7);
      expect(linesIn(path).filter(({ audit }) => audit !== 1)).toEqual([]);
      expect(warnings()).toHaveLength(1);
      await expect.poll(writable, soon).toBe("1");
    },
    limitMs,
  );

  it(
    "davit ends while it is full, and logs how many lines are lost",
    async () => {
      const path = join(disk, "audit.log");
      await write(withSecrets(undefined, narrow));
      const davit = await world.serve(["--audit-log", path]);
      await expect.poll(() => linesIn(path).length, soon).toBe(4);
      fillLastPage(path);
      fill(join(disk, "filler"));
      await write(withSecrets(undefined, narrow).replace(`${planted}-argument`, "changed"));
      const messages = () => davit.log.map(({ msg }) => String(msg)).join("\n");
      await expect.poll(messages, soon).toContain("audit log cannot be written");
      expect(await davit.stop()).toBe(0);
      await expect.poll(messages, soon).toContain("lines of the audit log are lost");
    },
    limitMs,
  );
});

async function scriptText(bootUrl: string): Promise<string> {
  return await (await fetch(`${bootUrl}/ipxe?mac=${macOf(1)}`)).text();
}

/** Fills the last page of the file with a line, because a file can grow within its last page on a full disk. */
function fillLastPage(path: string): void {
  const bytes = statSync(path).size;
  writeFileSync(path, `${JSON.stringify({ audit: 1 }).padEnd(4_096 - (bytes % 4_096) - 1)}\n`, { flag: "a" });
}

/** Fills a small disk to its last byte. */
function fill(filler: string): void {
  for (const size of [4_096, 1]) {
    try {
      for (;;) writeFileSync(filler, Buffer.alloc(size), { flag: "a" });
    } catch (error) {
      if (!isJsonObject(error) && !(error instanceof Error)) throw error;
    }
  }
}
