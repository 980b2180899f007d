/**
 * What a machine has reported counts for that machine alone. Boards with a common uuid, and a board with a new network
 * card, must not get an Install by what the ledger knows of another board.
 */

import { describe, expect, it } from "vitest";
import { BootIndex } from "../../src/boot/selection/boot-index.ts";
import { KnownLedger } from "../../src/installs/ledger/known-ledger.ts";
import { encodeMeta, entryPath, metaPath } from "../../src/installs/ledger/ledger-documents.ts";
import type { LedgerEntry } from "../../src/model/permits/permit.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { groupDocument, profileDocument, syncedDocument } from "./feed-documents.ts";
import { entry, mac, machineDocument, uuid } from "./gate-world.ts";
import { type Documents, log, refusal, selected } from "./open-index.ts";

const otherMac = "52:54:00:00:00:02";
const kernel = { kind: "kernel", kernel: "/assets/k", initrd: [], args: [], efiInitrd: false } as const;
const query = (values: Readonly<Record<string, string>>) => new URLSearchParams(values).toString();
const known = query({ uuid, mac });

/** Without `install`, so that no permit stands before the script. */
const objects: Documents = [
  profileDocument("lab/wipe", { effect: "Install", boot: kernel }),
  profileDocument("lab/disk", { boot: { kind: "local", local: "exit" } }),
  groupDocument("lab/stage", { profile: "wipe", selector: { stage: "x" } }),
  groupDocument("lab/role", { profile: "wipe", selector: { role: "new" } }),
  groupDocument("lab/all", { profile: "disk", matchAll: true }),
  syncedDocument(),
];

function indexOf(documents: Documents = objects, others: readonly LedgerEntry[] = []): BootIndex {
  const ledger = new KnownLedger({ clock: new FakeClock() });
  const identities = [`uuid/${uuid}`, `mac/${mac}`];
  const labels = { stage: { value: "x" } };
  const installed = entry({ identities, state: "Installed", labels });
  const meta = encodeMeta({ id: "9f3c0a52", beganAtMs: 0 });
  ledger.replaced([
    [metaPath, meta],
    ...[installed, ...others].map((each) => [entryPath(each.id), JSON.stringify(each)] as const),
  ]);
  const index = new BootIndex({ log, ledger });
  index.replaced(documents);
  index.open();
  return index;
}

describe("a label that a machine has reported", () => {
  it("selects for the machine", () => {
    expect(selected(indexOf(), known)).toBe("lab/stage lab/wipe");
    expect(selected(indexOf(), query({ uuid }))).toBe("lab/stage lab/wipe");
  });

  it.each([
    ["the same uuid and another MAC", { uuid, mac: otherMac }],
    ["the same MAC and another uuid", { uuid: uuid.replace(/2$/, "3"), mac }],
  ])("selects nothing for a machine with %s", (_name, identities) => {
    expect(selected(indexOf(), query(identities))).toBe("lab/all lab/disk");
  });

  it("selects for a machine whose Machine lists both", () => {
    const identities = [`uuid/${uuid}`, `mac/${mac}`, `mac/${otherMac}`];
    const index = indexOf([...objects, machineDocument("lab/m", { identities })]);
    expect(selected(index, query({ uuid, mac: otherMac }))).toBe("lab/stage lab/wipe");
  });
});

describe("an Install without a permit, of machines that may report labels", () => {
  const reports = { labels: { stage: ["x"] } };
  const reporting: Documents = [...objects, profileDocument("lab/once", { reports, boot: kernel })];
  const fresh = query({ mac: otherMac, role: "new" });
  const labelled = entry({ identities: [`mac/${mac}`], state: "Installed", labels: { stage: { value: "x" } } });

  it("waits while the ledger may be older than the report", () => {
    let staleness: string | undefined;
    const ledger = new KnownLedger({ clock: new FakeClock() });
    ledger.freshBy({
      provenAtMs: undefined,
      get staleness() {
        return staleness;
      },
    });
    const index = new BootIndex({ log, ledger });
    index.open();
    index.replaced(reporting);
    expect(refusal(index, fresh)).toBe("doubtful");
    ledger.replaced([[metaPath, encodeMeta({ id: "9f3c0a52", beganAtMs: 0 })]]);
    expect(selected(index, fresh)).toBe("lab/role lab/wipe");
    staleness = "stale";
    expect(refusal(index, fresh)).toBe("doubtful");
    // Boots that overwrite nothing do not wait, and no machine waits where none has reported or may report labels.
    expect(selected(index, query({ mac: otherMac }))).toBe("lab/all lab/disk");
    index.replaced(objects);
    expect(selected(index, fresh)).toBe("lab/role lab/wipe");
    // What was reported counts when the Profile with `reports` is gone.
    ledger.changed([{ path: entryPath(labelled.id), text: JSON.stringify(labelled) }]);
    expect(refusal(index, fresh)).toBe("doubtful");
    ledger.changed([{ path: entryPath(labelled.id), text: undefined }]);
    expect(refusal(index, fresh)).toBe("doubtful");
    index.replaced(reporting);
    staleness = undefined;
    // A later davit may have written the report.
    ledger.changed([{ path: entryPath("0".repeat(16)), text: "{}" }]);
    expect(refusal(index, fresh)).toBe("doubtful");
  });
});

describe("an Install without a permit", () => {
  it("is for a machine that the ledger knows, or does not know at all", () => {
    expect(selected(indexOf(), `${known}&role=new`)).toBe("lab/stage lab/wipe");
    expect(selected(indexOf(), `mac=${otherMac}&role=new`)).toBe("lab/role lab/wipe");
  });

  it("waits for a machine of which the ledger knows a part", () => {
    expect(refusal(indexOf(), query({ uuid, mac: otherMac, role: "new" }))).toBe("doubtful");
  });

  it("waits if a Machine lists an identity whose label does not count for the request", () => {
    const identities = [`uuid/${uuid}`, `mac/${mac}`, `mac/${otherMac}`];
    const machine = (labels = {}) => [...objects, machineDocument("lab/m", { identities, labels })];
    const request = query({ mac: otherMac, role: "new" });
    expect(refusal(indexOf(machine()), request)).toBe("doubtful");
    expect(selected(indexOf(machine({ stage: "y" })), request)).toBe("lab/role lab/wipe");
    // This one installs nothing.
    expect(selected(indexOf(machine()), query({ mac: otherMac }))).toBe("lab/all lab/disk");
  });

  it("waits if two identities of a Machine have reported different values", () => {
    const identities = [`uuid/${uuid}`, `mac/${mac}`, `mac/${otherMac}`];
    const other = entry({
      id: "f".repeat(16),
      identities: [`mac/${otherMac}`],
      state: "Installed",
      labels: { stage: { value: "y" } },
    });
    const machine = (labels = {}) => [...objects, machineDocument("lab/m", { identities, labels })];
    const request = query({ mac: otherMac, role: "new" });
    expect(refusal(indexOf(machine(), [other]), request)).toBe("doubtful");
    expect(selected(indexOf(machine({ stage: "y" }), [other]), request)).toBe("lab/role lab/wipe");
  });

  it("does not wait once a Machine lists both", () => {
    const identities = [`uuid/${uuid}`, `mac/${mac}`, `mac/${otherMac}`];
    const index = indexOf([...objects, machineDocument("lab/m", { identities, labels: { stage: "y" } })]);
    expect(selected(index, query({ uuid, mac: otherMac, role: "new" }))).toBe("lab/role lab/wipe");
  });
});

describe("a label that another machine has reported by the uuid of this one", () => {
  const w = "52:54:00:00:00:0c";
  const ofStranger: Documents = [
    ...objects.filter(([path]) => !path.includes("stage")),
    profileDocument("lab/decommission", { effect: "Install", boot: kernel }),
    groupDocument("lab/decommission", { profile: "decommission", priority: 10, selector: { stage: "x" } }),
  ];
  const request = query({ uuid, mac: w });

  it("selects nothing for it, with and without a Machine", () => {
    expect(selected(indexOf(ofStranger), request)).toBe("lab/all lab/disk");
    const listed = machineDocument("lab/w", { identities: [`mac/${w}`] });
    expect(selected(indexOf([...ofStranger, listed]), request)).toBe("lab/all lab/disk");
  });

  it("selects nothing for it if the entry has the uuid alone", () => {
    const ofUuid = entry({
      id: "e".repeat(16),
      identities: [`uuid/${uuid.replace(/2$/, "5")}`],
      labels: { stage: { value: "x" } },
    });
    const other = query({ uuid: uuid.replace(/2$/, "5"), mac: w });
    expect(selected(indexOf(ofStranger, [ofUuid]), other)).toBe("lab/all lab/disk");
    expect(refusal(indexOf(ofStranger, [ofUuid]), `${other}&role=new`)).toBe("doubtful");
  });
});
