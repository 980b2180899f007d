/**
 * Sends forms to the console of a real davit, and to a console with a cluster's accounts. A form changes a machine only
 * if the console's own page made it for a sender who has the right. Answers and the log of the real davit have no token
 * and no text of a Secret. Answers of the other console have no token.
 */

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import type { ClusterCallers, MachinePatch } from "../../src/model/cluster-callers.ts";
import { type DavitProcess, startDavit } from "../../tools/davit-process.ts";
import { seededPick } from "../helpers/fault-files.ts";
import { consoleListener, formTokenIn } from "../http/console/console-listener.ts";
import { machine } from "../http/fake-machines.ts";
import { sendRaw } from "../http/wire.ts";
import { MachineBeside, residentBytes } from "./beside.ts";
import { type FormSender, type FormWorld, type SentForm, sentForm } from "./console-forms.ts";
import { fuzzSeed, fuzzSteps, fuzzTimeoutMs } from "./fuzz.ts";

const usualForms = 90;
const growthLimitBytes = 256 * 2 ** 20;
const longBytes = 2 ** 20;
const secret = "planted-8f3a1c";
const pasted = "planted-77d0e2";
const readToken = "read-token-0123456789";
const adminToken = "admin-token-0123456789";
const known = "52:54:00:00:00:01";
/** It is installed, and a grant is open for machines that are not. */
const installed = "52:54:00:00:00:02";
const newcomer = "52:54:00:00:00:03";

const texts = (text: string) => `apiVersion: v1
kind: Secret
metadata: {name: texts, labels: {davit.dev/allow-template: "true"}}
stringData: {token: "${text}"}
`;
const disk = (kernel: string) => `apiVersion: davit.dev/v1alpha1
kind: Profile
metadata: {name: disk}
spec: {boot: {kernel: ${kernel}}, generic: {templateFrom: {secretKeyRef: {name: texts, key: token}}}}
`;
const group = (name: string, profile: string, macs: readonly string[], more = "") => `apiVersion: davit.dev/v1alpha1
kind: Group
metadata: {name: ${name}}
spec:
  profileRef: {name: ${profile}}
  selector: {matchExpressions: [{key: mac, operator: In, values: ${JSON.stringify(macs)}}]}
${more}`;
const wipe = `apiVersion: davit.dev/v1alpha1
kind: Profile
metadata: {name: wipe}
spec: {effect: Install, install: {then: exit}, boot: {kernel: /assets/wipe}}
`;
const manifests = [
  group("new", "disk", [newcomer]),
  `${texts(pasted)}---\n${disk("/assets/other")}`,
  `${texts(`{{#if ${pasted}`)}---\n${disk("/assets/other")}`,
  "kind: [",
];

interface FormCheck {
  readonly world: () => Promise<FormWorld> | FormWorld;
  readonly port: number;
  /** What forms may change, as a text. */
  readonly state: () => Promise<string> | string;
  readonly check: (answer: string, sent: SentForm) => void;
}

async function sendForms(target: FormCheck): Promise<void> {
  const pick = seededPick(fuzzSeed);
  const goesOn = fuzzSteps(usualForms);
  const changes = { made: 0, refused: 0 };
  let count = 0;
  let world = await target.world();
  for (; goesOn(count); count++) {
    const sent = sentForm(pick, world);
    const { status, isChanged } = await send(sent, target).catch((cause) => {
      const shown = sent.bytes.subarray(0, 2_000).toString("latin1");
      const problem = String(cause);
      throw new Error(
        `seed ${fuzzSeed}, form ${count}, ${sent.sender.name}, flaws ${sent.flaws}: ${shown}\n${problem}`,
      );
    });
    if (isChanged) changes.made += 1;
    if (status >= 400) changes.refused += 1;
    // This sender's session is over.
    if (sent.path === "/console/sign-out" && status === 303) world = await target.world();
  }
  // Otherwise the run checked no change or no refusal.
  expect(changes.made).toBeGreaterThan(0);
  expect(changes.refused).toBeGreaterThan(0);
  process.stdout.write(`fuzz forms: seed ${fuzzSeed}, ${count} forms, ${changes.made} changes\n`);
}

/** @throws {Error} for a finding. */
async function send(sent: SentForm, { port, state, check }: FormCheck) {
  const before = await state();
  const answer = (await sendRaw(port, sent.bytes.toString("latin1"))).toString();
  const status = Number(/^HTTP\/1\.1 (\d+) /.exec(answer)?.[1]);
  const refusals = [400, 401, 403, 404, 405, 413, 415, 501];
  // davit refuses a long body without reading it, and the reset of the connection may overtake the answer.
  const isCut = answer === "" && sent.bytes.length > longBytes;
  if (!isCut) expect(sent.flaws.length === 0 ? [200, 303, 400, 401, 403] : refusals).toContain(status);
  const isChanged = (await state()) !== before;
  if (!sent.mayChange) expect(isChanged).toBe(false);
  check(answer, sent);
  return { status, isChanged };
}

const stranger: FormSender = { name: "a stranger", headers: [], formToken: "", actions: [] };
const guesser: FormSender = { ...stranger, headers: ["Authorization: Bearer wrong-token-0123456789"] };

/** Returns a sender by token, and one by session. */
async function sendersOf(url: string, name: string, token: string, actions: readonly string[]) {
  const headers = { authorization: `Bearer ${token}` };
  const formToken = formTokenIn(await (await fetch(`${url}/console/try`, { headers })).text());
  expect(formToken).not.toBe("");
  const sender = { name, headers: [`Authorization: Bearer ${token}`], formToken, actions };
  const signIn = { method: "POST", headers: { origin: url }, redirect: "manual" } as const;
  const answer = await fetch(`${url}/console/sign-in`, { ...signIn, body: new URLSearchParams({ token }) });
  const [cookie = ""] = answer.headers.get("set-cookie")?.split(";") ?? [];
  expect(cookie).not.toBe("");
  return [sender, { ...sender, name: `${name}, by session`, headers: [`Cookie: ${cookie}`] }];
}

it("with token files, only forms of administrators change the ledger", { timeout: fuzzTimeoutMs }, async () => {
  const folder = mkdtempSync(join(tmpdir(), "davit-fuzz-"));
  const file = (name: string, text: string) => {
    const path = join(folder, name);
    writeFileSync(path, text, { mode: 0o600 });
    return path;
  };
  mkdirSync(join(folder, "objects"));
  const groups = (grant: string) => [group("known", "disk", [known]), group("once", "wipe", [installed], grant)];
  const write = (grant = "") =>
    file("objects/all.yaml", [texts(secret), disk("/assets/disk"), wipe, ...groups(grant)].join("---\n"));
  write();
  const tokenFiles = [
    ...["--ops-token-file", file("tokens", `${readToken}\n`)],
    ...["--ops-admin-token-file", file("admin-tokens", `${adminToken}\n`)],
  ];
  const davit = await startDavit({
    manifests: join(folder, "objects"),
    dataDir: join(folder, "data"),
    args: tokenFiles,
  });
  try {
    await prepare(davit, write);
    const before = await residentBytes(davit.opsUrl);
    const beside = new MachineBeside(async () => {
      expect(await bootText(davit, known)).toContain("/assets/disk");
      // It boots from its disk. After an administrator's form `forget`, davit refuses it, because its grant is closed.
      expect(await bootText(davit, installed)).toMatch(/exit|^503 /);
    });
    const { host, port } = new URL(davit.opsUrl);
    await sendForms({
      port: Number(port),
      world: async () => ({
        host,
        senders: [
          ...[stranger, guesser],
          ...(await sendersOf(davit.opsUrl, "a reader", readToken, [])),
          ...(await sendersOf(davit.opsUrl, "an administrator", adminToken, ["adopt", "forget"])),
        ],
        paths: ["/console/actions", "/console/actions", "/console/try", "/console/sign-in", "/console/sign-out"],
        tokens: [readToken, adminToken, "wrong-token-0123456789"],
        machines: [installed, newcomer, encodeURI(`${newcomer} x 1`)],
        manifests,
      }),
      state: async () => await ledgerText(davit),
      check: (answer, { isMutant }) => {
        for (const token of [secret, readToken, adminToken]) expect(answer).not.toContain(token);
        // A mutant may have another kind than Secret. Then its text is no secret, and the answer may repeat it.
        if (!isMutant) expect(answer).not.toContain(pasted);
      },
    });
    await beside.leave();
    expect((await fetch(`${davit.opsUrl}/readyz`)).status).toBe(200);
    expect((await residentBytes(davit.opsUrl)) - before).toBeLessThan(growthLimitBytes);
    const lines = davit.log.map((line) => JSON.stringify(line));
    const planted = [secret, pasted, readToken, adminToken];
    expect(lines.filter((line) => planted.some((text) => line.includes(text)))).toEqual([]);
    // Only davit's own failures are errors in the log.
    expect(davit.log.filter(({ level }) => Number(level) >= 50)).toEqual([]);
  } finally {
    await davit.stop();
    rmSync(folder, { recursive: true });
  }
});

async function bootText({ bootUrl }: DavitProcess, mac: string): Promise<string> {
  return await (await fetch(`${bootUrl}/ipxe?mac=${mac}`)).text();
}

/** The ledger and its machines, without the present time. */
async function ledgerText({ opsUrl }: DavitProcess): Promise<string> {
  const headers = { authorization: `Bearer ${readToken}` };
  const [ledger, machines] = await Promise.all(
    ["/ledger", "/machines"].map(async (path) => await (await fetch(`${opsUrl}${path}`, { headers })).text()),
  );
  return `${ledger?.replace(/"now": ?"[^"]*"/, "")}${JSON.stringify(recorded(machines ?? ""))}`;
}

/** The machines of objects and of the ledger, without what they send meanwhile. */
function recorded(text: string): readonly object[] {
  const { machines = [] } = JSON.parse(text) as { readonly machines?: readonly Record<string, unknown>[] };
  return machines.filter(({ phase }) => phase !== undefined).map(({ seen, ...machine }) => machine);
}

/** Records the machine as installed, and then opens a grant for machines that are not. */
async function prepare(davit: DavitProcess, write: (grant: string) => void): Promise<void> {
  await vi.waitFor(async () => expect(await bootText(davit, known)).toContain("/assets/disk"), { timeout: 30_000 });
  const authorization = `Bearer ${adminToken}`;
  const adopted = await fetch(`${davit.opsUrl}/machines/adopt`, {
    method: "POST",
    headers: { authorization, "content-type": "application/json", "x-davit-action": "adopt" },
    body: JSON.stringify({ machine: installed }),
  });
  expect(adopted.status).toBe(200);
  const [, ledger] = /"id": ?"(\w+)"/.exec(await ledgerText(davit)) ?? [];
  const until = new Date(Date.now() + 3_600_000).toISOString();
  write(`  install: {generation: 1, ledger: "${ledger}", until: "${until}", scope: NeverInstalled}\n`);
  const details = `${davit.opsUrl}/machines/${installed}`;
  const expectGrant = async () => {
    const text = await (await fetch(details, { headers: { authorization } })).text();
    expect(text).toMatch(/"isOpen": ?true/);
  };
  await vi.waitFor(expectGrant, { timeout: 30_000 });
  expect(await bootText(davit, installed)).toContain("exit");
}

describe("forms of a cluster's accounts", () => {
  const listener = consoleListener();

  it("change Machines only for accounts that may, at the version they saw", { timeout: fuzzTimeoutMs }, async () => {
    const patches: { readonly token: string; readonly patch: MachinePatch }[] = [];
    const accounts = ["approver-token-0123456789", "viewer-token-0123456789"];
    const callers: ClusterCallers = {
      review: async (token) => (accounts.includes(token) ? { kind: "admitted", name: token } : { kind: "unknown" }),
      mayPatchMachines: async (token) => token === accounts[0],
      patchMachine: async (token, patch) => {
        if (token !== accounts[0]) return { why: "forbidden", isForbidden: true };
        patches.push({ token, patch });
        return undefined;
      },
    };
    listener.fake.machines.push(machine("racks/node7", { identities: [`mac/${known}`] }));
    const { server } = await listener.start({ tokens: true, adminTokens: true, callers });
    const { port } = await server.listen({ host: "127.0.0.1", port: 0, option: "" });
    const host = `127.0.0.1:${port}`;
    const [approver = "", viewer = ""] = accounts;
    await sendForms({
      port,
      world: async () => ({
        host,
        senders: [
          ...[stranger, guesser],
          ...(await sendersOf(`http://${host}`, "an approver", approver, ["approve", "hold", "release"])),
          ...(await sendersOf(`http://${host}`, "a viewer", viewer, [])),
          ...(await sendersOf(`http://${host}`, "an administrator", adminToken, ["adopt", "forget"])),
        ],
        paths: ["/console/actions", "/console/sign-in", "/console/sign-out"],
        tokens: [...accounts, "wrong-token-0123456789"],
        machines: ["racks/node7", "racks/node7 uid-racks/node7 1", known],
        manifests: [],
      }),
      state: () => JSON.stringify([patches, listener.fake.logged]),
      check: (answer) => {
        for (const token of [...accounts, adminToken]) expect(answer).not.toContain(`Bearer ${token}`);
      },
    });
    for (const { patch } of patches) if (patch.spec.hold !== true) expect(patch.seen).toBeDefined();
  });
});
