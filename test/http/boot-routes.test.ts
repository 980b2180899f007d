import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { BootConfigs, configNames } from "../../src/boot/boot-configs.ts";
import { BootIndex } from "../../src/boot/selection/boot-index.ts";
import { bootHandler } from "../../src/http/boot/routes.ts";
import { answerError } from "../../src/http/errors.ts";
import { createServer, type HttpServer } from "../../src/http/server.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { createLog } from "../../src/lib/logging/create-log.ts";
import type { ProfileContent, ResolvedTemplate } from "../../src/model/objects/profile.ts";
import { groupDocument, profileDocument, syncedDocument } from "../boot/feed-documents.ts";
import { ask, headerOf, statusOf, type WireAnswer } from "./wire.ts";

const text = (template: string): ResolvedTemplate => ({ kind: "text", text: template, raw: false });

const whole: ProfileContent = {
  displayName: "Debian",
  boot: {
    kind: "kernel",
    kernel: "/assets/{{os}}/vmlinuz",
    initrd: ["/assets/{{os}}/initrd.img"],
    args: ["console=ttyS0", `ignition.config.url={{davit.url}}/ignition?uuid=\${uuid}&mac=\${mac:hexhyp}`],
    efiInitrd: false,
  },
  templates: {
    ignition: text('{"ignition":{"version":"3.4.0"},"systemd":{"units":[{"name":{{json request.query.serial}} }]}}'),
    cloudConfig: text("#cloud-config\nhostname: {{hostname}}\n"),
    generic: text('{"mac": {{json mac}}, "rawQuery": {{json request.raw_query}} }'),
    "generic/user-data": text("#cloud-config\nhostname: {{hostname}}\n"),
    "generic/ks.cfg": text('{"name": {{json request.query.serial}} }'),
  },
};

/** Boot sections that iPXE can load, and GRUB cannot. */
const forIpxe = {
  https: { kernel: "https://192.0.2.7/k" },
  file: { kernel: "/k", initrd: ["/f /etc/f mode=755"] },
  token: { kernel: "/k", args: [`s=\${next-server}`] },
};

const documents = [
  profileDocument("lab/whole", whole),
  profileDocument("lab/bare"),
  profileDocument("lab/disk", { boot: { kind: "local", local: "exit" } }),
  profileDocument("lab/none", { boot: { kind: "local", local: "notFound" } }),
  profileDocument("lab/broken", {
    boot: { kind: "broken" },
    templates: {
      ignition: text("secretword {{disk.path}}"),
      cloudConfig: text("{{#if}}secretword"),
      generic: { kind: "broken" },
      "generic/user-data": { kind: "broken" },
    },
  }),
  groupDocument("lab/whole", {
    profile: "whole",
    selector: { mac: "52:54:00:a1:9c:ae" },
    metadata: { os: "debian", hostname: "node1" },
  }),
  ...Object.entries(forIpxe).map(([name, boot]) =>
    profileDocument(`lab/${name}`, { boot: { kind: "kernel", initrd: [], args: [], efiInitrd: false, ...boot } }),
  ),
  ...["bare", "disk", "none", "broken", "gone", ...Object.keys(forIpxe)].map((profile) =>
    groupDocument(`lab/${profile}`, { profile, selector: { role: profile } }),
  ),
  groupDocument("lab/held", { profile: "whole", selector: { role: "held" }, hold: true }),
  groupDocument("lab/refused", { profile: "whole", selector: { role: "refused" } }, true),
  syncedDocument(),
];

/** Every endpoint that answers what a Group or its Profile has. */
const names = [...configNames, "generic/user-data"];
const wholeQuery = "mac=52-54-00-a1-9c-ae&serial=S%201";
const servers: HttpServer[] = [];
const logged: string[] = [];

async function start(isFilled: boolean): Promise<number> {
  const log = createLog({ level: "info", format: "json", destination: { write: (line) => void logged.push(line) } });
  const index = new BootIndex({ log });
  index.replaced(isFilled ? documents : []);
  index.open();
  const configs = new BootConfigs({
    index,
    authority: "192.0.2.1:8080",
    grub: { separator: "auto", commands: "auto" },
  });
  const server = createServer({ log, clock: systemClock, answerError, handler: bootHandler({ configs }) });
  servers.push(server);
  const { port } = await server.listen({ host: "127.0.0.1", port: 0, option: "--boot-address" });
  return port;
}

let port = 0;
beforeAll(async () => {
  port = await start(true);
});
afterAll(() => Promise.all(servers.map((server) => server.close())));

describe.each(["/boot.ipxe", "/boot.ipxe.0"])("`GET %s`", (path) => {
  it("answers the constant script, whatever the query", async () => {
    for (const query of ["", "?mac=x&%zz"]) {
      const answer = await ask(port, path + query);
      expect(statusOf(answer)).toBe(200);
      expect(headerOf(answer, "Content-Type")).toBe("text/plain; charset=utf-8");
      expect(answer.body.toString()).toBe(
        `#!ipxe\nchain ipxe?uuid=\${uuid}&mac=\${mac:hexhyp}&domain=\${domain}&hostname=\${hostname}&serial=\${serial}\n`,
      );
    }
  });
});

it.each([
  ["https", "GRUB cannot load this location: write http://HOST:PORT/PATH, tftp://HOST/PATH or a path, or set "],
  ["file", "GRUB cannot make a file of an initrd: put it into a cpio archive, or set "],
  ["token", "an iPXE token that GRUB does not know and that no label of the request fills: set "],
])("`GET /grub` says what to do about what only iPXE can load: %s", async (role, words) => {
  expect(statusOf(await ask(port, `/ipxe?role=${role}`))).toBe(200);
  const answer = await ask(port, `/grub?role=${role}`);
  const body = `# 500 config broken: ${words}boot.grubScript\nset davit_answered=yes\n`;
  expect([statusOf(answer), answer.body.toString()]).toEqual([500, body]);
});

it("`GET /chain.ipxe` passes its query on, and refuses what iPXE would run or change", async () => {
  const answer = await ask(port, "/chain.ipxe?zone=a");
  expect([statusOf(answer), headerOf(answer, "Content-Type")]).toEqual([200, "text/plain; charset=utf-8"]);
  expect(answer.body.toString()).toMatch(/^#!ipxe\ncpuid .*\nchain ipxe\?uuid=.*&zone=a\n$/);
  expect(statusOf(await ask(port, "/chain.ipxe?zone=a%0Ashell"))).toBe(400);
});

it("`GET /` answers one line with the name", async () => {
  const answer = await ask(port, "/");
  expect([statusOf(answer), answer.body.toString()]).toEqual([200, "davit\n"]);
});

it("`GET /ipxe` answers the machine's script", async () => {
  const answer = await ask(port, `/ipxe?${wholeQuery}`);
  expect(answer.body.toString()).toBe(
    [
      "#!ipxe",
      "kernel /assets/debian/vmlinuz console=ttyS0 " +
        `ignition.config.url=http://192.0.2.1:8080/ignition?uuid=\${uuid}&mac=\${mac:hexhyp}`,
      "initrd /assets/debian/initrd.img",
      "boot",
      "",
    ].join("\n"),
  );
});

it("`GET /ignition` answers JSON without a charset", async () => {
  const answer = await ask(port, `/ignition?${wholeQuery}`);
  expect(headerOf(answer, "Content-Type")).toBe("application/json");
  expect(JSON.parse(answer.body.toString()).systemd.units).toEqual([{ name: "S 1" }]);
});

it("`GET /cloud` answers cloud-config", async () => {
  const answer = await ask(port, `/cloud?${wholeQuery}`);
  expect(headerOf(answer, "Content-Type")).toBe("text/plain; charset=utf-8");
  expect(answer.body.toString()).toBe("#cloud-config\nhostname: node1\n");
});

it("`GET /generic` answers with the query exactly as sent", async () => {
  const answer = await ask(port, `/generic?${wholeQuery}&x=%zz`);
  expect(JSON.parse(answer.body.toString())).toEqual({ mac: "52:54:00:a1:9c:ae", rawQuery: `${wholeQuery}&x=%zz` });
});

describe("a generic part", () => {
  it.each([
    ["/generic/user-data", "text/plain; charset=utf-8", "#cloud-config\nhostname: node1\n"],
    ["/generic/ks.cfg", "application/json", '{"name": "S 1" }'],
    ["/generic/user%2Ddata", "text/plain; charset=utf-8", "#cloud-config\nhostname: node1\n"],
  ])("is at `%s`, and `/generic` is another", async (path, type, body) => {
    const answer = await ask(port, `${path}?${wholeQuery}`);
    expect([statusOf(answer), headerOf(answer, "Content-Type"), answer.body.toString()]).toEqual([200, type, body]);
    expect((await ask(port, `/generic?${wholeQuery}`)).body.toString()).not.toBe(body);
  });

  it.each(["meta-data", "user-dat", "user-data.x", "constructor", "x".repeat(63)])(
    "that the Profile has not is 404: `%s`",
    async (name) => {
      const answer = await ask(port, `/generic/${name}?${wholeQuery}`);
      expect([statusOf(answer), answer.body.toString()]).toEqual([404, "404 no such config\n"]);
    },
  );

  it.each([
    ...["", "user-data/", "user-data/x", "/user-data", "user-data.sig", "user-data.asc", "user-data.sig.sig"],
    ...["User-Data", "__proto__", "user%2Fdata", "%20", ".", "user-data.", "x".repeat(64), "x".repeat(3_000)],
  ])("is not asked for by `/generic/%s`", async (rest) => {
    const answer = await ask(port, `/generic/${rest}?${wholeQuery}`);
    expect([statusOf(answer), answer.body.toString()]).toEqual([404, "404 not found\n"]);
  });
});

it("`GET /metadata` answers the group's metadata, also when its Profile is gone", async () => {
  expect((await ask(port, `/metadata?${wholeQuery}`)).body.toString()).toContain("HOSTNAME=node1\n");
  const answer = await ask(port, "/metadata?role=gone");
  expect([statusOf(answer), answer.body.toString()]).toEqual([
    200,
    "ROLE=gone\nREQUEST_QUERY_ROLE=gone\nREQUEST_RAW_QUERY=role=gone\n",
  ]);
});

describe("`GET /grub`", () => {
  it("names the advertised address for clients that are no GRUB", async () => {
    const { body } = await ask(port, `/grub?${wholeQuery}`);
    expect(body.toString()).toContain('menuentry "Debian"');
    expect(body.toString()).toContain("(http;192.0.2.1:8080)/assets/debian/vmlinuz");
  });

  it("never names what the Host header says", async () => {
    for (const headers of [[], ["User-Agent: GRUB 2.06-13"], ["X-Forwarded-Host: evil.test"]]) {
      const { body } = await ask(port, `/grub?${wholeQuery}`, { headers });
      expect(body.toString()).not.toMatch(/evil\.test|davit\)/);
    }
  });

  it("writes locations plainly for GRUB itself, which then asks whoever sent them", async () => {
    const { body } = await ask(port, `/grub?${wholeQuery}`, { headers: ["User-Agent: GRUB 2.06-13"] });
    expect(body.toString()).toContain('"/assets/debian/vmlinuz"');
  });
});

describe.each(names)("`/%s`", (name) => {
  it("answers HEAD with the head of GET", async () => {
    const [get, head] = [
      await ask(port, `/${name}?${wholeQuery}`),
      await ask(port, `/${name}?${wholeQuery}`, { method: "HEAD" }),
    ];
    const undated = ({ headerLines }: WireAnswer) => headerLines.filter((line) => !line.startsWith("Date"));
    expect(statusOf(get)).toBe(200);
    expect(undated(head)).toEqual(undated(get));
    expect(head.body.length).toBe(0);
  });

  it("is never stored by caches, chunked or cut into ranges", async () => {
    const answer = await ask(port, `/${name}?${wholeQuery}`, { headers: ["Range: bytes=0-1"] });
    expect(statusOf(answer)).toBe(200);
    expect(headerOf(answer, "Cache-Control")).toBe("no-store");
    expect(headerOf(answer, "Content-Length")).toBe(String(answer.body.length));
    expect(answer.headerLines.join("\n")).not.toMatch(/transfer-encoding/i);
  });

  it("has equal bytes for equal requests", async () => {
    const [first, second] = [await ask(port, `/${name}?${wholeQuery}`), await ask(port, `/${name}?${wholeQuery}`)];
    expect(second.body).toEqual(first.body);
  });

  it("answers 404 when no group matches, as a comment for GRUB", async () => {
    const answer = await ask(port, `/${name}?mac=52-54-00-00-00-00`);
    expect(statusOf(answer)).toBe(404);
    expect(answer.body.toString()).toBe(
      name === "grub" ? "# 404 no matching group\nset davit_answered=yes\n" : "404 no matching group\n",
    );
  });

  it.each([["held"], ["refused"]])("answers 503 with Retry-After when the group is %s", async (role) => {
    const answer = await ask(port, `/${name}?role=${role}`);
    expect(statusOf(answer)).toBe(503);
    expect(headerOf(answer, "Retry-After")).toBe("5");
    expect(answer.body.toString()).toMatch(name === "grub" ? /^# 503 .*\nset davit_wait="503 / : /^503 .*\n$/);
  });

  it("answers 503 with Retry-After before the first sync", async () => {
    const answer = await ask(await start(false), `/${name}?${wholeQuery}`);
    expect([statusOf(answer), headerOf(answer, "Retry-After")]).toEqual([503, "5"]);
  });

  it("answers 405 to other methods, 404 below and beside it", async () => {
    const answer = await ask(port, `/${name}?${wholeQuery}`, { method: "POST", headers: ["Content-Length: 0"] });
    expect([statusOf(answer), headerOf(answer, "Allow")]).toEqual([405, "GET, HEAD"]);
    for (const path of [`/${name}/`, `/${name}/x`, `/${name.toUpperCase()}`, `//${name}`]) {
      expect(statusOf(await ask(port, `${path}?${wholeQuery}`))).toBe(404);
    }
  });
});

const profiled = names.filter((name) => name !== "metadata");

it.each(profiled)("`GET /%s` answers 404 when the Profile is gone, and when it has no such config", async (name) => {
  for (const role of ["gone", "bare"]) expect(statusOf(await ask(port, `/${name}?role=${role}`))).toBe(404);
});

describe("a Profile that boots from disk", () => {
  it("has a script for `exit` and 404 for `notFound`", async () => {
    const answer = await ask(port, "/ipxe?role=disk");
    expect([statusOf(answer), answer.body.toString()]).toEqual([200, "#!ipxe\nexit\n"]);
    expect(statusOf(await ask(port, "/ipxe?role=none"))).toBe(404);
    expect(statusOf(await ask(port, "/grub?role=none"))).toBe(404);
  });
});

const unusable = (part: string) => `spec.${part} cannot be used: the conditions of the Profile say why`;
const problems: Readonly<Record<string, unknown>> = {
  ipxe: unusable("boot"),
  grub: unusable("boot"),
  generic: unusable("generic"),
  "generic/user-data": unusable("genericParts[user-data]"),
  ignition: 'spec.ignition: Render template: variable is not defined: "disk.path" (line 1, column 14)',
  cloud: expect.stringMatching(/^spec\.cloudConfig: Parse template: /),
};

it.each(profiled)("`GET /%s` answers 500 for what is broken, says nothing of it, and logs it once", async (name) => {
  logged.length = 0;
  const answer = await ask(port, `/${name}?role=broken`);
  expect(statusOf(answer)).toBe(500);
  expect(answer.body.toString()).toBe(
    name === "grub" ? "# 500 config broken\nset davit_answered=yes\n" : "500 config broken\n",
  );
  expect(logged).toHaveLength(1);
  const line = { level: 50, group: "lab/broken", profile: "lab/broken", problem: problems[name] };
  expect(JSON.parse(logged[0] ?? "")).toMatchObject(line);
  expect(logged.join("")).not.toContain("secretword");
});
