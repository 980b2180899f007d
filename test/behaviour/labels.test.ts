/** What a machine says of itself, from the bytes of its request to the group that it gets. */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { groupDocument, profileDocument } from "../boot/feed-documents.ts";
import { headerOf, parseAnswer, sendRaw } from "../http/wire.ts";
import { type BootServer, kernelBoot, startBootServer, template } from "./boot-server.ts";

const mac = "52:54:00:a1:9c:ae";
const documents = [
  profileDocument("lab/web", {
    boot: kernelBoot({ args: ["group={{group}}"] }),
    templates: { generic: template("{{json request.query}}") },
  }),
  ...Object.entries<Record<string, string>>({
    mac: { mac },
    role: { role: "web" },
    rolemac: { role: "web", mac: "52:54:00:00:00:02" },
    inherited: { constructor: "x", toString: "y" },
    uuid: { uuid: "a1b2c3d4-0000-4000-8000-00000000abcd" },
    serial: { serial: "VMware-56 4d" },
    hostname: { hostname: "Node1" },
    arch: { arch: "arm64" },
    b: { shelf: "1" },
    a: { shelf: "1" },
  }).map(([name, selector]) =>
    groupDocument(`lab/${name}`, {
      selector,
      metadata: JSON.parse(`{"group":"${name}","__proto__":{"x":1},"constructor":"c","toString":[2]}`),
    }),
  ),
  groupDocument("other/a", { selector: { shelf: "1" }, profile: "gone" }),
];

let server: BootServer;
beforeAll(async () => {
  server = await startBootServer(documents);
});
afterAll(() => server.close());

/** The group that `/ipxe` gives, else the answer's first word. */
async function groupOf(query: string): Promise<string> {
  const { body } = await server.read(`/ipxe?${query}`);
  return /group=(\w+)/.exec(body)?.[1] ?? body.split(" ")[0] ?? "";
}

describe("a request gets the group", () => {
  it.each([
    ["mac by hyphens, as iPXE sends it", "mac=52-54-00-a1-9c-ae", "mac"],
    ["mac by colons", `mac=${mac}`, "mac"],
    ["mac by escaped colons", "mac=52%3A54%3a00%3Aa1%3a9c%3Aae", "mac"],
    ["mac in upper case, under a name in upper case", "MAC=52-54-00-A1-9C-AE", "mac"],
    ["mac by bare digits", "mac=525400a19cae", "mac"],
    ["uuid in upper case", "uuid=A1B2C3D4-0000-4000-8000-00000000ABCD", "uuid"],
    ["serial with an escaped space", "serial=VMware-56%204d", "serial"],
    ["serial with a plus for the space", "serial=VMware-56+4d", "serial"],
    ["the empty values that iPXE sends beside", `uuid=&mac=${mac}&domain=&hostname=&serial=`, "mac"],
    ["labels that no group asks for", `mac=${mac}&x=1&y=2&mac2=3`, "mac"],
    ["the first of repeated values", "role=web&role=db", "role"],
    ["a part with a bad escape in front", "role=%zz&role=web", "role"],
    ["names that every object has", "constructor=x&toString=y&__proto__=z", "inherited"],
    ["more selector labels", "role=web&mac=52-54-00-00-00-02", "rolemac"],
    ["a label that the serial smuggles in", "serial=A&role=web", "role"],
    ["255 parameters behind", `role=web&${parameters(255)}`, "role"],
  ])("for %s", async (_name, query, group) => {
    expect(await groupOf(query)).toBe(group);
  });

  it.each([
    ["another letter case of a hostname", "hostname=node1"],
    ["another letter case of an arch", "arch=ARM64"],
    ["another letter case of an ordinary name", "Role=web"],
    ["a second value that would match", "role=db&role=web"],
    ["an empty value", "role=&serial=&uuid="],
    ["a name without value", "role"],
    ["half of a selector", "constructor=x"],
    ["nothing", ""],
  ])("but none for %s", async (_name, query) => {
    expect(await groupOf(query)).toBe("404");
  });
});

it("two groups of equal selectors: 503", async () => {
  const { status, body } = await server.read("/ipxe?shelf=1");
  expect([status, body.trim()]).toEqual([503, "503 groups tie"]);
});

describe("the query", () => {
  const labelsOf = async (query: string) => JSON.parse((await server.read(`/generic?role=web&${query}`)).body);

  it("is all behind the first question mark", async () => {
    expect(await labelsOf("a=1?b=2&c=3")).toEqual({ role: "web", a: "1?b=2", c: "3" });
  });

  it.each([
    ["a NUL", "a=%00", { a: "\0" }],
    ["bytes that are not UTF-8", "a=%ff%fe", { a: "\uFFFD\uFFFD" }],
    ["brackets and dots", "a[b]=1&a.b=2", { "a[b]": "1", "a.b": "2" }],
    ["a semicolon", "a=1;b=2", { a: "1;b=2" }],
    ["an equals sign in a value", "a=b=c", { a: "b=c" }],
    ["empty parts", "&&a=1&&", { a: "1" }],
    ["a repeated name", "a=1&a=2", { a: "1" }],
    ["a bad escape", "a=%zz&b=%4&c=1", { c: "1" }],
  ])("may have %s", async (_name, query, labels) => {
    expect(await labelsOf(query)).toEqual({ role: "web", ...labels });
  });

  it("may name what every object has", async () => {
    const { body } = await server.read("/generic?role=web&__proto__=p&constructor=c");
    expect(body).toBe('{"__proto__":"p","constructor":"c","role":"web"}');
  });

  it.each(["/ipxe", "/grub", "/metadata"])("is all that is read: a body of %s names no label", async (path) => {
    const form = "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 8";
    const request = `GET ${path} HTTP/1.1\r\nHost: davit\r\nConnection: close\r\n${form}\r\n\r\nrole=web`;
    expect(parseAnswer(await sendRaw(server.port, request)).body.toString()).toContain("404 no matching group");
  });
});

it("`/metadata` has one line for each odd name, and the raw query exactly as sent", async () => {
  const query = "role=web&__proto__=p&constructor=c&x=%00&y=a%0aB=1";
  const { body } = await server.read(`/metadata?${query}`);
  expect(body.split("\n")).toEqual([
    "CONSTRUCTOR=c",
    "GROUP=role",
    "TOSTRING_0=2",
    "__PROTO___X=1",
    "ROLE=web",
    "REQUEST_QUERY_CONSTRUCTOR=c",
    "REQUEST_QUERY_ROLE=web",
    "REQUEST_QUERY_X='?'",
    "REQUEST_QUERY_Y='a?B=1'",
    "REQUEST_QUERY___PROTO__=p",
    `REQUEST_RAW_QUERY=${query}`,
    "",
  ]);
});

it("`/ipxe` is the same whatever else the request says", async () => {
  const plain = await server.read("/ipxe?role=web");
  for (const extra of ["group=evil", "kernel=/evil", "x=%0ashell", "args={{group}}", "request=1"]) {
    expect(await server.read(`/ipxe?role=web&${extra}`)).toEqual(plain);
  }
});

it.each([
  ["1,000 parameters", `role=web&${parameters(999)}`],
  ["a label behind 256 others", `${parameters(256)}&role=web`],
])("%s are refused: the one that names the machine might be among those not read", async (_name, query) => {
  const { status, body } = await server.read(`/metadata?${query}`);
  expect([status, body]).toEqual([400, "400 too many labels\n"]);
});

it("256 labels are answered, in full", async () => {
  const answer = await server.get(`/metadata?role=web&${parameters(255)}`);
  expect(headerOf(answer, "Content-Length")).toBe(String(answer.body.length));
  expect(answer.body.toString().match(/^REQUEST_QUERY_L\d+=x$/gm)).toHaveLength(255);
});

function parameters(count: number): string {
  return Array.from({ length: count }, (_, at) => `l${at}=x`).join("&");
}
