/**
 * What a known machine with two reported labels costs `/ipxe`, beside a service without Machines and without a ledger.
 * Both answer in this process and take turns.
 */

import { BootConfigs } from "../src/boot/boot-configs.ts";
import type { BootLedger } from "../src/boot/core/selected.ts";
import { BootIndex } from "../src/boot/selection/boot-index.ts";
import { KnownLedger } from "../src/installs/ledger/known-ledger.ts";
import { entryPath } from "../src/installs/ledger/ledger-documents.ts";
import { systemClock } from "../src/lib/clock.ts";
import { createLog } from "../src/lib/logging/create-log.ts";
import { labelsFromQuery } from "../src/model/labels/labels.ts";
import { encodeDocument, groupPath, machinePath, profilePath, syncedPath } from "../src/model/objects/documents.ts";
import { encodeMachine } from "../src/model/objects/machine.ts";
import type { LedgerEntry } from "../src/model/permits/permit.ts";
import { macOf } from "./machines.ts";
import type { AddFigure } from "./run.ts";
import { takeTurns } from "./turns.ts";

const machines = 10_000;
const asksPerRound = 20_000;
const provenance = { origin: "bench", uid: "u", generation: 1 };

const uuidOf = (at: number) => `4c4c4544-0042-3510-8052-${at.toString(16).padStart(12, "0")}`;
const queries = Array.from(
  { length: machines },
  (_, at) => `uuid=${uuidOf(at)}&mac=${macOf(at).replaceAll(":", "-")}&domain=x&hostname=h${at}&serial=s${at}`,
);

function documents(withMachines: boolean): readonly (readonly [string, string])[] {
  const boot = {
    kind: "kernel",
    kernel: "/assets/k",
    initrd: ["/assets/i"],
    args: ["quiet"],
    efiInitrd: false,
  } as const;
  const profile = encodeDocument({
    ...provenance,
    revision: "r",
    content: { displayName: "web", boot, templates: {} },
  });
  const spec = { profile: "web", matchAll: false, priority: 0, hold: false, metadata: {} };
  const groups = queries.map(
    (_, at) =>
      [
        groupPath("lab", `g${at}`),
        encodeDocument({ ...provenance, spec: { ...spec, selector: { mac: macOf(at) } } }),
      ] as const,
  );
  const known = queries.map((_, at) => {
    const identities = [`uuid/${uuidOf(at)}`, `mac/${macOf(at)}`];
    const own = { identities, approved: true, hold: false, labels: { rack: "7" }, metadata: {} };
    return [machinePath("lab", `m${at}`), encodeMachine({ ...provenance, spec: own })] as const;
  });
  const synced = encodeDocument({ source: "bench", at: "", revision: "", complete: true });
  return [[profilePath("lab", "web"), profile], ...groups, ...(withMachines ? known : []), [syncedPath, synced]];
}

/** A ledger in which each machine has reported two labels. */
function ledgerOf(): BootLedger {
  const labels = { os: { value: "installed" }, disk: { value: "ok" } };
  const ledger = new KnownLedger({ clock: systemClock });
  const entries = [...queries.keys()].map((at) => {
    const id = at.toString(16).padStart(16, "0");
    const identities = [`uuid/${uuidOf(at)}`, `mac/${macOf(at)}`];
    const entry: LedgerEntry = {
      id,
      identities,
      state: "Installed",
      spent: {},
      claimedAtMs: 1,
      changedAtMs: 1,
      timeoutSeconds: 1,
      group: "lab/g",
      profile: "lab/web",
      addresses: [],
      labels,
    };
    return [entryPath(id), JSON.stringify(entry)] as const;
  });
  ledger.replaced(entries);
  if (ledger.reportedLabels(labelsFromQuery(queries[1] ?? "")).length !== 2)
    throw new Error("The ledger has no labels");
  return ledger;
}

function serviceOf(withMachines: boolean): BootConfigs {
  const index = new BootIndex({
    log: createLog({ level: "silent", format: "json" }),
    ...(withMachines && { ledger: ledgerOf() }),
  });
  index.replaced(documents(withMachines));
  index.open();
  return new BootConfigs({ index, authority: "192.0.2.1:80", grub: { separator: "auto", commands: "auto" } });
}

/** CPU microseconds of one answer. */
function cost(configs: BootConfigs): number {
  const before = process.cpuUsage();
  for (let asked = 0; asked < asksPerRound; asked++) {
    const rawQuery = queries[asked % machines] ?? "";
    configs.render("ipxe", { labels: labelsFromQuery(rawQuery), rawQuery, userAgent: "" });
  }
  const { user, system } = process.cpuUsage(before);
  return (user + system) / asksPerRound;
}

export async function measureKnownMachine({ rounds }: { readonly rounds: number }, add: AddFigure): Promise<void> {
  const [plain, known] = [serviceOf(false), serviceOf(true)];
  for (let warm = 0; warm < 3; warm++) for (const each of [plain, known]) cost(each);
  const costsOf = await takeTurns([plain, known], rounds, async (configs) => cost(configs));
  const peer = "without Machines and labels";
  add({ what: "a known machine, CPU of rendering", peer, unit: "us", davit: costsOf(known), beside: costsOf(plain) });
}
