/** `davit machine approve`, `hold` and `release`: they change the Machine object, or print the change. */

import { StartError } from "../../lib/start-error.ts";
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import { isUuid, normalizeMac } from "../../model/labels/hardware-ids.ts";
import type { Environment } from "../../options/parsing.ts";
import { configWithout, type Paths } from "../../options/rules.ts";
import { workCommand } from "../core/command-line.ts";
import type { Host } from "../core/host.ts";
import { type ClusterOptions, clusterOf, nameOf, type ObjectPlace, withCluster } from "./cluster.ts";
import { type OperationsOptions, readOperations } from "./operations.ts";
import {
  machineHelp,
  type NamedObject,
  onlyWord,
  operationsOptions,
  patchOptions,
  readMachineOptions,
  readNamedObject,
} from "./options.ts";
import { fileOf, writeObject } from "./write.ts";

/** Where a change goes. */
interface PatchTarget {
  readonly print: boolean;
  /** The directory, or file, of `--write`. */
  readonly write: string | undefined;
  /** `--namespace`. */
  readonly namespace: string | undefined;
  /** Undefined if nothing names a cluster. */
  readonly cluster: ClusterOptions | undefined;
}

interface ObjectVerb {
  readonly verb: string;
  readonly spec: JsonObject;
  /** Completes the sentence `Machine racks/node7 ...`. */
  readonly done: string;
}

const objectOptions = { ...patchOptions, ...operationsOptions };
const anyObject = "[NAMESPACE/]NAME|MAC|UUID";

function objectCommand({ verb, spec, done }: ObjectVerb) {
  return workCommand({
    name: `machine ${verb}`,
    help: machineHelp(
      `machine ${verb} ${anyObject}`,
      `Sets ${specText(spec)} of a Machine in the cluster, or in its file (--write).`,
      objectOptions,
    ),
    readConfig: (args, environment, paths) => {
      const { words, values, problems } = readMachineOptions(objectOptions, args, environment, paths);
      const word = onlyWord(words, problems, anyObject);
      const isIdentity = normalizeMac(word) !== undefined || isUuid(word);
      const machine = isIdentity ? undefined : readNamedObject(word, "Machine");
      if (!isIdentity && machine?.kind !== "Machine") problems.push(`Bad name "${word}": give ${anyObject}`);
      problems.push(...targetProblems(values));
      return configWithout(problems, { ...values, word, machine, ...patchTarget(values, environment, paths) });
    },
    work: async ({ machine, word, ...config }, host) => {
      const named = machine ?? (await namedByIdentity(config, word));
      await changeObject(config, named, { spec, done }, host);
      return exitCode(config);
    },
  });
}

/** `davit machine approve` */
export const approveMachine = objectCommand({
  verb: "approve",
  spec: { approved: true },
  done: "is approved",
});

/** `davit machine hold` */
export const holdMachine = objectCommand({
  verb: "hold",
  spec: { hold: true },
  done: "is held",
});

/** `davit machine release` */
export const releaseMachine = objectCommand({
  verb: "release",
  spec: { hold: false },
  done: "is released",
});

/** Returns where a change goes, by the options and what names a cluster. */
export function patchTarget(
  values: Pick<ClusterOptions, "kubeconfig" | "context"> & Omit<PatchTarget, "cluster">,
  environment: Environment,
  paths: Paths,
): PatchTarget {
  const { print, write, namespace } = values;
  return { print, write, namespace, cluster: clusterOf(values, environment, paths) };
}

/** The problem of two options that exclude each other. */
export function targetProblems({ print, write }: Pick<PatchTarget, "print" | "write">): readonly string[] {
  return print && write !== undefined ? ["Both --print and --write are given: choose one"] : [];
}

/** Changes an object, or prints the change if that is asked for or nothing names a cluster. */
async function changeObject(
  { print, write, namespace, cluster }: PatchTarget,
  named: NamedObject,
  { spec, done }: Pick<ObjectVerb, "spec" | "done">,
  host: Host,
): Promise<void> {
  if (write !== undefined) {
    const place = placeOf(named, namespace, undefined);
    const file = await fileOf(write, place);
    await writeObject(file, place, spec);
    host.write(`${nameOf(place)} ${done}, by "${file.path}"\n`);
    return;
  }
  if (print || cluster === undefined) {
    printChange(await placeBy(named, { namespace, cluster }), spec, { print, host });
    return;
  }
  await withCluster(cluster, async (objects) => {
    const place = placeOf(named, namespace, objects.namespace);
    await objects.patch(place, { spec });
    host.write(`${nameOf(place)} ${done}\n`);
  });
}

/** Prints a change. Without `--print`, a line on standard error says that nothing is changed. */
export function printChange(
  place: ObjectPlace,
  spec: JsonObject,
  { print, host }: { readonly print: boolean; readonly host: Host },
): void {
  if (!print)
    host.writeError(
      "Nothing is changed: there is no kubeconfig. Apply this yourself, or give --kubeconfig, or --write for files:\n",
    );
  host.write(printedPatch(place, spec));
}

/** 1 if the object should have been changed, but could not be: a script must not take it for changed. */
export function exitCode({ print, write, cluster }: PatchTarget): number {
  return print || write !== undefined || cluster !== undefined ? 0 : 1;
}

/**
 * Completes the name of an object that the command does not read in the cluster. It reads the kubeconfig only for a
 * namespace that nothing else names.
 */
export async function placeBy(
  named: NamedObject,
  { namespace, cluster }: Pick<PatchTarget, "namespace" | "cluster">,
): Promise<ObjectPlace> {
  const isKnown = (named.namespace ?? namespace) !== undefined || cluster === undefined;
  const ofContext = isKnown ? undefined : await withCluster(cluster, (objects) => Promise.resolve(objects.namespace));
  return placeOf(named, namespace, ofContext);
}

/** Completes the name of an object. */
export function placeOf(
  { kind, namespace: ofName, name }: NamedObject,
  ofOption: string | undefined,
  ofContext: string | undefined,
): ObjectPlace {
  if (ofName !== undefined && ofOption !== undefined && ofName !== ofOption) {
    throw new StartError(`Two namespaces for ${kind} "${name}": give "${ofName}" or --namespace, not both`);
  }
  return { kind, name, namespace: ofName ?? ofOption ?? ofContext ?? "default" };
}

/** Finds the Machine that lists a MAC address or uuid. @throws {StartError} if none does. */
async function namedByIdentity(operations: OperationsOptions, word: string): Promise<NamedObject> {
  const { name } = await readOperations(operations, `/machines/${encodeURIComponent(word)}`);
  const named = typeof name === "string" ? readNamedObject(name, "Machine") : undefined;
  if (named === undefined) throw new StartError(`No Machine lists "${word}": create one with it in spec.identity`);
  return named;
}

function specText(spec: JsonObject): string {
  return Object.entries(spec)
    .map(([name, value]) => `spec.${name} to ${String(value)}`)
    .join(" and ");
}

/** Returns the text for a change of `spec`. */
function printedPatch(place: ObjectPlace, spec: JsonObject): string {
  const { kind, namespace, name } = place;
  const resource = kind === "Group" ? "groups.davit.dev" : "machines.davit.dev";
  const patch = JSON.stringify({ spec });
  return [
    `kubectl patch ${resource} ${name} --namespace ${namespace} --type merge --patch '${patch}'`,
    "",
    `# or in the file of ${nameOf(place)}:`,
    "spec:",
    ...yamlLines(spec, "  "),
    "",
  ].join("\n");
}

/** A text in quotes is a text in YAML, too: a ledger's id may look like a number. */
function yamlLines(object: JsonObject, indent: string): readonly string[] {
  return Object.entries(object).flatMap(([name, value]) =>
    isJsonObject(value)
      ? [`${indent}${name}:`, ...yamlLines(value, `${indent}  `)]
      : [`${indent}${name}: ${JSON.stringify(value)}`],
  );
}
