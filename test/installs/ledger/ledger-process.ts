/**
 * A ledger in a process of its own, which a test can kill. Its arguments are the place of its store: a directory, or
 * the URL of an etcd with a prefix. Each line on stdin is a `DeskAsk` with a number, each line on stdout its answer.
 */

import { randomBytes } from "node:crypto";
import { createInterface } from "node:readline";
import { Ledger } from "../../../src/installs/ledger/ledger.ts";
import { systemClock } from "../../../src/lib/clock.ts";
import { diskFiles } from "../../../src/lib/files/files.ts";
import type { DeskAsk } from "../../../src/model/permits/permit-desk.ts";
import { openEtcdStore, openStore } from "../../../src/store/open-store.ts";
import { lockDirectory } from "../../../src/store/wal/lock.ts";
import { silentLog } from "../../helpers/test-store.ts";

const [kind = "", place = "", name = ""] = process.argv.slice(2);
const common = { clock: systemClock, log: silentLog, random: randomBytes };

function open() {
  if (kind === "directory") {
    const files = { directory: place, files: diskFiles, lock: lockDirectory, onDamage: "refuse" as const };
    return openStore({ ...common, ...files });
  }
  const member = { name, clientUrls: [`http://${name}.test`] };
  return openEtcdStore({ ...common, endpoints: [new URL(place)], prefix: "/davit/ledger/", member, leaseSeconds: 2 });
}

function say(line: object): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

const store = await open();
const ledger = await Ledger.open({ ...common, store });
store.onLeadership((isLeading) => say({ isLeading }));
while (ledger.id === undefined) await systemClock.sleep(10);
say({ id: ledger.id });

for await (const line of createInterface({ input: process.stdin })) {
  const { number, question } = JSON.parse(line) as { readonly number: number; readonly question: DeskAsk };
  void Promise.resolve(ledger.ask(question)).then((answer) => say({ number, answer }));
}
