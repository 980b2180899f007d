/** Requests that name their machine in the path: each gets what the same request with a query gets, and nothing else. */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { BootConfigs, type ConfigRequest, configNames } from "../../src/boot/boot-configs.ts";
import { BootIndex } from "../../src/boot/selection/boot-index.ts";
import type { BegunRequest, EndedRequest } from "../../src/http/boot/access-log.ts";
import { requestFollower } from "../../src/http/boot/access-log.ts";
import { byQuery } from "../../src/http/boot/by-path.ts";
import { bootHandler } from "../../src/http/boot/routes.ts";
import { answerError } from "../../src/http/errors.ts";
import { createServer, type HttpServer } from "../../src/http/server.ts";
import { systemClock } from "../../src/lib/clock.ts";
import type { ProfileContent, ResolvedTemplate } from "../../src/model/objects/profile.ts";
import { groupDocument, profileDocument, syncedDocument } from "../boot/feed-documents.ts";
import { silentLog } from "../helpers/test-store.ts";
import { ask, headerOf, statusOf } from "./wire.ts";

const text = (template: string): ResolvedTemplate => ({ kind: "text", text: template, raw: false });
const boot: ProfileContent["boot"] = { kind: "kernel", kernel: "/assets/k", initrd: [], args: ["a"], efiInitrd: false };
const documents = [
  profileDocument("lab/whole", {
    boot,
    templates: {
      ignition: text('{"ignition":{"version":"3.4.0"}}'),
      cloudConfig: text("#cloud-config\nhostname: {{hostname}}\n"),
      generic: text("{{request.raw_query}} {{json request.query.zone}} {{mac}}"),
      "generic/ks.cfg": text("serial {{json request.query.serial}}"),
    },
  }),
  profileDocument("lab/parts", {
    templates: {
      cloudConfig: text("not this one"),
      "generic/user-data": text("#cloud-config\nfqdn: {{hostname}}\n"),
      "generic/meta-data": text("instance-id: own\n"),
      "generic/network-config": text("version: 2\n"),
    },
  }),
  profileDocument("lab/bare", { boot }),
  groupDocument("lab/one", {
    profile: "whole",
    selector: { mac: "52:54:00:00:00:01" },
    metadata: { hostname: "node1.example" },
  }),
  groupDocument("lab/two", { profile: "parts", selector: { serial: "S/2 +&;=x" }, metadata: { hostname: "node2" } }),
  groupDocument("lab/three", { profile: "bare", selector: { uuid: "a1b2c3d4-0000-4000-8000-000000000003" } }),
  groupDocument("lab/four", { profile: "whole", selector: { serial: "four" }, metadata: { hostname: "no: name" } }),
  groupDocument("lab/five", { profile: "bare", selector: { serial: 'five": x' } }),
  syncedDocument(),
];

let server: HttpServer;
let port = 0;
const log: { begun: BegunRequest; ended: EndedRequest }[] = [];
const refusals: string[] = [];

const signer = {
  sign: (body: string) => ({ binary: Buffer.from(`signed ${body}`), armored: `armored ${body}` }),
  withhold: (): never => {
    throw new TypeError("Not withheld");
  },
  publicKey: "key",
};

beforeAll(async () => {
  const index = new BootIndex({ log: silentLog });
  index.replaced(documents);
  index.open();
  const configs = new BootConfigs({
    index,
    authority: "192.0.2.1:8080",
    grub: { separator: "auto", commands: "auto" },
  });
  const follow = (begun: BegunRequest) => (ended: EndedRequest) => void log.push({ begun, ended });
  const handler = bootHandler({
    configs,
    signer,
    accessLog: requestFollower({ clock: systemClock, follow }),
    onRefusal: ({ reason }) => void refusals.push(reason),
  });
  server = createServer({ log: silentLog, clock: systemClock, answerError, handler });
  ({ port } = await server.listen({ host: "127.0.0.1", port: 0, option: "--boot-address" }));
});
afterAll(() => server.close());

async function answerTo(target: string, options: Parameters<typeof ask>[2] = {}) {
  const answer = await ask(port, target, options);
  return { status: statusOf(answer), type: headerOf(answer, "Content-Type"), body: answer.body.toString() };
}

const endpoints = [...configNames, "generic/ks.cfg", "generic/none"];
const signed = endpoints.flatMap((name) => [name, `${name}.sig`, `${name}.asc`]);

describe.each(signed)("`/by/KIND/VALUE/%s`", (endpoint) => {
  it.each([
    ["mac/52-54-00-00-00-01", "mac=52-54-00-00-00-01"],
    ["mac/52:54:00:00:00:01", "mac=52:54:00:00:00:01"],
    ["mac/5254.0000.0001", "mac=5254.0000.0001"],
    ["mac/52%3A54%3A00%3A00%3A00%3A01", "mac=52%3A54%3A00%3A00%3A00%3A01"],
    ["mac/52-54-00-00-00-09", "mac=52-54-00-00-00-09"],
    ["mac/nonsense", "mac=nonsense"],
    ["mac/%zz", "mac=%zz"],
    ["uuid/A1B2C3D4-0000-4000-8000-000000000003", "uuid=A1B2C3D4-0000-4000-8000-000000000003"],
    ["uuid/00000000-0000-0000-0000-000000000000", "uuid=00000000-0000-0000-0000-000000000000"],
    ["serial/S%2F2%20+&;=x", "serial=S%2F2%20%2B%26;=x"],
    ["serial/four", "serial=four"],
    ["hostname/..", "hostname=.."],
  ])("answers %s as ?%s", async (path, query) => {
    const byPath = await answerTo(`/by/${path}/${endpoint}`);
    expect(byPath).toEqual(await answerTo(`/${endpoint}?${query}`));
    expect(await answerTo(`/by/${path}/${endpoint}?zone=a%20b`)).toEqual(
      await answerTo(`/${endpoint}?${query}&zone=a%20b`),
    );
    expect(await answerTo(`/by/${path}/${endpoint}`, { method: "HEAD" })).toEqual({ ...byPath, body: "" });
  });
});

describe("a path with a machine", () => {
  it("serves the machine's own config", async () => {
    expect(await answerTo("/by/mac/52-54-00-00-00-01/generic?zone=a")).toMatchObject({
      status: 200,
      body: 'mac=52-54-00-00-00-01&zone=a "a" 52:54:00:00:00:01',
    });
  });

  it("answers GRUB with a script that waits, as at /grub", async () => {
    const headers = ["User-Agent: GRUB 2.06"];
    const answer = await answerTo("/by/mac/52-54-00-00-00-09/grub", { headers });
    expect(answer).toEqual(await answerTo("/grub?mac=52-54-00-00-00-09", { headers }));
    expect(answer.body).toContain("davit_answered");
  });

  it.each([
    "/by",
    "/by/",
    "/by/mac",
    "/by/mac/52-54-00-00-00-01",
    "/by/mac/52-54-00-00-00-01/",
    "/by/mac//ipxe",
    "/by/mac/52-54-00-00-00-01//ipxe",
    "/by/mac/52-54-00-00-00-01/ipxe/",
    "/by/mac/52-54-00-00-00-01/ipxe.sig.asc",
    "/by/mac/52-54-00-00-00-01/boot.ipxe",
    "/by/mac/52-54-00-00-00-01/chain.ipxe",
    "/by/mac/52-54-00-00-00-01/assets/k",
    "/by/mac/52-54-00-00-00-01/report/token",
    "/by/mac/52-54-00-00-00-01/by/mac/52-54-00-00-00-02/ipxe",
    "/by/mac/52-54-00-00-00-01/nocloud/52-54-00-00-00-02/user-data",
    "/by/domain/example/ipxe",
    "/by/MAC/52-54-00-00-00-01/ipxe",
    "/by/__proto__/x/ipxe",
    "/nocloud",
    "/nocloud/",
    "/nocloud/52-54-00-00-00-01",
    "/nocloud/52-54-00-00-00-01/",
    "/nocloud/52-54-00-00-00-01/ipxe",
    "/nocloud/52-54-00-00-00-01/../user-data",
    "/nocloud/52-54-00-00-00-01/user-data/",
  ])("is unknown: %s", async (path) => {
    expect(await answerTo(path)).toMatchObject({ status: 404, body: "404 not found\n" });
  });

  // The first value of a repeated label counts, and it is marked as repeated: nothing of another machine is served.
  it("never serves what another machine gets, whatever its query says", async () => {
    for (const query of ["mac=52-54-00-00-00-01", "MAC=52-54-00-00-00-01", "serial=S%2F2%20%2B%26;=x", "mac="]) {
      const answer = await answerTo(`/by/mac/52-54-00-00-00-09/generic?${query}`);
      expect(answer).toEqual(await answerTo(`/generic?mac=52-54-00-00-00-09&${query}`));
      expect(answer.body).not.toContain("52:54:00:00:00:01");
    }
  });

  it("is logged as the request that it becomes", async () => {
    log.length = 0;
    await answerTo("/by/mac/52-54-00-00-00-01/ipxe?zone=a");
    await answerTo("/nocloud/52-54-00-00-00-01/user-data");
    await expect.poll(() => log.length).toBe(2);
    expect(
      log.map(({ begun: { path, rawQuery, route }, ended }) => [path, rawQuery, route, ended.machine?.group]),
    ).toEqual([
      ["/ipxe", "mac=52-54-00-00-00-01&zone=a", "/ipxe", "lab/one"],
      ["/nocloud/user-data", "mac=52-54-00-00-00-01", "/nocloud/user-data", "lab/one"],
    ]);
  });
});

it("leaves every other target as it is", () => {
  for (const path of ["/", "/ipxe", "/generic/by", "/assets/by/mac/x/ipxe", "/nocloud/user-data", "/%62y/mac/x/ipxe"]) {
    const target = { path, rawQuery: "mac=x" };
    expect(byQuery(target)).toBe(target);
  }
});

describe("what spends a permit", () => {
  const asked: (ConfigRequest & { readonly name: string })[] = [];
  let counting: HttpServer;
  let countingPort = 0;
  beforeAll(async () => {
    const render = (name: string, request: ConfigRequest) => {
      asked.push({ name, ...request });
      return { rendered: { body: "text", contentType: "text/plain" }, group: "lab/g", profile: "lab/p" };
    };
    const handler = bootHandler({ configs: { render }, signer });
    counting = createServer({ log: silentLog, clock: systemClock, answerError, handler });
    ({ port: countingPort } = await counting.listen({ host: "127.0.0.1", port: 0, option: "--boot-address" }));
  });
  afterAll(() => counting.close());

  it.each([
    ["GET", "ipxe", [], true],
    ["HEAD", "ipxe", [], false],
    ["GET", "ipxe.sig", [], false],
    ["GET", "grub", ["User-Agent: GRUB 2.06"], true],
    ["GET", "grub?zone=a.sig", ["User-Agent: GRUB 2.06"], false],
    ["GET", "ignition", [], true],
    ["GET", "nocloud/user-data", [], true],
    ["HEAD", "nocloud/user-data", [], false],
    ["GET", "nocloud/user-data.sig", [], false],
  ] as const)("%s /by/mac/VALUE/%s %j: %s", async (method, target, headers, mayClaim) => {
    asked.length = 0;
    await ask(countingPort, `/by/mac/52-54-00-00-00-01/${target}`, { method, headers });
    expect(asked.map((request) => request.mayClaim)).toEqual([mayClaim]);
  });
});

describe("`/nocloud/VALUE/FILE`", () => {
  const none = { status: 200, type: "text/plain; charset=utf-8", body: "" };

  it("has what the Profile has for a cloud, and names the machine", async () => {
    for (const value of ["52-54-00-00-00-01", "52:54:00:00:00:01", "52%3a54%3A00%3A00%3A00%3A01", "525400000001"]) {
      const of = (file: string) => answerTo(`/nocloud/${value}/${file}`);
      expect(await of("user-data")).toMatchObject({ status: 200, body: "#cloud-config\nhostname: node1.example\n" });
      const metaData = 'instance-id: "52:54:00:00:00:01"\nlocal-hostname: node1.example\n';
      expect(await of("meta-data")).toMatchObject({ status: 200, body: metaData });
      expect(await of("vendor-data")).toEqual(none);
      expect(await of("network-config")).toEqual(none);
    }
  });

  it("has the generic part of its name instead", async () => {
    const base = "/nocloud/S%2F2%20+&;=x";
    expect(await answerTo(`${base}/user-data`)).toMatchObject({ body: "#cloud-config\nfqdn: node2\n" });
    expect(await answerTo(`${base}/meta-data`)).toMatchObject({ body: "instance-id: own\n" });
    expect(await answerTo(`${base}/network-config`)).toMatchObject({ body: "version: 2\n" });
    expect(await answerTo(`${base}/vendor-data`)).toEqual(none);
    expect(await answerTo("/by/serial/S%2F2%20+&;=x/nocloud/meta-data")).toMatchObject({ body: "instance-id: own\n" });
  });

  it("lacks only user-data where the Profile has none", async () => {
    const base = "/nocloud/A1B2C3D4-0000-4000-8000-000000000003";
    expect(await answerTo(`${base}/user-data`)).toMatchObject({ status: 404, body: "404 no such config\n" });
    const id = 'instance-id: "a1b2c3d4-0000-4000-8000-000000000003"\n';
    expect(await answerTo(`${base}/meta-data`)).toMatchObject({ status: 200, body: id });
    expect(await answerTo(`${base}/vendor-data`)).toEqual(none);
  });

  it("leaves out a hostname that is none", async () => {
    const answer = await answerTo("/by/serial/four/nocloud/meta-data");
    expect(answer).toMatchObject({ status: 200, body: 'instance-id: "four"\n' });
  });

  it("writes an identity as one text of YAML", async () => {
    const quoted = await answerTo("/by/serial/five%22:%20x/nocloud/meta-data");
    expect(quoted).toMatchObject({ body: 'instance-id: "five\\": x"\n' });
  });

  it("refuses an unknown machine, in every file", async () => {
    refusals.length = 0;
    for (const file of ["user-data", "meta-data", "vendor-data", "network-config"]) {
      expect(await answerTo(`/nocloud/52-54-00-00-00-09/${file}`)).toMatchObject({
        status: 404,
        body: "404 no matching group\n",
      });
    }
    expect(refusals).toEqual(["noMatch", "noMatch", "noMatch", "noMatch"]);
  });

  it("counts and records no refusal for a file that davit makes", async () => {
    refusals.length = 0;
    log.length = 0;
    for (const file of ["user-data", "meta-data", "vendor-data"]) await answerTo(`/nocloud/52-54-00-00-00-01/${file}`);
    expect(refusals).toEqual([]);
    await expect.poll(() => log.length).toBe(3);
    expect(log.map(({ ended: { machine, status } }) => [machine?.group, machine?.refusal, status])).toEqual(
      Array.from({ length: 3 }, () => ["lab/one", undefined, 200]),
    );
  });

  it("has signatures", async () => {
    expect(await answerTo("/nocloud/52-54-00-00-00-01/meta-data.asc")).toMatchObject({
      status: 200,
      body: 'armored instance-id: "52:54:00:00:00:01"\nlocal-hostname: node1.example\n',
    });
    expect(await answerTo("/nocloud/52-54-00-00-00-01/vendor-data.sig")).toMatchObject({ body: "signed " });
  });
});
