import { describe, expect, it } from "vitest";
import { BootSnapshot } from "../../src/boot/explaining/boot-snapshot.ts";
import { warningsOf } from "../../src/boot/explaining/warnings.ts";
import { BootIndex } from "../../src/boot/selection/boot-index.ts";
import { labelsFromQuery } from "../../src/model/labels/labels.ts";
import type { KernelBoot } from "../../src/model/objects/profile.ts";
import { silentLog } from "../helpers/test-store.ts";
import { groupDocument, profileDocument, syncedDocument } from "./feed-documents.ts";

interface Given {
  readonly boot?: Partial<KernelBoot>;
  readonly usesRequest?: readonly string[];
}

const everyLabel = "uuid=a1b2c3d4-0000-4000-8000-00000000abcd&mac=52-54-00-00-00-01&domain=d&hostname=h&serial=s";

/** What is said of a machine that a Group by zone or the catch-all takes. */
function warnings(query: string, { boot = {}, usesRequest = [] }: Given = {}): readonly string[] {
  const index = new BootIndex({ log: silentLog });
  const kernel = { kind: "kernel", kernel: "/linux", initrd: [], args: [], efiInitrd: false, ...boot } as const;
  index.replaced([
    profileDocument("lab/web", { boot: kernel }),
    groupDocument("lab/zone", { selector: { zone: "a" } }),
    groupDocument("lab/any", { matchAll: true }),
    syncedDocument(),
  ]);
  index.open();
  const labels = labelsFromQuery(query);
  const { chosen, profile } = new BootSnapshot(index, labels);
  const selectorLabels = new Set(["zone", "mac"]);
  return warningsOf({ labels, selectorLabels, chosen, profile, usesRequest }).map(({ text }) => text);
}

it("an ordinary machine of a Group has none", () => {
  expect(warnings(`${everyLabel}&zone=a`, { usesRequest: ["/generic"] })).toEqual([]);
});

describe("labels", () => {
  it.each([
    { name: "a MAC that is none", query: "mac=525400&zone=a", said: ["mac cannot be read, and selects no Group"] },
    {
      name: "a MAC under a name in capitals",
      query: "MAC=x&zone=a",
      said: ["mac cannot be read, and selects no Group"],
    },
    { name: "a bad escape", query: "serial=%zz&zone=a", said: ["serial cannot be read, and selects no Group"] },
    {
      name: "a second value",
      query: "mac=52-54-00-00-00-02&mac=52-54-00-00-00-01&zone=a",
      said: ["mac comes twice, with different values"],
    },
    {
      name: "a name in another letter case",
      query: "ZONE=b&zone=a",
      said: ["no Group selects by ZONE, but by zone: names differ by letter case"],
    },
    { name: "names that no Group selects by", query: "rack=1&zone=a", said: [] },
    {
      name: "a UUID of zeros",
      query: "uuid=00000000-0000-0000-0000-000000000000&zone=a",
      said: ["uuid is invalid, or shared by many boards: it names no machine"],
    },
  ])("with $name", ({ query, said }) => {
    expect(warnings(query)).toEqual(said);
  });
});

describe("the catch-all", () => {
  it.each([
    {
      query: "mac=52-54-00-00-00-01",
      said: "lab/any takes every machine that no other Group takes: no Group names this machine",
    },
    {
      query: "uuid=&hostname=&rack=1",
      said: "lab/any takes every machine that no other Group takes: the request says nothing that names a machine",
    },
  ])("is told to $query", ({ query, said }) => {
    expect(warnings(query)).toEqual([said]);
  });
});

describe("an initrd", () => {
  const said = "no initrd= argument: a kernel that an older UEFI iPXE starts finds no initrd, set boot.efiInitrd";
  it.each([
    { name: "without an argument", boot: { initrd: ["/initrd"] }, said: [said] },
    { name: "with another argument", boot: { initrd: ["/initrd"], args: ["noinitrd=x"] }, said: [said] },
    { name: "with its argument", boot: { initrd: ["/initrd"], args: ["quiet initrd=initrd"] }, said: [] },
    { name: "with efiInitrd", boot: { initrd: ["/initrd"], efiInitrd: true }, said: [] },
    { name: "that is none", boot: {}, said: [] },
  ])("$name", ({ boot, said }) => {
    expect(warnings("zone=a", { boot })).toEqual(said);
  });
});

it.each([
  {
    query: "zone=a&mac=52-54-00-00-00-01",
    usesRequest: ["/generic"],
    said: "/generic depends on the request, which lacks uuid, domain, hostname, serial: the machine may get something else",
  },
  {
    query: `zone=a&${everyLabel.replace("&serial=s", "")}`,
    usesRequest: ["/ignition", "/generic"],
    said: "/ignition, /generic depend on the request, which lacks serial: the machine may get something else",
  },
])("$usesRequest that looked at a request without all labels may differ", ({ query, usesRequest, said }) => {
  expect(warnings(query, { usesRequest })).toEqual([said]);
});
