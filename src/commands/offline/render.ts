import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { advertisedAuthority, advertisedTlsAddress } from "../../app/core/advertise.ts";
import { BootConfigs, configNames } from "../../boot/boot-configs.ts";
import { BootError } from "../../boot/core/boot-error.ts";
import { BootSnapshot } from "../../boot/explaining/boot-snapshot.ts";
import { requestWarnings, type Warning } from "../../boot/explaining/warnings.ts";
import type { BootIndex } from "../../boot/selection/boot-index.ts";
import { answerError, RequestError } from "../../http/errors.ts";
import { diskFailure } from "../../lib/files/disk-sentence.ts";
import { createLog } from "../../lib/logging/create-log.ts";
import { authority as addressText } from "../../lib/text/address.ts";
import { LabelError, type Labels, labelsFromQuery } from "../../model/labels/labels.ts";
import { type GenericPart, isGenericPart, isPartName, partsOf } from "../../model/objects/profile.ts";
import { wantsOf } from "../../model/selection/wants.ts";
import { bootIndexOf, type Manifests } from "../../offline/load/load-manifests.ts";
import type { CommandHelp, Environment, Option, Values } from "../../options/parsing.ts";
import { each, newDirectoryOption, one, readChoice, readLabel, readText, switchOption } from "../../options/readers.ts";
import { configWithout, type Paths, readOptions } from "../../options/rules.ts";
import { serveOptions } from "../../options/table.ts";
import { bootScript, chainScript } from "../../render/ipxe/ipxe.ts";
import { workCommand } from "../core/command-line.ts";
import type { Host } from "../core/host.ts";
import { loadInput, problemLine } from "../core/load-input.ts";
import { offlineOptions } from "../core/offline-options.ts";

/** The endpoints of `--endpoint all`, besides generic parts. */
const machineEndpoints = ["boot.ipxe", ...configNames] as const;
/** The endpoints that `--endpoint` accepts, besides generic parts. The query of `/chain.ipxe` is not the machine's. */
const renderedEndpoints = ["chain.ipxe", ...machineEndpoints] as const;
type RenderedEndpoint = (typeof renderedEndpoints)[number] | GenericPart;

/** Represents the endpoints of generic parts in help and messages. */
const namedPart = "generic/NAME";

const renderOptions = {
  ...offlineOptions,
  labels: {
    flag: "label",
    value: "NAME=VALUE",
    repeatable: true,
    help: "a label that the machine sends, such as mac=52:54:00:a1:9c:ae",
    read: each(readLabel),
    excludes: { name: "query", excess: "Two queries" },
  } satisfies Option<readonly (readonly [name: string, value: string])[]>,
  query: {
    flag: "query",
    value: "TEXT",
    help: "instead of labels: the query just as the machine sends it, which some configs print",
    read: one(readText),
  } satisfies Option<string>,
  endpoint: {
    flag: "endpoint",
    value: [...renderedEndpoints, namedPart, "all"].join("|"),
    preset: "ipxe",
    help: "what the machine asks for; the labels are its query; all needs --output, and leaves out chain.ipxe",
    read: one(readEndpoint),
  } satisfies Option<RenderedEndpoint | "all">,
  output: newDirectoryOption(
    "output",
    "write files named by endpoint there, mode 0600, instead of to standard output; created if it is missing",
  ),
  userAgent: {
    flag: "user-agent",
    value: "TEXT",
    help: 'as the client names itself; "GRUB 2.06" gets what GRUB gets',
    read: one(readText),
  } satisfies Option<string>,
  advertiseAddress: serveOptions.advertiseAddress,
  advertiseTlsAddress: {
    ...serveOptions.advertiseTlsAddress,
    help:
      "where machines reach davit by HTTPS, for Profiles and Groups with requireTls; default: port 8443 of the " +
      "address for HTTP",
    needs: [],
  },
  grubSeparator: serveOptions.grubSeparator,
  grubCommands: serveOptions.grubCommands,
  signed: switchOption(
    "signed",
    "as davit serve with a signing key: /grub of an Install is for the machine of that MAC only; it needs no key",
  ),
};

function readEndpoint(text: string): RenderedEndpoint | "all" | ReturnType<typeof readFixed> {
  return isGenericPart(text) && isPartName(text.slice("generic/".length)) ? text : readFixed(text);
}

const readFixed = readChoice([...renderedEndpoints, "all"], [namedPart]);

/** The options of `davit render`, parsed. */
type RenderConfig = Omit<Values<typeof renderOptions>, "labels" | "query"> & {
  /** The query of the machine's request, after the `?`. */
  readonly rawQuery: string;
};

/**
 * Reads the options of `davit render`.
 * @throws {ConfigError} with every problem.
 */
export function readRenderConfig(args: readonly string[], environment: Environment, paths: Paths): RenderConfig {
  const { values, problems } = readOptions(renderOptions, args, environment, paths);
  const { labels, query, ...rest } = values;
  if (query !== undefined && !/^[\x21-\x7e]+$/.test(query)) {
    problems.push("Bad value for --query: only printable ASCII can be sent; encode the rest, or give --label");
  }
  if (query?.startsWith("?") === true) problems.push("Bad value for --query: it begins with ?, which is no part of it");
  if (rest.endpoint === "all" && rest.output === undefined)
    problems.push("No place for all of them: give --output DIR");
  const rawQuery = query ?? labels.map((pair) => pair.map(encodeURIComponent).join("=")).join("&");
  return configWithout(problems, { ...rest, rawQuery });
}

const renderHelp: CommandHelp = {
  usage: "render --manifests DIR --label NAME=VALUE",
  purpose: "Prints what davit serve would answer a machine, byte for byte, without a server.",
  options: renderOptions,
};

/** `davit render`: shows what a server would answer a machine, from manifests alone. */
export const render = workCommand({
  name: "render",
  endsAtOnce: true,
  help: renderHelp,
  readConfig: readRenderConfig,
  work: renderAll,
});

async function renderAll(config: RenderConfig, host: Host): Promise<number> {
  const { manifests: places, adminNamespace, endpoint: asked, output } = config;
  const log = createLog({ level: "error", format: "json", destination: { write: host.writeError } });
  const manifests = await loadInput({ manifests: places, adminNamespace, log }, host);
  for (const problem of manifests.view.problems) host.writeError(problemLine(problem));
  const { endpoints, ask, winner, warnings } = machineOf(manifests, config);
  // The boot scripts are the same for every machine.
  if (asked !== "boot.ipxe" && asked !== "chain.ipxe") describe({ winner, warnings }, host);
  if (asked !== "all") return (await give(asked, ask(asked), { output, host })).kind === "body" ? 0 : 1;
  let exitCode = 0;
  for (const endpoint of endpoints) {
    const answer = await give(endpoint, ask(endpoint), { output, host });
    // `all` asks for every part, but a Profile need not have every part.
    if (answer.kind === "refused" && !answer.isPartMissing) exitCode = 1;
  }
  return exitCode;
}

function describe({ winner, warnings }: Pick<RenderedMachine, "winner" | "warnings">, host: Host): void {
  if (winner !== undefined) host.writeError(`Group ${winner.group}, Profile ${winner.profile}\n`);
  for (const { code, text } of warnings) host.writeError(`warning: ${text} (${code})\n`);
}

/** Writes an answer to standard output or a file, or prints why there is none. */
async function give(
  endpoint: string,
  answer: RenderedAnswer,
  { output, host }: Pick<RenderConfig, "output"> & { readonly host: Host },
): Promise<RenderedAnswer> {
  if (output !== undefined) await writeAnswer(output, endpoint, answer);
  else if (answer.kind === "body") host.write(answer.body);
  if (answer.kind === "refused") {
    host.writeError(`${[`${endpoint}: ${answer.words}`, ...answer.details].join("\n  ")}\n`);
  }
  return answer;
}

/**
 * Writes an answer to a file. Before that, it removes any old file of this name. The old file may be a link that davit
 * must not follow, or an answer that the machine no longer gets.
 */
async function writeAnswer(directory: string, endpoint: string, answer: RenderedAnswer): Promise<void> {
  const path = join(directory, endpoint.replace("/", "-"));
  try {
    await mkdir(directory, { recursive: true });
    await rm(path, { force: true });
    // The mode keeps texts of Secrets from other users. The flag refuses a link that someone puts there meanwhile.
    if (answer.kind === "body") await writeFile(path, answer.body, { flag: "wx", mode: 0o600 });
  } catch (error) {
    throw diskFailure("Writing", path, error);
  }
}

/** An endpoint's body, or why there is none. */
export type RenderedAnswer =
  | { readonly kind: "body"; readonly body: string }
  | {
      readonly kind: "refused";
      /** The text that a server would answer. */
      readonly words: string;
      /** What a server would log, and the conditions of the objects: one line each. */
      readonly details: readonly string[];
      /** True if the only reason is that the Profile has no such part. */
      readonly isPartMissing: boolean;
    };

/** The request, and the server's settings. */
type MachineAsking = Pick<
  RenderConfig,
  "rawQuery" | "userAgent" | "advertiseAddress" | "advertiseTlsAddress" | "grubSeparator" | "grubCommands" | "signed"
>;

/** The answers to one machine. */
interface RenderedMachine {
  /** The endpoints that the machine can ask for, including the generic parts of its Profile. */
  readonly endpoints: readonly RenderedEndpoint[];
  readonly ask: (endpoint: RenderedEndpoint) => RenderedAnswer;
  /** The winning Group and its Profile, even if the machine is refused; undefined if no Group is chosen. */
  readonly winner: { readonly group: string; readonly profile: string } | undefined;
  /** Warnings on the request and its Group, as in a preview. */
  readonly warnings: readonly Warning[];
}

/** Reads a request, finds its Group, and returns the answers to the machine. */
export function machineOf(manifests: Manifests, config: MachineAsking): RenderedMachine {
  const { rawQuery, userAgent = "", advertiseAddress, signed: isSigned } = config;
  const authority = advertisedAuthority(advertiseAddress, defaultListening);
  const tlsAuthority = addressText(advertisedTlsAddress(config, { ...defaultListening, port: usualTlsPort }));
  const index = bootIndexOf(manifests);
  const grub = { separator: config.grubSeparator, commands: config.grubCommands };
  const configs = new BootConfigs({ index, authority, tlsAuthority, grub, isSigned, permits: "assumed" });
  const ask = (endpoint: RenderedEndpoint): RenderedAnswer => {
    if (endpoint === "boot.ipxe") return { kind: "body", body: bootScript };
    try {
      if (endpoint === "chain.ipxe") return { kind: "body", body: chained(rawQuery) };
      const { rendered } = configs.render(endpoint, { labels: labelsFromQuery(rawQuery), rawQuery, userAgent });
      return { kind: "body", body: rendered.body };
    } catch (error) {
      return refusalOf(error, endpoint, manifests);
    }
  };
  const machine = readMachine(index, rawQuery);
  const chosen = machine?.moment.chosen;
  return {
    winner: chosen && { group: chosen.id, profile: chosen.profileId },
    endpoints: [...machineEndpoints, ...partsFor(machine)],
    ask,
    warnings: machine === undefined ? [] : warningsFor(machine, index),
  };
}

/** @throws {RequestError} badRequest, as the server. */
function chained(rawQuery: string): string {
  const script = chainScript(labelsFromQuery(rawQuery));
  if (script === undefined) throw new RequestError("badRequest");
  return script.body;
}

interface ReadMachine {
  readonly labels: Labels;
  readonly moment: BootSnapshot;
}

/**
 * Returns the query's labels and what the boot index has for them; undefined for a bad query. Every answer reports the
 * bad query.
 */
function readMachine(index: BootIndex, rawQuery: string): ReadMachine | undefined {
  try {
    const labels = labelsFromQuery(rawQuery);
    return { labels, moment: new BootSnapshot(index, labels) };
  } catch (error) {
    if (error instanceof LabelError) return undefined;
    throw error;
  }
}

function warningsFor({ moment }: ReadMachine, { groups }: BootIndex): readonly Warning[] {
  const selectorLabels = new Set([...groups.values()].flatMap((group) => wantsOf(group).map(({ label }) => label)));
  return requestWarnings({ labels: moment.seen.labels, selectorLabels, chosen: moment.chosen });
}

/** Returns the generic parts of the machine's Profile; none without a Profile, which every answer then reports. */
function partsFor(machine: ReadMachine | undefined): readonly GenericPart[] {
  return partsOf(machine?.moment.profile?.content.templates ?? {}).filter(isGenericPart);
}

/** Where davit serve listens for machines by default. */
const defaultListening = { host: "::", port: Number(serveOptions.bootAddress.preset.split(":").at(-1)) };

/** Where the examples of the documentation listen by HTTPS. */
const usualTlsPort = 8443;

/** Returns the refusal that an error stands for. @throws the error itself if it is a bug. */
function refusalOf(error: unknown, endpoint: string, manifests: Manifests): RenderedAnswer {
  const { body, report } = answerError(error, endpoint);
  const isBug = report !== undefined && "err" in report;
  if (isBug) throw error;
  const words = body.trim();
  if (!(error instanceof BootError)) return { kind: "refused", words, details: [], isPartMissing: false };
  const logged = Object.entries(report ?? {}).map(([name, value]) => `${name}: ${String(value)}`);
  const details = [...logged, ...complaints(error, manifests)];
  return { kind: "refused", words, details, isPartMissing: error.reason === "noPart" };
}

/** Returns a line for the Group and the Profile of a refusal, for each of them that is not ready. */
function complaints({ group, profile }: BootError, { planned }: Manifests): readonly string[] {
  const subjects = [`Group ${group}`, `Profile ${profile}`];
  return planned.flatMap(({ name, status }) => {
    const subject = `${name.kind} ${name.namespace}/${name.name}`;
    const ready = status?.conditions.find((condition) => condition.type === "Ready");
    if (!subjects.includes(subject) || ready === undefined || ready.status === "True") return [];
    return [`${subject}: ${ready.reason}: ${ready.message}`];
  });
}
