/** `davit machine list`, `show` and `ledger`: what davit knows of machines. */

import { systemClock } from "../../lib/clock.ts";
import { StartError } from "../../lib/start-error.ts";
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import { isUuid, normalizeMac } from "../../model/labels/hardware-ids.ts";
import { configWithout } from "../../options/rules.ts";
import { workCommand } from "../core/command-line.ts";
import { paintOf } from "../core/paint.ts";
import { printWatched } from "../core/watch.ts";
import { type OperationsOptions, readOperations } from "./operations.ts";
import {
  filterOptions,
  machineHelp,
  type NamedObject,
  onlyWord,
  operationsOptions,
  outputOptions,
  readMachineOptions,
  readNamedObject,
  watchOption,
} from "./options.ts";
import { ledgerText, machinesOf, machineTable, machineText } from "./text.ts";

const readingOptions = { ...operationsOptions, ...outputOptions };
const watchedOptions = { ...readingOptions, ...watchOption };

const listOptions = { ...filterOptions, ...watchedOptions };

/** `davit machine list` */
export const listMachines = workCommand({
  name: "machine list",
  help: machineHelp(
    "machine list",
    "Lists every machine that objects or the ledger name, or that was seen.",
    listOptions,
  ),
  readConfig: (args, environment, paths) => {
    const { words, values, problems } = readMachineOptions(listOptions, args, environment, paths);
    if (words.length > 0) problems.push(`Unexpected argument "${words[0]}": davit machine show shows one machine`);
    const group = values.group === undefined ? undefined : readNamedObject(values.group, "Group");
    if (values.group !== undefined && group?.kind !== "Group") {
      problems.push(`Bad value "${values.group}" for --group: must be NAME or NAMESPACE/NAME`);
    }
    return configWithout(problems, { ...values, group: group && fullName(group) });
  },
  work: async ({ group, phase, output, watch, ...operations }, host) => {
    const paint = paintOf(host);
    await printWatched({ host, clock: systemClock, watch }, async () => {
      const answer = await readOperations(operations, "/machines");
      const machines = machinesOf(answer).filter(
        (machine) =>
          (phase === undefined || machine.phase === phase) && (group === undefined || isNamed(machine.group, group)),
      );
      return printed({ ...answer, machines }, output, () => machineTable(machines, paint));
    });
    return 0;
  },
});

/** The forms of a machine's name. */
export const anyMachine = "MAC|UUID|[NAMESPACE/]NAME";
/** The same and serial numbers, for commands that change nothing: anybody on the network can send a serial number. */
const shownMachine = `${anyMachine}|SERIAL`;

/** `davit machine show` */
export const showMachine = workCommand({
  name: "machine show",
  help: machineHelp(`machine show ${shownMachine}`, "Shows one machine.", watchedOptions),
  readConfig: (args, environment, paths) => {
    const { words, values, problems } = readMachineOptions(watchedOptions, args, environment, paths);
    const machine = onlyWord(words, problems, shownMachine);
    return configWithout(problems, { ...values, machine });
  },
  work: async ({ machine, output, watch, ...operations }, host) => {
    const path = machinePath(plainWord(machine));
    await printWatched({ host, clock: systemClock, watch }, async () => {
      return printed(await readOperations(operations, path), output, machineText);
    });
    return 0;
  },
});

/** `davit machine ledger` */
export const showLedger = workCommand({
  name: "machine ledger",
  help: machineHelp("machine ledger", "Shows the ledger that grants name.", readingOptions),
  readConfig: (args, environment, paths) => {
    const { words, values, problems } = readMachineOptions(readingOptions, args, environment, paths);
    if (words.length > 0) problems.push(`Unexpected argument "${words[0]}": there is one ledger`);
    return configWithout(problems, values);
  },
  work: async ({ output, ...operations }, host) => {
    const answer = await readOperations(operations, "/ledger");
    host.write(printed(answer, output, ledgerText));
    // A script can check this: a ledger with problems grants nothing.
    return answer.health === "ok" ? 0 : 1;
  },
});

function printed(answer: JsonObject, output: "table" | "json", text: (answer: JsonObject) => string): string {
  return output === "json" ? `${JSON.stringify(answer, undefined, 2)}\n` : text(answer);
}

/** Returns the path of a machine. */
function machinePath(name: string): string {
  return `/machines/${name.split("/").map(encodeURIComponent).join("/")}`;
}

/** Returns a word without the kind of the object. */
function plainWord(word: string): string {
  return word.replace(/^(machines?|dmach)(\.davit\.dev)?\//i, "");
}

/**
 * Returns the labels by which a machine is known: those that it sent last, or else its uuid and its first mac.
 * @throws {StartError} if the word means no machine, or several.
 */
export async function labelsOfNamed(
  operations: OperationsOptions,
  word: string,
): Promise<readonly (readonly [name: string, value: string])[]> {
  const { identities, seen } = await readOperations(operations, machinePath(plainWord(word)));
  const sent = isJsonObject(seen) && isJsonObject(seen.labels) ? Object.entries(seen.labels) : [];
  const own = (Array.isArray(identities) ? identities : []).map((each) => pairOfIdentity(String(each)));
  const known = new Map([...own.toReversed(), ...sent].map(([name, value]) => [name, String(value)] as const));
  return [...known];
}

function pairOfIdentity(identity: string): readonly [name: string, value: string] {
  const at = identity.indexOf("/");
  return [identity.slice(0, at), identity.slice(at + 1)];
}

/**
 * Returns a machine's name as the listener knows it. A plain name gets the namespace of the only Machine that has it.
 * @throws {StartError} if several have it, or none.
 */
export async function knownName(operations: OperationsOptions, word: string): Promise<string> {
  const name = plainWord(word);
  if (name.includes("/") || normalizeMac(name) !== undefined || isUuid(name)) return name;
  const all = machinesOf(await readOperations(operations, "/machines"));
  const [found, ...others] = all.map((machine) => machine.name).filter((full) => isNamed(full, name));
  if (typeof found !== "string") throw new StartError(`No Machine "${name}": davit machine list shows all machines`);
  if (others.length === 0) return found;
  throw new StartError(`Several Machines "${name}": give NAMESPACE/NAME, such as ${found}`);
}

function fullName({ namespace, name }: NamedObject): string {
  return namespace === undefined ? name : `${namespace}/${name}`;
}

function isNamed(full: unknown, name: string): boolean {
  return typeof full === "string" && (full === name || full.endsWith(`/${name}`));
}
