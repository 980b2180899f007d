/** The documented bodies, from a Profile and a Group to the bytes of each endpoint. */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { groupDocument, profileDocument } from "../boot/feed-documents.ts";
import { headerOf, parseAnswer, sendRaw } from "../http/wire.ts";
import { type BootServer, kernelBoot, startBootServer, template } from "./boot-server.ts";

const mac = "52:54:00:a1:9c:ae";
const rawIgnition = '{ "ignition": {"version": "3.4.0"}, "x": "{{y}}" }\n';
const unit = { name: "etcd.service", enable: true, enabled: true, contents: "[Service]\nExecStart=/bin/true\n" };

const documents = [
  profileDocument("lab/documented", {
    displayName: "Rack 4, worker",
    boot: kernelBoot({
      kernel: "/assets/{{os}}/vmlinuz",
      initrd: ["/assets/{{os}}/initrd.img", "--name extra /assets/extra.img"],
      args: [`ignition.config.url=http://192.0.2.1:8080/ignition?uuid=\${uuid}&mac=\${mac:hexhyp}`, `opt="two words"`],
    }),
    templates: {
      ignition: template(
        `{"ignition":{"version":"3.4.0"},"systemd":{"units":[${JSON.stringify(unit)}]}, "os": {{json os}} }`,
      ),
      cloudConfig: template("#cloud-config\nunits:\n  - name: {{name}}\n    command: start\n"),
      generic: template(
        '{"uuid": {{quote (lookup request.query "uuid")}}, "mac": {{json mac}}, ' +
          '"osInstalled": {{eq (lookup request.query "os") "installed"}}, "rawQuery": {{json request.raw_query}} }',
      ),
    },
  }),
  profileDocument("lab/raw", {
    templates: { ignition: template(rawIgnition, true), generic: template("{{#if x}}y{{/if}}") },
  }),
  profileDocument("lab/butane", {
    templates: { ignition: template("variant: fcos\nversion: 1.5.0\nsystemd: {units: [{name: {{unit}} }]}\n") },
  }),
  groupDocument("lab/butane", { profile: "butane", selector: { os: "fcos" }, metadata: { unit: "a.service" } }),
  groupDocument("lab/mistaken", { profile: "butane", selector: { os: "flatcar" }, metadata: { unit: "a.servise" } }),
  profileDocument("lab/script", {
    templates: { cloudConfig: template("#!/bin/sh\necho {{role}}\n"), generic: template("{{role}}\n") },
  }),
  profileDocument("lab/exit", { boot: { kind: "local", local: "exit" } }),
  profileDocument("lab/sanboot", { boot: { kind: "local", local: "sanboot" } }),
  profileDocument("lab/efi", { boot: kernelBoot({ initrd: ["/assets/a.img"], efiInitrd: true }) }),
  groupDocument("lab/documented", {
    profile: "documented",
    selector: { mac },
    metadata: { os: "debian", name: "etcd.service", etcd: { name: "node1" } },
  }),
  ...["raw", "script", "exit", "sanboot", "efi"].map((profile) =>
    groupDocument(`lab/${profile}`, { profile, selector: { role: profile } }),
  ),
];

const query = "mac=52-54-00-a1-9c-ae";
let server: BootServer;
beforeAll(async () => {
  server = await startBootServer(documents);
});
afterAll(() => server.close());

const bodyOf = async (target: string) => (await server.read(target)).body;

it("`/ipxe`: kernel with its arguments, an initrd a line, boot; the client's tokens are left", async () => {
  expect(await bodyOf(`/ipxe?${query}`)).toBe(`#!ipxe
kernel /assets/debian/vmlinuz ignition.config.url=http://192.0.2.1:8080/ignition?uuid=\${uuid}&mac=\${mac:hexhyp} opt="two words"
initrd /assets/debian/initrd.img
initrd --name extra /assets/extra.img
boot
`);
});

it("`/grub`: the documented entry, its tokens filled from the labels, then the recipe", async () => {
  const url = "http://192.0.2.1:8080/ignition?uuid=a1b2&mac=52-54-00-a1-9c-ae";
  expect(await bodyOf(`/grub?${query}&uuid=A1B2`)).toBe(`default=0
timeout=1
menuentry "Rack 4, worker" {
echo "Loading kernel"
linuxefi "(http;192.0.2.1:8080)/assets/debian/vmlinuz" "ignition.config.url=${url}" "opt=two words"
echo "Loading initrd"
initrdefi "(http;192.0.2.1:8080)/assets/debian/initrd.img" "(http;192.0.2.1:8080)/assets/extra.img"
}
function linuxefi {
linux "$@"
}
function initrdefi {
initrd "$@"
}
regexp --set=1:root '^\\((http.*)\\)$' "$config_directory"
`);
});

it("`/grub` names the advertised address, whatever the request says of hosts", async () => {
  const plain = await bodyOf(`/grub?${query}`);
  for (const header of ["X-Forwarded-Host: evil.test", "X-Forwarded-For: 198.51.100.9", "Forwarded: host=evil.test"]) {
    expect((await server.read(`/grub?${query}`, { headers: [header] })).body).toBe(plain);
  }
  const request = `GET /grub?${query} HTTP/1.1\r\nHost: evil.test\r\nConnection: close\r\n\r\n`;
  expect(parseAnswer(await sendRaw(server.port, request)).body.toString()).toBe(plain);
});

it.each([
  ["GRUB 2.06-13+deb12u1", 'linuxefi "/assets/'],
  ["GRUB 2.12", 'linuxefi "/assets/'],
  ["iPXE/1.0.0+ GRUB 2.06", 'linuxefi "(http;192.0.2.1:8080)/assets/'],
  ["GRUBBY/1.0", 'linuxefi "(http;192.0.2.1:8080)/assets/'],
  ["curl/8", 'linuxefi "(http;192.0.2.1:8080)/assets/'],
])("`/grub` tells real GRUB by how its User-Agent begins: %s", async (agent, line) => {
  const { body } = await server.read(`/grub?${query}`, { headers: [`User-Agent: ${agent}`] });
  expect(body).toContain(line);
});

it("`/grub` uses the label arch for its command pair", async () => {
  for (const arch of ["arm64", "aarch64"]) {
    const body = await bodyOf(`/grub?${query}&arch=${arch}`);
    expect(body).toContain('\nlinux "(http;');
    expect(body).not.toContain("linuxefi");
  }
});

it("`/cloud`: the documented shape, as plain text", async () => {
  const answer = await server.get(`/cloud?${query}`);
  expect(headerOf(answer, "Content-Type")).toBe("text/plain; charset=utf-8");
  expect(answer.body.toString()).toBe("#cloud-config\nunits:\n  - name: etcd.service\n    command: start\n");
  expect(await bodyOf("/cloud?role=script")).toBe("#!/bin/sh\necho script\n");
});

it("`/ignition`: version and units with both spellings of enable, as rendered", async () => {
  const config = JSON.parse(await bodyOf(`/ignition?${query}`));
  expect(config).toEqual({ ignition: { version: "3.4.0" }, systemd: { units: [unit] }, os: "debian" });
});

it("`/ignition`: Butane as the config that it becomes, and never as it is", async () => {
  const answer = await server.get("/ignition?os=fcos");
  expect(answer.body.toString()).toBe('{"ignition":{"version":"3.4.0"},"systemd":{"units":[{"name":"a.service"}]}}\n');
  expect(headerOf(answer, "Content-Type")).toBe("application/json");
  const mistaken = await server.read("/ignition?os=flatcar");
  expect(mistaken.status).toBe(500);
  expect(mistaken.body).not.toContain("variant");
});

it("`/ignition`: a finished document byte for byte, its braces untouched", async () => {
  expect(await bodyOf("/ignition?role=raw")).toBe(rawIgnition);
});

describe("`/generic`", () => {
  it.each([
    ["uuid empty when not sent", query, { uuid: "", mac, osInstalled: false, rawQuery: query }],
    [
      "uuid as sent, osInstalled from the label os",
      `${query}&uuid=a1b2&os=installed`,
      { uuid: "a1b2", mac, osInstalled: true, rawQuery: `${query}&uuid=a1b2&os=installed` },
    ],
    ["another os", `${query}&os=none`, { uuid: "", mac, osInstalled: false, rawQuery: `${query}&os=none` }],
  ])("has the documented fields: %s", async (_name, rawQuery, fields) => {
    const answer = await server.get(`/generic?${rawQuery}`);
    expect(headerOf(answer, "Content-Type")).toBe("application/json");
    expect(JSON.parse(answer.body.toString())).toEqual(fields);
  });

  it("is plain text when it is no JSON, and 200 without bytes when it is empty", async () => {
    const text = await server.get("/generic?role=script");
    expect([headerOf(text, "Content-Type"), text.body.toString()]).toEqual(["text/plain; charset=utf-8", "script\n"]);
    const empty = await server.get("/generic?role=raw");
    expect([empty.statusLine, headerOf(empty, "Content-Length")]).toEqual(["HTTP/1.1 200 OK", "0"]);
  });
});

it("`/metadata`: metadata, selector, query and raw query, as plain text", async () => {
  const answer = await server.get(`/metadata?${query}&foo=some-param`);
  expect(headerOf(answer, "Content-Type")).toBe("text/plain; charset=utf-8");
  expect(answer.body.toString()).toBe(`ETCD_NAME=node1
NAME=etcd.service
OS=debian
MAC=${mac}
REQUEST_QUERY_FOO=some-param
REQUEST_QUERY_MAC=${mac}
REQUEST_RAW_QUERY=${query}&foo=some-param
`);
});

describe("a Profile that boots from disk", () => {
  it.each([
    ["exit", "/ipxe", "#!ipxe\nexit\n"],
    ["sanboot", "/ipxe", "#!ipxe\nsanboot --no-describe --drive 0x80 || exit\n"],
    ["exit", "/grub", 'default=0\ntimeout=1\nmenuentry "exit" {\nexit\n}\n'],
  ])("by %s has a script at %s", async (role, path, body) => {
    expect(await bodyOf(`${path}?role=${role}`)).toBe(body);
  });

  it("by sanboot has GRUB start the disk where UEFI would not go on, and leave elsewhere", async () => {
    const script = await bodyOf("/grub?role=sanboot");
    expect(script).toMatch(/^default=0\ntimeout=1\nmenuentry "sanboot" \{\nif \[ "\$grub_platform" = "efi" \]; then\n/);
    expect(script).toMatch(/if chainloader "\$loader"; then\nboot\n/);
    expect(script).toMatch(/\nfi\nexit\n\}\n$/);
  });
});

it("`initrd=` is added for iPXE where the Profile asks for it, and for GRUB never", async () => {
  expect(await bodyOf("/ipxe?role=efi")).toContain("kernel /assets/vmlinuz initrd=a.img\n");
  expect(await bodyOf("/grub?role=efi")).not.toContain("initrd=");
  expect(await bodyOf(`/ipxe?${query}`)).not.toContain("initrd=");
});

it.each(["ipxe", "grub", "ignition", "cloud", "generic", "metadata"])(
  "without a signing key `/%s` has no signatures",
  async (name) => {
    for (const ending of ["sig", "asc"]) expect((await server.read(`/${name}.${ending}?${query}`)).status).toBe(404);
  },
);
