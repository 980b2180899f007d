/**
 * `davit machine install`: grants an install. It fills in what only davit knows: the ledger's id, and a generation that
 * no machine has spent.
 */

import { toRfc3339 } from "../../lib/clock.ts";
import { StartError } from "../../lib/start-error.ts";
import { isJsonObject, type JsonObject, type JsonValue, objectOf } from "../../model/json.ts";
import type { InstallScope } from "../../model/permits/permit.ts";
import { configWithout } from "../../options/rules.ts";
import { workCommand } from "../core/command-line.ts";
import { grantedGeneration, nameOf, type ObjectPlace, versionOf, withCluster } from "./cluster.ts";
import { exitCode, patchTarget, placeBy, placeOf, printChange, targetProblems } from "./objects.ts";
import { type OperationsOptions, readOperations } from "./operations.ts";
import {
  machineHelp,
  onlyWord,
  operationsOptions,
  patchOptions,
  readMachineOptions,
  readNamedObject,
  scopeOption,
  type Until,
  untilOption,
} from "./options.ts";
import { fileOf, writeObject } from "./write.ts";

const maxAheadMs = 7 * 24 * 3_600_000;
/** Of the CRDs. */
const maxGeneration = 2_147_483_647;

const installOptions = {
  until: untilOption("when the grant ends: after this time, or at this time; at most 7 days ahead"),
  ...scopeOption,
  ...patchOptions,
  ...operationsOptions,
};

const grantable = "group/[NAMESPACE/]NAME|machine/[NAMESPACE/]NAME";

/** `davit machine install` */
export const installMachines = workCommand({
  name: "machine install",
  help: machineHelp(
    `machine install ${grantable}`,
    "Sets spec.install of a Group or Machine, in the cluster or its file: each of its machines may install once.",
    installOptions,
  ),
  readConfig: (args, environment, paths) => {
    const { words, values, problems } = readMachineOptions(installOptions, args, environment, paths);
    const word = onlyWord(words, problems, grantable);
    const target = readNamedObject(word);
    if (target === undefined) problems.push(`Bad name "${word}": give ${grantable}`);
    if (target?.kind === "Machine" && values.scope !== undefined) {
      problems.push("No --scope for a Machine: its grant installs it, whatever is on its disks");
    }
    problems.push(...targetProblems(values));
    return configWithout(problems, { ...values, target, ...patchTarget(values, environment, paths) });
  },
  work: async (config, host) => {
    const { target, print, write, cluster, namespace } = config;
    if (target === undefined) return 2;
    if (write !== undefined) {
      const place = placeOf(target, namespace, undefined);
      const file = await fileOf(write, place);
      const { install, until } = await newGrant(config, place, { generation: grantedGeneration(file.object) });
      await writeObject(file, place, { install });
      host.write(`${doneText(place, install, until)}Written to "${file.path}"\n`);
      return 0;
    }
    if (print || cluster === undefined) {
      const place = await placeBy(target, config);
      const { install } = await newGrant(config, place, { generation: 0 });
      printChange(place, { install }, { print, host });
      return exitCode(config);
    }
    await withCluster(cluster, async (objects) => {
      const place = placeOf(target, namespace, objects.namespace);
      const object = await objects.read(place);
      const { install, until } = await newGrant(config, place, {
        generation: grantedGeneration(object),
        isThere: true,
      });
      // With the version, the API server refuses the patch if another person grants an install at the same time.
      const resourceVersion = versionOf(object);
      await objects.patch(place, { ...(resourceVersion && { metadata: { resourceVersion } }), spec: { install } });
      host.write(doneText(place, install, until));
    });
    return 0;
  },
});

interface NewGrant {
  readonly install: JsonObject;
  readonly until: string;
}

/**
 * @param seen the generation of the object in the cluster or its file, and whether the object surely exists. If it may
 *   not, davit must know the object.
 */
async function newGrant(
  config: OperationsOptions & { readonly until: Until; readonly scope: InstallScope | undefined },
  place: ObjectPlace,
  { generation, isThere = false }: { readonly generation: number; readonly isThere?: boolean },
): Promise<NewGrant> {
  const { id, nowMs, isKnown, highest } = await askLedger(config, place);
  if (!isThere && !isKnown) {
    throw new StartError(`${nameOf(place)}: davit does not know it: create it first, or correct the name`);
  }
  const until = untilText(config.until, nowMs);
  const next = Math.max(highest, generation) + 1;
  if (next > maxGeneration)
    throw new StartError(`${nameOf(place)}: its generation cannot be raised any more: create it under another name`);
  // The scope of a Group is always set: a patch would leave the scope of the grant before.
  const ofGroup = { scope: config.scope ?? "NeverInstalled" };
  const install = { generation: next, ledger: id, until, ...(place.kind === "Group" && ofGroup) };
  return { install, until };
}

interface LedgerAnswer {
  readonly id: string;
  /** The ledger's clock. */
  readonly nowMs: number;
  /** True if davit knows the object. */
  readonly isKnown: boolean;
  /** The highest generation that any machine has spent, that has ended, or that the object has as davit knows it. */
  readonly highest: number;
}

/** @throws {StartError} also if there is no ledger. */
async function askLedger(operations: OperationsOptions, { kind, namespace, name }: ObjectPlace): Promise<LedgerAnswer> {
  const key = encodeURIComponent(`${kind.toLowerCase()}/${namespace}/${name}`);
  const { id, now, grant } = await readOperations(operations, `/ledger?grant=${key}`);
  const { spentGeneration, isKnown, object } = objectOf(grant);
  const nowMs = typeof now === "string" ? Date.parse(now) : Number.NaN;
  if (typeof spentGeneration !== "number" || Number.isNaN(nowMs)) {
    throw new StartError(
      `Asking "${operations.opsUrl.origin}": its answer is unreadable: use davit machine of the same version`,
    );
  }
  if (typeof id !== "string")
    throw new StartError("No ledger yet, so nothing can be granted: davit machine ledger shows why");
  const ofObject = isJsonObject(object) && typeof object.generation === "number" ? object.generation : 0;
  return { id, nowMs, isKnown: isKnown === true, highest: Math.max(spentGeneration, ofObject) };
}

/** @throws {StartError} for a time that the ledger would refuse. */
function untilText(until: Until, nowMs: number): string {
  const untilMs = "atMs" in until ? until.atMs : nowMs + until.forMs;
  if (untilMs <= nowMs) throw new StartError("Bad --until: the time is over by the ledger's clock");
  if (untilMs - nowMs > maxAheadMs) throw new StartError("Bad --until: a grant ends at most 7 days ahead");
  return toRfc3339(untilMs).replace(/\.\d+Z$/, "Z");
}

function doneText(place: ObjectPlace, { generation, scope, ledger }: JsonObject, until: string): string {
  const times = `generation ${String(generation)} of ledger ${String(ledger)} is open until ${until}`;
  return `${nameOf(place)}: ${times}: ${machinesText(scope)}\n`;
}

/** @param scope undefined for a Machine. */
function machinesText(scope: JsonValue | undefined): string {
  if (scope === undefined) return "it installs once at its next boot, whatever is on its disks";
  if (scope === "All") return "every machine, installed ones included, installs once at its next boot";
  return "machines that were never installed, or failed, install once at their next boot";
}
