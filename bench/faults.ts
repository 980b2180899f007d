/**
 * `npm run faults`: davit loses one after the other of what it needs, while 200 machines boot and clients write. For each
 * fault: what machines were answered, how long one waited, and whether a write that was acknowledged is lost. Words after
 * the command choose the faults whose names have one of them; `--write` puts the rows into bench/faults.md,
 * without the counts of other answers, which only the terminal has.
 */

import { readFileSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { withDavits } from "./davit-members.ts";
import { FaultClients, type Outcome, pause, writeFaultObjects } from "./fault-clients.ts";
import { type Fault, faults, type Measure } from "./fault-kinds.ts";
import { type MembersFault, membersFaults } from "./members-fault-kinds.ts";
import { load, print } from "./run.ts";

const page = new URL("./faults.md", import.meta.url);
const head = "| fault | boots | wrong | asked again | longest wait, s | writes | lost | refused | longest gap, s | |";
const separator = head.replace(/[^|]+/g, "---");
const settleMs = 4_000;

await main();

async function main(): Promise<void> {
  const options = process.argv.slice(2);
  const words = options.filter((word) => word !== "--write");
  const isChosen = ({ name }: { readonly name: string }) =>
    words.length === 0 || words.some((word) => name.includes(word));
  const chosen = [...faults, ...membersFaults.map(ofMembers)].filter(isChosen);
  print(`${cpus().length} x ${cpus()[0]?.model}; Node ${process.version}; load average ${load()}\n`);
  print(`${head}\n${separator}`);
  for (const { name, run } of chosen) {
    await run(async (asked, during) => {
      const clients = new FaultClients(asked);
      await pause(settleMs);
      const note = await during((davit) => clients.lose(davit));
      await pause(settleMs);
      const outcome = await clients.stop();
      const row = rowOf(name, outcome, note);
      print(`${row}\n${[...outcome.others].map(([answer, count]) => `${count} x ${answer}`).join(", ")}`);
      if (options.includes("--write")) writeRow(row);
    });
  }
  print(`\nload average ${load()}`);
}

/** Clients ask each of three davits. The gaps of a davit that the fault ends do not count. */
function ofMembers({ name, run, options }: MembersFault): Fault {
  return {
    name: `three members: ${name}`,
    run: async (measure: Measure) => {
      await withDavits(
        3,
        async (members) => {
          const all = () => members.all;
          await measure({ boot: all, store: all }, (lost) => run(members, lost));
        },
        { ...options, writeObjects: writeFaultObjects },
      );
    },
  };
}

function rowOf(name: string, outcome: Outcome, note: string): string {
  const seconds = (ms: number) => (ms / 1_000).toFixed(1);
  const { boots, wrong, repeated, writes, lost, refused } = outcome;
  const waits = [seconds(outcome.longestWaitMs), writes, lost, refused, seconds(outcome.longestGapMs)];
  return `| ${[name, boots, wrong, repeated, ...waits, note].join(" | ")} |`;
}

/** Replaces the page's row of the same fault, or adds it. */
function writeRow(row: string): void {
  const [, name = ""] = row.split(" | ", 1)[0]?.split("| ") ?? [];
  const text = readFileSync(page, "utf8");
  const table = /(?<=<!-- faults, written by make faults -->\n).*?(?=<!-- end -->)/s;
  const [, , ...rows] = (table.exec(text)?.[0] ?? "").split("\n").filter((line) => line !== "");
  const at = rows.findIndex((each) => each.startsWith(`| ${name} |`));
  const changed = at < 0 ? [...rows, row] : rows.with(at, row);
  writeFileSync(
    page,
    text.replace(table, () => `${[head, separator, ...changed].join("\n")}\n`),
  );
}
