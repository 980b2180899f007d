/** Previews of machines with permits: they show what a machine would get now, and spend nothing. */

import { describe, expect, it } from "vitest";
import { Previews } from "../../src/http/ops/preview.ts";
import { previewText } from "../../src/http/ops/preview-text.ts";
import type { ProfileContent } from "../../src/model/objects/profile.ts";
import { groupDocument, profileDocument, syncedDocument } from "../boot/feed-documents.ts";
import {
  configsOver,
  entry,
  type GateWorld,
  gateWorld,
  grant,
  mac,
  machineDocument,
  plan,
} from "../boot/gate-world.ts";

const query = "mac=52-54-00-a1-9c-ae&os=old";
const content: Partial<ProfileContent> = {
  effect: "Install",
  install: plan,
  boot: { kind: "kernel", kernel: "/installer", initrd: [], args: [], efiInitrd: false },
  templates: { generic: { kind: "text", text: "{{davit.report}}", raw: false } },
};
const documents = [
  profileDocument("lab/web", content),
  groupDocument("lab/rack", { selector: { rack: "7" }, install: grant(4) }),
  machineDocument("lab/m", { approved: true, labels: { rack: "7", os: "flatcar" } }),
  syncedDocument(),
];

function previewsOf({ index }: GateWorld) {
  return new Previews({ index, configsOver: (view) => configsOver(view, { permits: "shown" }) });
}

describe("a preview of a machine with a Machine and a permit", () => {
  it("shows the origin of each label, the Machine and what opens the install, and spends nothing", async () => {
    const world = gateWorld(documents);
    world.ledger.reported.set("disk", "ok");
    const preview = await previewsOf(world).of(query);
    expect(preview).toMatchObject({
      labels: { mac, os: "old" },
      chosen: { group: "lab/rack" },
      machines: [{ machine: "lab/m", approved: true, hold: false, refused: false }],
      selectedBy: [
        { name: "mac", value: mac, origin: "query" },
        { name: "os", value: "flatcar", origin: "machine" },
        { name: "disk", value: "ok", origin: "reported" },
        { name: "rack", value: "7", origin: "machine" },
      ],
      permit: "open: the next boot installs the machine, and spends generation 4 of group/lab/rack",
    });
    expect(previewText(preview)).toContain(
      [
        "machine  lab/m  approved",
        `labels   mac=${mac}  of the request`,
        "         os=flatcar  of the Machine",
        "         disk=ok  reported by the machine",
        "         rack=7  of the Machine",
        "group    lab/rack  rack=7",
      ].join("\n"),
    );
    const bodies = new Map(preview.renderings.map(({ path, status, body = "" }) => [path, `${status} ${body}`]));
    expect(bodies.get("/ipxe")).toContain("200 #!ipxe\nkernel /installer");
    expect(bodies.get("/generic")).toBe(`200 http://192.0.2.1:80/report/${"x".repeat(32)}`);
    expect(world.desk.asked).toEqual([]);
    expect(world.ledger.entries).toEqual([]);
  });

  it("shows the boot from the disk, and the install that goes on", async () => {
    const world = gateWorld(documents);
    world.ledger.entries = [
      entry({ state: "Installing", grant: { key: "group/lab/rack", generation: 4 }, spent: { "group/lab/rack": 4 } }),
    ];
    const preview = await previewsOf(world).of(query);
    expect(preview.permit).toBe("closed: the machine boots as spec.install.then of the Profile says");
    expect(preview.refused).toBeUndefined();
    const ipxe = preview.renderings.find(({ path }) => path === "/ipxe");
    expect(ipxe?.body).toContain("sanboot");
    expect(preview.renderings.find(({ path }) => path === "/generic")?.status).toBe(200);
  });

  it("shows why the install is refused", async () => {
    const world = gateWorld(documents);
    world.ledger.id = "00000000";
    const preview = await previewsOf(world).of(query);
    expect(preview).toMatchObject({
      refused: { reason: "noPermit" },
      permit: "closed: spec.install.ledger names another ledger: the grant is asleep",
    });
    const statuses = new Map(preview.renderings.map(({ path, status }) => [path, status]));
    expect([statuses.get("/ipxe"), statuses.get("/generic"), statuses.get("/metadata")]).toEqual([503, 503, 200]);
    expect(previewText(preview)).toContain("\npermit   closed: spec.install.ledger names another ledger");
  });

  it("shows nothing of the kind where there is none", async () => {
    const web = profileDocument("lab/web", { boot: content.boot ?? { kind: "local", local: "exit" } });
    const preview = await previewsOf(
      gateWorld([web, groupDocument("lab/all", { matchAll: true }), syncedDocument()]),
    ).of(query);
    expect(Object.keys(preview)).not.toEqual(expect.arrayContaining(["machines"]));
    expect([preview.machines, preview.selectedBy, preview.permit]).toEqual([undefined, undefined, undefined]);
    expect(previewText(preview)).not.toMatch(/^(machine|labels|permit)/m);
  });
});

describe("configs of manifests without a server", () => {
  it("show each install as if its permit were open", () => {
    const { index } = gateWorld(documents, {}, { ledger: undefined });
    const configs = configsOver(index, { permits: "assumed" });
    const request = { labels: new Map([["mac", mac]]), rawQuery: "", userAgent: "" };
    expect(configs.render("ipxe", request).rendered.body).toContain("kernel /installer");
    expect(configs.render("generic", request).rendered.body).toContain("/report/x");
  });
});
