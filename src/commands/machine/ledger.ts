/** `davit machine adopt` and `forget`: an operator corrects the ledger, through the operations listener. */

import { toRfc3339 } from "../../lib/clock.ts";
import type { JsonObject } from "../../model/json.ts";
import { configWithout } from "../../options/rules.ts";
import { workCommand } from "../core/command-line.ts";
import { type ClusterOptions, clusterOf } from "./cluster.ts";
import { placeBy } from "./objects.ts";
import { postOperations } from "./operations.ts";
import {
  machineHelp,
  type NamedObject,
  namespaceOptions,
  onlyWord,
  operationsOptions,
  readMachineOptions,
  readNamedObject,
  type Until,
  untilOption,
} from "./options.ts";
import { anyMachine, knownName } from "./show.ts";

const ledgerOptions = { ...namespaceOptions, ...operationsOptions };
const adoptOptions = {
  until: untilOption("for a Group: how long machines without an entry count as installed; at most 90 days"),
  ...ledgerOptions,
};
const anySubject = `group/[NAMESPACE/]NAME|${anyMachine}`;

/** `davit machine adopt` */
export const adoptMachines = workCommand({
  name: "machine adopt",
  help: machineHelp(
    `machine adopt ${anySubject}`,
    "Makes one machine, or all machines of a Group without an entry, count as installed.",
    adoptOptions,
  ),
  readConfig: (args, environment, paths) => {
    const { words, values, problems } = readMachineOptions(adoptOptions, args, environment, paths);
    const cluster = clusterOf(values, environment, paths);
    return configWithout(problems, { ...values, ...subjectOf(words, problems), cluster });
  },
  work: async ({ word, group, until, ...config }, host) => {
    if (group === undefined) {
      const name = await knownName(config, word);
      const { identities } = await postOperations(config, "/machines/adopt", { machine: name });
      host.write(`Machine ${name} counts as installed: ${textsOf(identities)}\n`);
      return 0;
    }
    const name = await groupName(group, config);
    const body = { group: name, ...untilBody(until) };
    const { until: ends } = await postOperations(config, "/machines/adopt", body);
    host.write(`Machines of Group ${name} without an entry count as installed until ${String(ends)}\n`);
    return 0;
  },
});

/** `davit machine forget` */
export const forgetMachines = workCommand({
  name: "machine forget",
  help: machineHelp(
    `machine forget ${anySubject}`,
    "Makes one machine count as never installed, or ends the adoption of a Group. It opens no install by itself.",
    ledgerOptions,
  ),
  readConfig: (args, environment, paths) => {
    const { words, values, problems } = readMachineOptions(ledgerOptions, args, environment, paths);
    const cluster = clusterOf(values, environment, paths);
    return configWithout(problems, { ...values, ...subjectOf(words, problems), cluster });
  },
  work: async ({ word, group, ...config }, host) => {
    if (group !== undefined) {
      const name = await groupName(group, config);
      await postOperations(config, "/machines/forget", { group: name });
      host.write(`Group ${name} is no longer adopted\n`);
      return 0;
    }
    const name = await knownName(config, word);
    const { isRemoved } = await postOperations(config, "/machines/forget", { machine: name });
    const state = isRemoved === true ? "is forgotten" : "is forgotten, and has spent the grants that are open";
    host.write(`Machine ${name} ${state}: a later generation installs it, also with scope NeverInstalled\n`);
    return 0;
  },
});

interface LedgerSubject {
  readonly word: string;
  /** Undefined for a machine. */
  readonly group: NamedObject | undefined;
}

function subjectOf(words: readonly string[], problems: string[]): LedgerSubject {
  const word = onlyWord(words, problems, anySubject);
  const named = readNamedObject(word);
  const isGroup = named?.kind === "Group" || /^groups?(\.davit\.dev)?\//i.test(word);
  if (isGroup && named === undefined) problems.push(`Bad name "${word}": give ${anySubject}`);
  return { word, group: isGroup ? named : undefined };
}

/** Returns the full name of a Group. */
async function groupName(
  group: NamedObject,
  config: { readonly namespace: string | undefined; readonly cluster: ClusterOptions | undefined },
): Promise<string> {
  const { namespace, name } = await placeBy(group, config);
  return `${namespace}/${name}`;
}

/** The ledger counts hours by its own clock, which this computer's clock may differ from. */
function untilBody(until: Until): object {
  return "atMs" in until ? { until: toRfc3339(until.atMs) } : { hours: until.forMs / 3_600_000 };
}

function textsOf(value: JsonObject[string] | undefined): string {
  return Array.isArray(value) ? value.map(String).join(", ") : "";
}
