/** The options of `davit machine`, and the objects that its words name. */

import { isLoopback } from "../../lib/text/address.ts";
import { type MachinePhase, machinePhases } from "../../model/objects/machine.ts";
import { installScopes } from "../../model/permits/permit.ts";
import {
  type CommandHelp,
  ConfigError,
  type Environment,
  type Option,
  OptionRefusal,
  type OptionTable,
  readTable,
} from "../../options/parsing.ts";
import {
  fileOption,
  one,
  readChoice,
  readDuration,
  readNamespace,
  readObjectName,
  readServerUrl,
  readText,
  switchOption,
} from "../../options/readers.ts";
import { type Paths, ruleProblems } from "../../options/rules.ts";

export const operationsOptions = {
  opsUrl: {
    flag: "ops-url",
    value: "URL",
    preset: "http://127.0.0.1:8081",
    help: "the operations listener of the davit serve that keeps the ledger",
    read: one(readServerUrl),
  } satisfies Option<URL>,
  opsTokenFile: fileOption(
    "ops-token-file",
    "token to send there: the first one in the file; adopt and forget need one of --ops-admin-token-file",
  ),
};

export const outputOptions = {
  output: {
    flag: "output",
    value: "table|json",
    preset: "table",
    help: "how to print what davit answers",
    read: one(readChoice(["table", "json"])),
  } satisfies Option<"table" | "json">,
};

export const watchOption = {
  watch: switchOption("watch", "print again when something has changed, until interrupted"),
};

export const namespaceOptions = {
  namespace: {
    flag: "namespace",
    value: "NAMESPACE",
    help: "namespace of the object; default: the one of the kubeconfig's context, or default",
    read: one(readNamespace),
  } satisfies Option<string>,
  kubeconfig: fileOption(
    "kubeconfig",
    "how to reach the cluster; default: KUBECONFIG, then the pod's account, then ~/.kube/config",
  ),
  context: {
    flag: "context",
    value: "NAME",
    help: "context of the kubeconfig; default: its current context",
    read: one(readText),
  } satisfies Option<string>,
};

export const patchOptions = {
  ...namespaceOptions,
  write: {
    flag: "write",
    value: "DIR",
    help: "change the object in its file below this directory, or in this file; comments and layout stay",
    read: one(readText),
  } satisfies Option<string>,
  print: switchOption("print", "change nothing: print the kubectl command, and the lines for a file"),
};

/** A time that an operator gives: a duration from now, or a point in time in Unix milliseconds. */
export type Until = { readonly forMs: number } | { readonly atMs: number };

/** Makes the option for the end of a grant or an adoption. */
export function untilOption(help: string) {
  return {
    flag: "until",
    value: "DURATION|TIME",
    preset: "24h",
    help,
    read: one(readUntil),
  } satisfies Option<Until>;
}

export const scopeOption = {
  scope: {
    flag: "scope",
    value: installScopes.join("|"),
    help: "of a Group's grant; All: machines that are installed are installed again; default: NeverInstalled",
    read: one(readChoice(installScopes)),
  } satisfies Option<(typeof installScopes)[number]>,
};

/** What `davit machine list` lists. */
export const filterOptions = {
  group: {
    flag: "group",
    value: "NAME",
    help: "list only machines of this Group: NAME or NAMESPACE/NAME",
    read: one(readText),
  } satisfies Option<string>,
  phase: {
    flag: "phase",
    value: machinePhases.join("|"),
    help: "list only machines in this phase",
    read: one(readChoice(machinePhases)),
  } satisfies Option<MachinePhase>,
};

/** Every option of `davit machine`, for the page of options. Each command has some of them. */
export const machineOptions = {
  ...operationsOptions,
  ...outputOptions,
  ...watchOption,
  ...patchOptions,
  until: untilOption("when a grant or the adoption of a Group ends: after this time, or at this time"),
  ...scopeOption,
  ...filterOptions,
};

/** Returns the help of a command. */
export function machineHelp(usage: string, purpose: string, options: OptionTable): CommandHelp {
  const notes = [
    "Environment variables can set --ops-url, --ops-token-file, --kubeconfig and --context, such as",
    "DAVIT_OPS_URL for --ops-url. A flag overrides the variable.",
  ];
  return { usage, purpose, options, notes };
}

// Variables that no command line shows must not widen a grant, or change another object.
const variables = [
  ...["DAVIT_OPS_URL", "DAVIT_OPS_TOKEN_FILE", "DAVIT_KUBECONFIG", "DAVIT_CONTEXT"],
  // Former names, which are refused.
  ...["DAVIT_OPERATIONS_URL", "DAVIT_OPERATIONS_TOKEN_FILE"],
];

/** Returns the variables that may set options. */
export function variablesOf(environment: Environment): Environment {
  return Object.fromEntries(variables.map((name) => [name, environment[name]]));
}

/** Reads the words and the options of one command. Callers add problems of the words to those of the options. */
export function readMachineOptions<Options extends OptionTable & typeof operationsOptions>(
  table: Options,
  args: readonly string[],
  environment: Environment,
  paths: Paths,
) {
  const at = args.findIndex((arg) => arg.startsWith("-"));
  const words = at < 0 ? args : args.slice(0, at);
  const read = readTable(table, args.slice(words.length), variablesOf(environment), true);
  read.problems.push(...ruleProblems(table, read, paths), ...tokenProblems(read.values));
  return { words, ...read };
}

/** Returns the only word. @throws {ConfigError} with every problem if there is none, or another one. */
export function onlyWord(words: readonly string[], problems: string[], what: string): string {
  const [word, ...others] = words;
  if (word !== undefined && others.length === 0) return word;
  problems.push(word === undefined ? `Nothing named: give ${what}` : `Too many names: give one ${what}`);
  throw new ConfigError(problems);
}

interface OperationsToken {
  readonly opsUrl: URL | undefined;
  readonly opsTokenFile: string | undefined;
}

/** Refuses to send a token that others on the network could read. */
export function tokenProblems({ opsUrl: url, opsTokenFile: tokenFile }: OperationsToken): readonly string[] {
  if (url === undefined || tokenFile === undefined || url.protocol === "https:") return [];
  if (isLoopback(url.hostname.replace(/^\[|\]$/g, ""))) return [];
  const cure = "a token needs a URL that begins with https://, or a loopback address, such as by kubectl port-forward";
  return [`No TLS with "${url.origin}": ${cure}`];
}

/** An object that a word names. */
export interface NamedObject {
  readonly kind: "Group" | "Machine";
  /** Undefined if the word does not have it. */
  readonly namespace: string | undefined;
  readonly name: string;
}

const kindWords: Readonly<Record<string, NamedObject["kind"]>> = {
  group: "Group",
  groups: "Group",
  "group.davit.dev": "Group",
  "groups.davit.dev": "Group",
  machine: "Machine",
  machines: "Machine",
  dmach: "Machine",
  "machine.davit.dev": "Machine",
  "machines.davit.dev": "Machine",
};

/**
 * Reads `[KIND/][NAMESPACE/]NAME`; undefined for any other text.
 * @param presetKind for a word without a kind; undefined if the word must have one.
 */
export function readNamedObject(word: string, presetKind?: NamedObject["kind"]): NamedObject | undefined {
  const parts = word.split("/");
  const given = Object.hasOwn(kindWords, parts[0]?.toLowerCase() ?? "") && parts.length > 1 ? parts.shift() : undefined;
  const kind = given === undefined ? presetKind : kindWords[given.toLowerCase()];
  const [name = "", namespace, ...others] = parts.toReversed();
  if (kind === undefined || others.length > 0 || typeof readObjectName(name) !== "string") return undefined;
  if (namespace !== undefined && typeof readNamespace(namespace) !== "string") return undefined;
  return { kind, namespace, name };
}

/** Reads a duration such as `24h`, or a time as RFC 3339. */
function readUntil(text: string): Until | OptionRefusal {
  if (/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/.test(text)) {
    const atMs = Date.parse(text);
    if (!Number.isNaN(atMs)) return { atMs };
  }
  const forMs = readDuration(text);
  const isPositive = typeof forMs === "number" && forMs > 0;
  return isPositive
    ? { forMs }
    : new OptionRefusal("must be a duration with s, m or h, such as 24h, or a time such as 2026-12-01T18:00:00Z");
}
