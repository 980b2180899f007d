/** Scripts and configs that take long, of a machine whose objects change meanwhile. */

import { writeFile } from "node:fs/promises";
import { setTimeout } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { DavitProcess } from "../../tools/davit-process.ts";
import { hourMs, InstallWorld, ledgerId } from "../helpers/install-world.ts";

const soon = { timeout: 60_000, interval: 50 };
const limitMs = 180_000;

let world: InstallWorld;
beforeEach(async () => {
  world = await InstallWorld.make();
  await writeFile(world.at("manifests", "busy.yaml"), busy);
});
afterEach(() => world.stop());

const mac = "52:54:00:00:00:01";
const slow = "{{#each lists}}{{#if (json ../lists)}}{{/if}}{{/each}}";
const lists = JSON.stringify(Array.from({ length: 1_000 }, () => []));
const yaml = JSON.stringify("- name: some\n  value: [1, 2, abc]\n".repeat(15_000));

/** A Group whose configs keep the thread of slow configs busy. */
const busy = `apiVersion: davit.dev/v1alpha1
kind: Profile
metadata: {name: busy}
spec:
  cloudConfig: {inline: "#cloud-config\\n# {{request.query.serial}}\\n{{text}}"}
---
apiVersion: davit.dev/v1alpha1
kind: Group
metadata: {name: busy}
spec:
  profileRef: {name: busy}
  selector: {matchLabels: {role: busy}}
  metadata: {text: ${yaml}}
`;

/** A Profile that installs, with a script and a config that the other thread makes. */
const profiles = (plan = "") => `apiVersion: davit.dev/v1alpha1
kind: Profile
metadata: {name: wipe}
spec:
  effect: Install
${plan}
  boot: {kernel: /assets/wipe, args: ["a=1${slow}"]}
  generic: {inline: "wipe${slow} {{request.query.mac}}"}
---
`;

const group = ({ version = 1, more = "" } = {}) => `apiVersion: davit.dev/v1alpha1
kind: Group
metadata: {name: node}
spec:
  profileRef: {name: wipe}
  selector: {matchLabels: {mac: "${mac}", role: lab}}
  metadata: {version: ${version}, lists: ${lists}}
${more}
`;

async function ask({ bootUrl }: DavitProcess, path: string, query = `mac=${mac}&role=lab`): Promise<string> {
  const response = await fetch(`${bootUrl}${path}?${query}`);
  return `${response.status} ${(await response.text()).trim()}`;
}

/** Keeps the thread of slow configs busy for some seconds. */
async function occupy(davit: DavitProcess): Promise<void> {
  const asked = Array.from({ length: 24 }, (_, serial) => ask(davit, "/cloud", `role=busy&serial=${serial}`));
  // Nobody needs the answers, and davit may end before them.
  void Promise.allSettled(asked);
  // Until the requests are with davit.
  await setTimeout(300);
}

const hold = "  hold: true";
const held = /^503 (# )?(503 )?.*held/;

/** Asks for a config, and writes objects that hold the machine while davit makes it. */
async function askAndHold(davit: DavitProcess, path: string, objects: string): Promise<string> {
  await occupy(davit);
  let isAnswered = false;
  const asked = ask(davit, path).finally(() => {
    isAnswered = true;
  });
  await world.writeText(objects);
  await expect.poll(() => ask(davit, "/metadata"), soon).toMatch(held);
  expect(isAnswered, "davit has answered before the change").toBe(false);
  return await asked;
}

describe.each(["/ipxe", "/generic"])("%s of an install that takes long", { timeout: limitMs }, (path) => {
  it("counts a hold that came meanwhile", async () => {
    await world.writeText(profiles() + group());
    const davit = await world.serve();
    await expect.poll(() => ask(davit, path), soon).toMatch(/^200 [\s\S]*wipe/);
    // davit makes the texts of a new version anew.
    await world.writeText(profiles() + group({ version: 2 }));
    await expect.poll(() => ask(davit, "/metadata"), soon).toContain("VERSION=2");
    expect(await askAndHold(davit, path, profiles() + group({ version: 2, more: hold }))).toMatch(held);
  });
});

it("counts a hold that came while a config with a permit was made", { timeout: limitMs }, async () => {
  const of = profiles("  install: {then: exit, timeout: 1h}");
  const davit = await world.serve();
  const grant = { generation: 1, ledger: await ledgerId(davit), until: new Date(Date.now() + hourMs).toISOString() };
  const more = `  install: ${JSON.stringify(grant)}`;
  await world.writeText(of + group({ more }));
  await expect.poll(() => ask(davit, "/ipxe"), soon).toMatch(/^200 [\s\S]*wipe/);
  expect(await ask(davit, "/generic")).toMatch(/^200 wipe/);
  expect(await askAndHold(davit, "/generic", of + group({ more: `${more}\n${hold}` }))).toMatch(held);
});
