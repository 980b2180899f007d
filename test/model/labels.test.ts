import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { normalizeMac } from "../../src/model/labels/hardware-ids.ts";
import { LabelError, labelsFromQuery, normalizeLabel, sentLabels } from "../../src/model/labels/labels.ts";

const uuid = "a1b2c3d4-0000-4000-8000-00000000abcd";
const zeros = "00000000-0000-0000-0000-000000000000";

describe("labelsFromQuery", () => {
  it.each<[name: string, query: string, labels: Record<string, string>]>([
    ["splits at & and the first =", "a=1&b=2=3", { a: "1", b: "2=3" }],
    ["skips empty parts", "&&a=1&&", { a: "1" }],
    ["gives a name without = the empty value", "a&b=", { a: "", b: "" }],
    ["decodes escapes in both halves", "%61%20b=%2f%26", { "a b": "/&" }],
    ["reads + as a space", "a+b=c+d", { "a b": "c d" }],
    ["decodes several bytes as one character", "a=%C3%A9%F0%9F%98%80", { a: "é😀" }],
    ["replaces bytes that are not UTF-8", "a=%ff&b=%C3", { a: "\uFFFD", b: "\uFFFD" }],
    ["keeps a byte order mark", "a=%EF%BB%BFx", { a: "\uFEFFx" }],
    ["drops a part with a bad escape", "a=%zz&b=2&%=3&c=%4", { b: "2" }],
    ["takes a later value when the first part was dropped", "a=%zz&a=2", { a: "2" }],
    ["takes the first of repeated values", "a=1&a=2", { a: "1" }],
    ["keeps the case of ordinary names", "Role=web&role=db", { Role: "web", role: "db" }],
    [
      "reads reserved names in any case",
      "UUID=A1B2C3D4-0000-4000-8000-00000000ABCD&Hostname=n&sErIaL=s&Domain=d&ARCH=a",
      {
        uuid: "a1b2c3d4-0000-4000-8000-00000000abcd",
        hostname: "n",
        serial: "s",
        domain: "d",
        arch: "a",
      },
    ],
    [
      "takes the first of differently spelt reserved names",
      "Mac=52:54:00:00:00:01&mac=52:54:00:00:00:02",
      {
        mac: "52:54:00:00:00:01",
      },
    ],
    [
      "keeps brackets, dots and semicolons in names and values",
      "a[b]=1&a.b=2&c=3;d=4",
      {
        "a[b]": "1",
        "a.b": "2",
        c: "3;d=4",
      },
    ],
    ["takes an empty name", "=x", { "": "x" }],
    ["leaves serial as it is", "serial=VMware-56%204d", { serial: "VMware-56 4d" }],
    ["keeps empty reserved values", "uuid=&domain=", { uuid: "", domain: "" }],
    ["drops an invalid mac and keeps the rest", "mac=bad&role=web", { role: "web" }],
    ["does not let a second mac replace an invalid first one", "mac=bad&mac=52-54-00-a1-9c-ae", {}],
    ["drops an empty mac", "mac=&serial=", { serial: "" }],
    [
      "trims what names a machine",
      "serial=+s+1%20&hostname=%0an&role=+web",
      { serial: "s 1", hostname: "n", role: " web" },
    ],
    ["drops a uuid that is invalid, or shared by boards", "uuid=FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF", {}],
  ])("%s", (_name, query, labels) => {
    expect(Object.fromEntries(labelsFromQuery(query))).toEqual(labels);
  });

  const sentMac = { mac: "52:54:00:a1:9c:ae" };
  it.each<[name: string, query: string, flaws: [unreadable: string[], repeated: string[]], sent: object]>([
    ["a mac", "mac=52-54", [["mac"], []], {}],
    ["a serial", "serial=a%00+", [["serial"], []], { serial: "a\0 " }],
    ["a bad escape", "hostname=%&role=%", [["hostname"], []], {}],
    ["two macs", "mac=bad&mac=52-54", [["mac"], ["mac"]], {}],
    ["a mac, and none", "mac=525400a19cae&mac=", [[], ["mac"]], sentMac],
    ["one mac in two forms, and another", "mac=525400a19cae&mac=5254.00a1.9cae&Mac=52-54", [[], ["mac"]], sentMac],
    ["a uuid of zeros", `uuid=${zeros}&serial=1`, [[], []], { uuid: zeros, serial: "1" }],
    ["two uuids that name nobody", `uuid=${zeros}&uuid=none`, [[], []], { uuid: zeros }],
  ])("marks %s", (_name, query, flaws, sent) => {
    const labels = labelsFromQuery(query);
    const { unreadable = [], repeated = [] } = labels.flaws ?? {};
    expect([[...unreadable], [...repeated]]).toEqual(flaws);
    expect(Object.fromEntries(sentLabels(labels))).toEqual(sent);
  });

  it("marks nothing of what firmware sends", () => {
    const query = `uuid=${uuid}&mac=52-54-00-a1-9c-ae&domain=&hostname=&serial=`;
    expect(labelsFromQuery(query).flaws).toBeUndefined();
    expect(labelsFromQuery(`${query}&mac=525400a19cae&serial=`).flaws).toBeUndefined();
  });

  it("takes names of object prototypes as plain names", () => {
    const labels = labelsFromQuery("constructor=1&__proto__=2&toString=3");
    expect([...labels]).toEqual([
      ["constructor", "1"],
      ["__proto__", "2"],
      ["toString", "3"],
    ]);
  });

  it("reads 256 labels, and refuses a query with more, whatever comes last", () => {
    const query = (count: number) => Array.from({ length: count }, (_, at) => `l${at}=${at}`).join("&");
    expect(labelsFromQuery(query(256)).size).toBe(256);
    expect(() => labelsFromQuery(`${query(256)}&mac=52:54:00:a1:9c:ae`)).toThrow(LabelError);
    expect(() => labelsFromQuery(`${query(256)}&mac=no`)).toThrow(LabelError);
    expect(labelsFromQuery(`${query(256)}&l0=again`).get("l0")).toBe("0");
  });

  it("never fails, and reads back what was encoded", () => {
    fc.assert(
      fc.property(fc.string(), (query) => {
        expect(labelsFromQuery(query)).toBeInstanceOf(Map);
      }),
    );
    const pairs = fc.dictionary(fc.stringMatching(/^x[a-z]*$/), fc.string({ unit: "grapheme" }), {
      noNullPrototype: true,
    });
    fc.assert(
      fc.property(pairs, (labels) => {
        const query = Object.entries(labels)
          .map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`)
          .join("&");
        expect(Object.fromEntries(labelsFromQuery(query))).toEqual(labels);
      }),
    );
  });
});

describe("normalizeMac", () => {
  const sixBytes = "52:54:00:a1:9c:ae";
  const eightBytes = "00:11:22:33:44:55:66:77";
  const twentyBytes = `${eightBytes}:88:99:aa:bb:cc:dd:ee:ff:00:11:22:33`;

  it.each([
    ["colons", "52:54:00:a1:9c:ae", sixBytes],
    ["hyphens", "52-54-00-a1-9c-ae", sixBytes],
    ["upper case", "52-54-00-A1-9C-AE", sixBytes],
    ["mixed case", "52:54:00:a1:9C:aE", sixBytes],
    ["dotted groups", "5254.00a1.9cae", sixBytes],
    ["bare digits", "525400a19cae", sixBytes],
    ["8 bytes by colons", eightBytes, eightBytes],
    ["8 bytes by hyphens", eightBytes.replaceAll(":", "-"), eightBytes],
    ["8 bytes dotted", "0011.2233.4455.6677", eightBytes],
    ["8 bytes bare", "0011223344556677", eightBytes],
    ["20 bytes by colons", twentyBytes, twentyBytes],
    ["20 bytes by hyphens", twentyBytes.replaceAll(":", "-"), twentyBytes],
    ["20 bytes dotted", "0011.2233.4455.6677.8899.aabb.ccdd.eeff.0011.2233", twentyBytes],
  ])("accepts %s", (_name, text, mac) => {
    expect(normalizeMac(text)).toBe(mac);
  });

  it.each([
    ["mixed separators", "52:54-00:a1:9c:ae"],
    ["one-digit groups", "5:54:00:a1:9c:ae"],
    ["5 bytes", "52:54:00:a1:9c"],
    ["7 bytes", "52:54:00:a1:9c:ae:01"],
    ["a space in front", " 52:54:00:a1:9c:ae"],
    ["a newline behind", "52:54:00:a1:9c:ae\n"],
    ["letters beyond f", "52:54:00:a1:9c:ag"],
    ["nothing", ""],
    ["20 bare bytes", "0011223344556677889900112233445566778899"],
    ["dots by bytes", "52.54.00.a1.9c.ae"],
    ["a trailing separator", "52:54:00:a1:9c:ae:"],
  ])("rejects %s", (_name, text) => {
    expect(normalizeMac(text)).toBeUndefined();
  });
});

it("`normalizeLabel` changes only what names a machine", () => {
  expect(normalizeLabel("serial", " S 1 ")).toBe("S 1");
  expect(normalizeLabel("serial", " ")).toBe(" ");
  expect(normalizeLabel("mac", "52-54-00-A1-9C-AE")).toBe("52:54:00:a1:9c:ae");
  expect(normalizeLabel("mac", "x")).toBeUndefined();
  expect(normalizeLabel("uuid", "ABC")).toBe("abc");
  expect(normalizeLabel("hostname", "Node1")).toBe("Node1");
  expect(normalizeLabel("role", " web ")).toBe(" web ");
});
