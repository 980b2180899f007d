/**
 * Makes the variables of templates. Their values come from the Machine object, the Profile's metadata, the Group's
 * metadata, the selector, and davit itself. If several of these define one name, the last one wins.
 */

import { compareBytes } from "../../lib/order.ts";
import type { JsonObject, JsonValue } from "../../model/json.ts";
import { type Labels, sentLabels } from "../../model/labels/labels.ts";
import type { Group } from "../../model/objects/group.ts";
import { withDefaults } from "../core/values.ts";
import { RequestReads } from "./request-reads.ts";
import type { Variables } from "./template.ts";

/**
 * davit's address for machines, such as `http://192.0.2.1:8080`. It comes from the configuration, never from the
 * request.
 */
interface DavitAddress {
  readonly davitUrl: string;
}

/** The members of a Group that templates use. */
interface GroupScope extends Pick<Group, "metadata" | "selector"> {
  /** What the machine's Machine object says; undefined without one. */
  readonly machine?: JsonObject | undefined;
}

interface BootScope extends DavitAddress {
  readonly group: GroupScope;
  /** The Profile's metadata. */
  readonly defaults?: JsonObject | undefined;
}

export interface TemplateScope extends BootScope {
  readonly labels: Labels;
  /** The query as sent, without the `?`. */
  readonly rawQuery: string;
  /** The URL at which the machine reports its install; undefined unless the machine has a permit. */
  readonly reportUrl?: string | undefined;
}

/**
 * Returns the variables of configs: `machine`, metadata, the selector under lower-cased keys, `request` and `davit`.
 * @param reads records what the template reads of the request.
 */
export function templateVariables(
  { group, defaults, labels, rawQuery, davitUrl, reportUrl }: TemplateScope,
  reads = new RequestReads(),
): Variables {
  const davit = reportUrl === undefined ? davitEntry(davitUrl) : watchedDavit(davitUrl, reportUrl, reads);
  const variables = Object.fromEntries([...groupEntries(group, defaults), davit]);
  let request: JsonObject | undefined;
  const get = () => {
    reads.note();
    // Created once, because a loop can read it 100,000 times.
    request ??= { query: Object.fromEntries(sentLabels(labels)), raw_query: rawQuery };
    return request;
  };
  return Object.defineProperty(variables, "request", { enumerable: true, get });
}

/**
 * The URL for reports has a token of one machine and one install. So its read counts as a read of the request, but
 * davit chooses its text.
 */
function watchedDavit(url: string, reportUrl: string, reads: RequestReads): NamedValue {
  const get = () => {
    reads.note({ isText: false });
    return reportUrl;
  };
  return ["davit", Object.defineProperty({ url }, "report", { enumerable: true, get })];
}

/**
 * Returns the variables of kernel, initrds and arguments. They lack `request`, so that nothing from a machine gets into
 * a boot script. A metadata key `request` is left out, too.
 */
export function bootVariables({ group, defaults, davitUrl }: BootScope): Variables {
  const entries = groupEntries(group, defaults).filter(([name]) => name !== "request");
  return Object.fromEntries([...entries, davitEntry(davitUrl)]);
}

type NamedValue = readonly [name: string, value: JsonValue];

function groupEntries(
  { metadata, selector, machine }: GroupScope,
  defaults: JsonObject | undefined,
): readonly NamedValue[] {
  // If two keys differ only in case, the lower one in byte order wins, as in `/metadata`.
  const labels = Object.entries(selector).toSorted(([a], [b]) => compareBytes(b, a));
  const own = Object.entries(withDefaults(metadata, defaults));
  // `machine` comes first, so that a Machine object never replaces metadata that already has this name.
  const ofMachine: readonly NamedValue[] = machine === undefined ? [] : [["machine", machine]];
  return [...ofMachine, ...own, ...labels.map(([label, value]): NamedValue => [label.toLowerCase(), value])];
}

function davitEntry(davitUrl: string): NamedValue {
  return ["davit", { url: davitUrl }];
}
