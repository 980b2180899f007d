/**
 * `serve: DuringInstall` of a Secret's text: only inside an open install, and only to the address that has claimed it.
 * Another address closes the text for the rest of this install.
 */

import { request } from "node:http";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type DavitBootProcess, type DavitProcess, storeOf } from "../../tools/davit-process.ts";
import { type Grant, InstallWorld, installObjects, ledgerId, queryOf, report } from "../helpers/install-world.ts";

const limitMs = 180_000;
const soon = { timeout: 60_000, interval: 50 };
const secret = "join-token-4711";
const [own, other] = ["127.0.0.1", "127.0.0.2"];
const refusal = "503 no permit to install\n";

let world: InstallWorld;
beforeEach(async () => {
  world = await InstallWorld.make();
});
afterEach(() => world.stop());

/** The Profile of `installObjects`, with two further configs from a Secret; one of them is only for installs. */
function objects(grant: Grant | undefined): string {
  const parts = `
  genericParts:
    - {name: token, templateFrom: {secretKeyRef: {name: join, key: token, serve: DuringInstall}}}
    - {name: open, templateFrom: {secretKeyRef: {name: join, key: token}}}
`;
  return `${installObjects(grant).replace("  boot: {kernel: /assets/wipe}\n", (boot) => boot + parts.slice(1))}---
apiVersion: v1
kind: Secret
metadata: {name: join, labels: {davit.dev/allow-template: "true"}}
stringData: {token: ${secret}}
`;
}

async function write(grant: Grant | undefined): Promise<void> {
  const whole = objects(grant);
  await world.writeText(whole);
}

async function serveGranted(args: readonly string[] = []): Promise<DavitProcess> {
  await write(undefined);
  const davit = await world.serve(args);
  await write({ generation: 1, ledger: await ledgerId(davit) });
  return davit;
}

interface Asked {
  readonly from?: string;
  readonly method?: string;
  readonly number?: number;
  /** What a proxy says. */
  readonly forwarded?: string;
}

/** Asks from an address of this computer. @returns the status with the body. */
function ask({ bootUrl }: Pick<DavitBootProcess, "bootUrl">, path: string, asked: Asked = {}): Promise<string> {
  const { from = own, method = "GET", number = 1, forwarded } = asked;
  const headers = forwarded === undefined ? {} : { "x-forwarded-for": forwarded };
  return new Promise((resolve, reject) => {
    const sent = request(
      `${bootUrl}${path}?${queryOf(number)}`,
      { method, headers, localAddress: from, agent: false },
      (answer) => {
        let body = "";
        answer.setEncoding("utf8").on("data", (chunk: string) => {
          body += chunk;
        });
        answer.on("end", () => resolve(answer.statusCode === 200 ? body || "200" : body || String(answer.statusCode)));
      },
    );
    sent.on("error", reject).end();
  });
}

const claims = (davit: Pick<DavitBootProcess, "bootUrl">, asked: Asked = {}) =>
  expect.poll(() => ask(davit, "/ipxe", asked), soon).toContain("/assets/wipe");
const token = (davit: Pick<DavitBootProcess, "bootUrl">, asked: Asked = {}) => ask(davit, "/generic/token", asked);
const open = (davit: Pick<DavitBootProcess, "bootUrl">, asked: Asked = {}) => ask(davit, "/generic/open", asked);

async function reportEnd(davit: DavitProcess): Promise<void> {
  const [path = ""] = /\/report\/\S+/.exec(await ask(davit, "/generic")) ?? [];
  expect(await report(davit, path)).toBe(200);
}

describe("a Secret's text with serve: DuringInstall", { timeout: limitMs }, () => {
  it("is served between the claim and the report, to the claiming address, and shown to nobody", async () => {
    const davit = await serveGranted();
    await expect.poll(() => token(davit), soon).toBe(refusal);
    await claims(davit);
    expect(await token(davit)).toBe(secret);
    expect(await token(davit, { method: "HEAD" })).toBe("200");
    expect(await token(davit)).toBe(secret);
    expect(await (await fetch(`${davit.opsUrl}/preview?${queryOf(1)}`)).text()).not.toContain(secret);
    await reportEnd(davit);
    expect(await token(davit)).toBe(refusal);
    expect(await token(davit, { from: other })).toBe(refusal);
  });

  it("is closed for this install once another address asks for it, and the log names both addresses", async () => {
    const davit = await serveGranted();
    await claims(davit);
    expect(await token(davit)).toBe(secret);
    // What does not ask for the text itself changes nothing.
    expect(await token(davit, { from: other, method: "HEAD" })).toBe("503");
    expect(await ask(davit, "/generic", { from: other })).toContain("/report/");
    expect(await open(davit, { from: other })).toBe(secret);
    expect(await token(davit)).toBe(secret);
    expect(await token(davit, { from: other })).toBe(refusal);
    for (const from of [own, other]) expect(await token(davit, { from })).toBe(refusal);
    // Other configs of the install are as before.
    expect(await open(davit)).toBe(secret);
    await expect
      .poll(() => davit.log.find(({ msg }) => msg === "a Secret's text was asked for from another address"), soon)
      .toMatchObject({ claimedFrom: own, otherAddress: other, group: "default/all" });
    expect(JSON.stringify(davit.log)).not.toContain(secret);
  });

  it("stays closed after a restart, and opens with the next install", async () => {
    const davit = await serveGranted();
    await claims(davit);
    expect(await token(davit, { from: other })).toBe(refusal);
    await davit.stop("SIGKILL");
    const again = await world.serve();
    await expect.poll(() => open(again), soon).toBe(secret);
    expect(await token(again)).toBe(refusal);
    await write({ generation: 2, ledger: await ledgerId(again), scope: "All" });
    await reportEnd(again);
    await claims(again, { from: other });
    expect(await token(again, { from: other })).toBe(secret);
    expect(await token(again)).toBe(refusal);
  });

  it("is served by a follower by the same rules, and one address closes it at both", async () => {
    const davit = await serveGranted();
    const follower = await world.boot(...storeOf(davit));
    await claims(follower);
    expect(await token(follower)).toBe(secret);
    expect(await token(davit)).toBe(secret);
    expect(await token(follower, { from: other })).toBe(refusal);
    expect(await token(follower)).toBe(refusal);
    expect(await token(davit)).toBe(refusal);
    await davit.stop("SIGKILL");
    expect(await token(follower)).toMatch(/^503 /);
  });

  it("goes by the addresses that a trusted proxy names", async () => {
    const davit = await serveGranted(["--trusted-proxy", "127.0.0.0/8"]);
    await claims(davit, { forwarded: "192.0.2.7" });
    expect(await token(davit, { forwarded: "192.0.2.7", from: other })).toBe(secret);
    expect(await token(davit, { forwarded: "192.0.2.8" })).toBe(refusal);
    expect(await token(davit, { forwarded: "192.0.2.7" })).toBe(refusal);
  });

  it("is refused in a Profile without install, and from a ConfigMap", async () => {
    const davit = await serveGranted();
    await claims(davit);
    const whole = objects({ generation: 1, ledger: await ledgerId(davit) });
    const problems = async () => await (await fetch(`${davit.opsUrl}/readyz?verbose`)).text();
    for (const [from, to, message] of [
      [
        "  install: {then: exit, timeout: 1h}\n  reports: {labels: {os: [installed]}}\n",
        "",
        "set install, or remove serve",
      ],
      ["serve: DuringInstall", "serve: Sometimes", "serve"],
      [
        "secretKeyRef: {name: join, key: token, serve",
        "configMapKeyRef: {name: join, key: token, serve",
        "field that does not exist",
      ],
    ] as const) {
      expect(whole).toContain(from);
      await world.writeText(whole.replace(from, to));
      await expect.poll(problems, soon).toContain(message);
      // The last good version stays, and nobody is certain that it is still wanted. Boot follows one batch later.
      await expect.poll(() => token(davit), soon).toMatch(/^503 /);
      await world.writeText(whole);
      await expect.poll(() => token(davit), soon).toBe(secret);
    }
  });
});
