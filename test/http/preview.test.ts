/** Previews beside what machines are answered, both by real listeners. */

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { BootService } from "../../src/app/boot/boot-service.ts";
import { BootConfigs, configNames } from "../../src/boot/boot-configs.ts";
import type { BootView } from "../../src/boot/selection/boot-index.ts";
import { type Preview, Previews, type Rendering } from "../../src/http/ops/preview.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { createMetrics, type Metrics } from "../../src/lib/metrics/metrics.ts";
import { type Address, authority } from "../../src/lib/text/address.ts";
import { isJsonObject } from "../../src/model/json.ts";
import { encodeDocument, groupPath, secretPath, tombstonePath } from "../../src/model/objects/documents.ts";
import type { ProfileContent, ResolvedTemplate } from "../../src/model/objects/profile.ts";
import { readServeConfig } from "../../src/options/serve.ts";
import { groupDocument, groupSpec, profileDocument, syncedDocument } from "../boot/feed-documents.ts";
import { silentLog } from "../helpers/test-store.ts";

const text = (template: string): ResolvedTemplate => ({ kind: "text", text: template, raw: false });
const boot: ProfileContent["boot"] = {
  kind: "kernel",
  kernel: "/assets/{{os}}",
  initrd: ["/assets/initrd"],
  args: [`a=\${mac:hexhyp}`],
  efiInitrd: true,
};
const secret: ResolvedTemplate = { kind: "secret", raw: false, name: "s", key: "k", sha256: "00" };

const documents = [
  profileDocument("lab/web", {
    boot,
    templates: {
      generic: text('{"q": {{json request.raw_query}} }'),
      ignition: text("{{nowhere}}"),
      cloudConfig: secret,
    },
  }),
  profileDocument("lab/disk", { boot: { kind: "local", local: "exit" }, templates: { generic: text("of {{os}}") } }),
  [secretPath("lab", "web", "00"), "#cloud-config\npassword: {{os}}-hunter2\n"] as const,
  groupDocument("lab/a", { selector: { zone: "a" }, metadata: { os: "debian" } }),
  groupDocument("lab/b", { selector: { zone: "b" }, profile: "disk", metadata: { os: "b" }, priority: 1 }),
  groupDocument("lab/ab", { selector: { zone: "a", role: "b" }, metadata: { os: "ab" } }),
  groupDocument("lab/mac", { selector: { mac: "52:54:00:00:00:01" }, profile: "gone" }),
  groupDocument("lab/held", { selector: { role: "c", zone: "c" }, hold: true }),
  groupDocument("lab/refused", { selector: { serial: "b" } }, true),
  [
    groupPath("lab", "tied"),
    encodeDocument({
      origin: "o",
      uid: "u",
      generation: 1,
      spec: groupSpec({ selector: { serial: "c" }, priority: 9 }),
      tied: true,
    }),
  ] as const,
  [tombstonePath("mac", "52:54:00:00:00:02"), encodeDocument({ labels: [{ mac: "52:54:00:00:00:02" }] })] as const,
  profileDocument("lab/lost", { templates: { cloudConfig: { ...secret, sha256: "01" } } }),
  [secretPath("lab", "lost", "01"), "#cloud-config\npassword: {{hunter3}}\n"] as const,
  groupDocument("lab/d", { selector: { zone: "d" }, profile: "lost" }),
  syncedDocument(),
];

let service: BootService;
let metrics: Metrics;
let ops: Address;
let machines: Address;
const logged: string[] = [];
const say = (data: object, message: string) => logged.push(`${message} ${JSON.stringify(data)}`);
const log = { ...silentLog, info: say, warn: say, error: say, child: () => log };

/** Starts both listeners over these documents, on ports of their own. */
async function start(options: readonly string[] = [], opsHost = "127.0.0.1") {
  metrics = createMetrics("1");
  const own = ["--boot-address", "127.0.0.1:0", "--ops-address", `${opsHost}:0`, "--advertise-address", "davit:80"];
  const paths = { isDirectory: () => true, isFile: () => true };
  const config = readServeConfig(["--manifests", "m", ...own, ...options], {}, paths);
  const started = new BootService({ config, log, clock: systemClock, metrics, version: "1" });
  started.index.replaced(documents);
  const behind = { waitingFor: "", attention: () => [], measure: () => undefined, provenAtMs: () => undefined };
  const opsAddress = await started.listenForOperators(behind);
  const { bootAddress } = await started.listenForMachines();
  await started.openWhenHeard(Promise.resolve());
  return { started, opsAddress, bootAddress };
}

beforeAll(async () => {
  const { started, opsAddress, bootAddress } = await start();
  [service, ops, machines] = [started, opsAddress, bootAddress];
});

afterAll(async () => {
  await service.stop();
});

async function ask(address: Address, path: string, headers: Readonly<Record<string, string>> = {}) {
  const answer = await fetch(`http://${authority(address)}${path}`, { headers });
  return { status: answer.status, type: answer.headers.get("content-type"), body: await answer.text() };
}

function isPreview(value: unknown): value is Preview {
  return isJsonObject(value) && Array.isArray(value.renderings) && Array.isArray(value.losers);
}

async function preview(query: string): Promise<Preview> {
  const { body } = await ask(ops, `/preview?${query}`, { accept: "application/json" });
  const value: unknown = JSON.parse(body);
  if (!isPreview(value)) throw new Error(`Not a preview: ${body}`);
  return value;
}

const values = fc.constantFrom("a", "b", "c", "", "%zz", "a%20b");
const query = fc
  .record(
    {
      mac: fc.constantFrom("52-54-00-00-00-01", "525400000002", "52:54:00:00:00:03", "x"),
      zone: values,
      role: values,
      serial: values,
      uuid: fc.constantFrom("ABC", "00000000-0000-0000-0000-000000000000"),
      Zone: values,
    },
    { requiredKeys: [] },
  )
  .map((labels) =>
    Object.entries(labels)
      .map(([name, value]) => `${name}=${value}`)
      .join("&"),
  );

it("whatever the labels, a preview has what the boot listener answers, byte for byte", async () => {
  const compare = async (labels: string) => {
    const { renderings } = await preview(labels);
    expect(renderings.map(({ path }) => path)).toEqual(configNames.map((name) => `/${name}`));
    for (const rendering of renderings) await expectAnswered(rendering, labels);
  };
  await fc.assert(fc.asyncProperty(query, compare), { numRuns: 150 });
}, 120_000);

async function expectAnswered({ path, body, isSecret, ...rendering }: Rendering, labels: string): Promise<void> {
  const agent = path === "/grub" ? "GRUB 2.06" : "curl";
  const answer = await ask(machines, `${path}?${labels}`, { "user-agent": agent });
  expect(rendering).toMatchObject({ status: answer.status, contentType: answer.type, bytes: answer.body.length });
  expect(body).toBe(isSecret ? undefined : answer.body);
}

it("every answer and every refusal is among the previews that are compared", async () => {
  const reasons = await Promise.all(
    ["zone=a", "zone=z", "mac=52-54-00-00-00-01", "mac=525400000002", "zone=c&role=c", "serial=b", "serial=c"].map(
      async (labels) => (await preview(labels)).refused?.reason,
    ),
  );
  expect(reasons).toEqual([undefined, "noMatch", "noProfile", "bereft", "held", "refused", "tied"]);
});

describe("a preview", () => {
  it("shows nothing that is rendered of a Secret, but that it is", async () => {
    const { renderings } = await preview("zone=a");
    const cloud = renderings.find(({ path }) => path === "/cloud");
    const contentType = "text/plain; charset=utf-8";
    expect(cloud).toEqual({ path: "/cloud", status: 200, contentType, bytes: 39, isCut: false, isSecret: true });
    expect(JSON.stringify(renderings)).not.toContain("hunter2");
    expect((await ask(ops, "/preview?zone=a")).body).not.toContain("hunter2");
  });

  it("says what the log would say of a config that is broken", async () => {
    const { renderings } = await preview("zone=a");
    expect(renderings.find(({ path }) => path === "/ignition")).toMatchObject({
      status: 500,
      body: "500 config broken\n",
      problem: 'spec.ignition: Render template: variable is not defined: "nowhere" (line 1, column 3)',
    });
    expect((await ask(ops, "/preview?zone=a")).body).toContain('variable is not defined: "nowhere"');
    await ask(machines, "/ignition?zone=a");
    const line = 'spec.ignition: Render template: variable is not defined: \\"nowhere\\" (line 1, column 3)';
    expect(logged.join("\n")).toContain(line);
  });

  it("names no variable of a template from a Secret, and neither does the log", async () => {
    const { renderings } = await preview("zone=d");
    expect(renderings.find(({ path }) => path === "/cloud")).toMatchObject({
      status: 500,
      problem: "spec.cloudConfig: Render template: variable is not defined (line 2, column 13)",
    });
    expect((await ask(machines, "/cloud?zone=d")).status).toBe(500);
    expect(logged.filter((line) => line.includes("spec.cloudConfig: Render template"))).toHaveLength(1);
    expect(
      `${JSON.stringify(renderings)} ${(await ask(ops, "/preview?zone=d")).body} ${logged.join(" ")}`,
    ).not.toContain("hunter3");
  });

  it("warns of configs that look at the request, and of no others", async () => {
    const codes = async (labels: string) =>
      (await preview(labels)).warnings.map(({ code, text }) => `${code}: ${text}`);
    const lacks = "which lacks uuid, mac, domain, hostname, serial: the machine may get something else";
    expect(await codes("zone=a")).toEqual([`usesRequest: /generic depends on the request, ${lacks}`]);
    expect(await codes("zone=b")).toEqual([]);
  });

  it("warns of none that davit has not cached", async () => {
    const grub = { separator: "auto", commands: "auto" } as const;
    const uncached = (view: BootView): BootView => ({
      ...{ selectGroup: (labels) => view.selectGroup(labels), profileOf: (group) => view.profileOf(group) },
      candidate: (labels, purpose) => ({
        ...{ ...view.candidate(labels, purpose), group: { ...view.selectGroup(labels) } },
        ask: undefined,
        isDisk: false,
      }),
      select: (labels) => view.select(labels),
      verdictOn: (question) => view.verdictOn(question),
      template: (machine, part, labels) => view.template(machine, part, labels),
    });
    const configsOver = (view: BootView) => new BootConfigs({ index: uncached(view), authority: "davit:80", grub });
    const previews = new Previews({ index: service.index, configsOver });
    expect((await previews.of("zone=b")).warnings).toEqual([]);
    expect((await previews.of("zone=a")).warnings).toMatchObject([{ code: "usesRequest" }]);
  });

  it("is text for who takes anything, and JSON for who asks for it", async () => {
    expect(await ask(ops, "/preview?zone=a", { accept: "*/*" })).toMatchObject({
      status: 200,
      type: "text/plain; charset=utf-8",
      body: expect.stringMatching(/^request {2}zone=a\ngroup {4}lab\/a {2}zone=a\nprofile {2}lab\/web\n/),
    });
    const json = { status: 200, type: "application/json" };
    expect(await ask(ops, "/preview?zone=a", { accept: "application/json" })).toMatchObject(json);
  });

  it("is stored by nobody on the way", async () => {
    const { headers } = await fetch(`http://${authority(ops)}/preview?zone=a`, { method: "HEAD" });
    expect(Object.fromEntries(headers)).toMatchObject({
      "cache-control": "no-store",
      vary: "accept",
      "x-content-type-options": "nosniff",
    });
  });

  it("leaves no trace: nothing is counted, logged or kept", async () => {
    const counted = async () => (await metrics.text()).match(/^davit_boot_re.*$/gm);
    const before = await counted();
    service.index.changed([{ path: groupPath("lab", "b"), text: documents[4]?.[1] }]);
    await preview("zone=b&serial=traceless");
    expect(await counted()).toEqual(before);
    // Near misses of requests before are told at a pace, and may come meanwhile.
    expect(logged.filter((line) => line.includes("traceless"))).toEqual([]);
    expect(service.index.groups.get("lab/b")).toMatchObject({ script: undefined, configs: undefined });
  });

  it("of more labels than a machine may send is refused as the machine is", async () => {
    const labels = Array.from({ length: 257 }, (_, at) => `l${at}=1`).join("&");
    const refused = { status: 400, body: "400 too many labels\n" };
    expect(await ask(ops, `/preview?${labels}`)).toMatchObject(refused);
    expect(await ask(machines, `/ipxe?${labels}`)).toMatchObject(refused);
  });
});

describe("who may see a preview", () => {
  it.each([
    { name: "nobody off loopback", options: [], status: 403 },
    { name: "who has a token", options: ["--ops-token-file"], status: 401 },
  ])("is $name; health stays open", async ({ options, status }) => {
    const folder = await mkdtemp(join(tmpdir(), "davit-preview-"));
    const token = "token-of-the-operations-port";
    const path = join(folder, "tokens");
    await writeFile(path, `${token}\n`, { mode: 0o600 });
    const { started, opsAddress } = await start(
      options.flatMap((option) => [option, path]),
      "0.0.0.0",
    );
    try {
      const local = { host: "127.0.0.1", port: opsAddress.port };
      expect(await ask(local, "/preview?zone=a")).toMatchObject({ status });
      expect((await ask(local, "/preview", { authorization: `Bearer ${token}` })).status).toBe(
        status === 401 ? 200 : 403,
      );
      expect(await ask(local, "/readyz")).toMatchObject({ status: 200 });
    } finally {
      await started.stop();
      await rm(folder, { recursive: true });
    }
  });
});
