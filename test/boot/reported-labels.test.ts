/**
 * What a machine has reported counts for that machine alone. Boards with a common uuid, and a board with a new network
 * card, must not get an Install by what the ledger knows of another board.
 */

import { describe, expect, it } from "vitest";
import { BootIndex } from "../../src/boot/selection/boot-index.ts";
import { KnownLedger } from "../../src/ledger/known-ledger.ts";
import { entryPath } from "../../src/ledger/ledger-documents.ts";
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

function indexOf(documents: Documents = objects): BootIndex {
  const ledger = new KnownLedger({ clock: new FakeClock() });
  const identities = [`uuid/${uuid}`, `mac/${mac}`];
  const labels = { stage: { value: "x" } };
  const installed = entry({ identities, state: "Installed", labels });
  ledger.replaced([[entryPath(installed.id), JSON.stringify(installed)]]);
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

describe("an Install without a permit", () => {
  it("is for a machine that the ledger knows, or does not know at all", () => {
    expect(selected(indexOf(), `${known}&role=new`)).toBe("lab/stage lab/wipe");
    expect(selected(indexOf(), `mac=${otherMac}&role=new`)).toBe("lab/role lab/wipe");
  });

  it("waits for a machine of which the ledger knows a part", () => {
    expect(refusal(indexOf(), query({ uuid, mac: otherMac, role: "new" }))).toBe("doubtful");
  });

  it("does not wait once a Machine lists both", () => {
    const identities = [`uuid/${uuid}`, `mac/${mac}`, `mac/${otherMac}`];
    const index = indexOf([...objects, machineDocument("lab/m", { identities, labels: { stage: "y" } })]);
    expect(selected(index, query({ uuid, mac: otherMac, role: "new" }))).toBe("lab/role lab/wipe");
  });
});
