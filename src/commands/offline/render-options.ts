/** The options of `davit render`. */

import { configNames } from "../../boot/boot-configs.ts";
import { type GenericPart, isGenericPart, isPartName } from "../../model/objects/profile.ts";
import type { CommandHelp, Environment, Option, Values } from "../../options/parsing.ts";
import { each, newDirectoryOption, one, readChoice, readLabel, readText, switchOption } from "../../options/readers.ts";
import { configWithout, type Paths, readOptions } from "../../options/rules.ts";
import { serveOptions } from "../../options/table.ts";
import { offlineOptions } from "../core/offline-options.ts";

/** The endpoints of `--endpoint all`, besides generic parts. */
export const machineEndpoints = ["boot.ipxe", ...configNames] as const;
/** The endpoints that `--endpoint` accepts, besides generic parts. The query of `/chain.ipxe` is not the machine's. */
const renderedEndpoints = ["chain.ipxe", ...machineEndpoints] as const;
export type RenderedEndpoint = (typeof renderedEndpoints)[number] | GenericPart;

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
export type RenderConfig = Omit<Values<typeof renderOptions>, "labels" | "query"> & {
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

export const renderHelp: CommandHelp = {
  usage: "render --manifests DIR --label NAME=VALUE",
  purpose: "Prints what davit serve would answer a machine, byte for byte, without a server.",
  options: renderOptions,
};
