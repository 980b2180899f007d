import { expect, it } from "vitest";
import { BootConfigs } from "../../src/boot/boot-configs.ts";
import { BootSnapshot } from "../../src/boot/explaining/boot-snapshot.ts";
import { BootIndex } from "../../src/boot/selection/boot-index.ts";
import { labelsFromQuery } from "../../src/model/labels/labels.ts";
import { groupPath, secretPath } from "../../src/model/objects/documents.ts";
import type { ProfileContent } from "../../src/model/objects/profile.ts";
import { silentLog } from "../helpers/test-store.ts";
import { groupDocument, profileDocument, syncedDocument } from "./feed-documents.ts";

const content: Partial<ProfileContent> = {
  boot: { kind: "kernel", kernel: "/linux", initrd: [], args: [], efiInitrd: false },
  templates: {
    generic: { kind: "text", text: "of {{zone}}", raw: false },
    cloudConfig: { kind: "secret", raw: false, name: "s", key: "k", sha256: "00" },
  },
};
const query = "zone=a";
const grub = { separator: "auto", commands: "auto" } as const;

function openIndex(): BootIndex {
  const index = new BootIndex({ log: silentLog });
  index.replaced([
    profileDocument("lab/web", content),
    [secretPath("lab", "web", "00"), "#cloud-config\n"],
    groupDocument("lab/zone", { selector: { zone: "a" } }),
    syncedDocument(),
  ]);
  index.open();
  return index;
}

it("what is rendered of a moment is of that moment, whatever changes afterwards", () => {
  const index = openIndex();
  const labels = labelsFromQuery(query);
  const moment = new BootSnapshot(index, labels);
  index.changed([
    { path: groupPath("lab", "zone"), text: undefined },
    { path: secretPath("lab", "web", "00"), text: undefined },
  ]);
  const configs = new BootConfigs({ index: moment, authority: "davit", grub });
  const request = { labels, rawQuery: query, userAgent: "" };
  expect(configs.render("generic", request).rendered.body).toBe("of a");
  expect(configs.render("cloud", request).rendered.body).toBe("#cloud-config\n");
  expect(configs.render("metadata", request).group).toBe("lab/zone");
  expect(moment.groups.map(({ id }) => id)).toEqual(["lab/zone"]);
  expect(() => configs.render("ignition", request)).toThrow("no such config");
});

it("nothing that is rendered of a moment is kept in the index", () => {
  const index = openIndex();
  const labels = labelsFromQuery(query);
  const configs = new BootConfigs({ index: new BootSnapshot(index, labels), authority: "davit", grub });
  for (const name of ["ipxe", "grub", "generic", "metadata"] as const) {
    configs.render(name, { labels, rawQuery: query, userAgent: "" });
  }
  const kept = { script: undefined, boot: undefined, lines: undefined, configs: undefined };
  expect(index.groups.get("lab/zone")).toMatchObject(kept);
});
