/**
 * Makes the variables of templates. Their values come from the Machine object, the Profile's metadata, the Group's
 * metadata, the selector, and davit itself. If several of these define one name, the last one wins.
 */

import { compareBytes } from "../../lib/order.ts";
import type { JsonObject, JsonValue } from "../../model/json.ts";
import { type Labels, sentLabels } from "../../model/labels/labels.ts";
import type { Group } from "../../model/objects/group.ts";
import { isHarmless } from "../core/request-text.ts";
import { withDefaults } from "../core/values.ts";
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

/** Records what a template reads of its request. Anything of the request that a template prints is recorded here. */
export class RequestReads {
  readonly #noted: (() => void) | undefined;
  #isAny = false;
  /** True after a read of a text that GRUB or a shell could take for more than data. */
  isHarmful = false;

  /** @param noted called synchronously at each read. */
  constructor(noted?: () => void) {
    this.#noted = noted;
  }

  /** True after any read. A result without reads is the same for every request. */
  get isAny(): boolean {
    return this.#isAny;
  }

  /** Records a read. */
  note(): void {
    this.#isAny = true;
    this.#noted?.();
  }
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
    request ??= watchedRequest(sentLabels(labels), rawQuery, reads);
    return request;
  };
  return Object.defineProperty(variables, "request", { enumerable: true, get });
}

/** The URL for reports has a token of one machine and one install. So its read counts as a read of the request. */
function watchedDavit(url: string, reportUrl: string, reads: RequestReads): NamedValue {
  const get = () => {
    reads.note();
    return reportUrl;
  };
  return ["davit", Object.defineProperty({ url }, "report", { enumerable: true, get })];
}

function watchedRequest(labels: ReadonlyMap<string, string>, rawQuery: string, reads: RequestReads): JsonObject {
  return {
    query: watchedLabels(labels, reads),
    get raw_query() {
      reads.isHarmful ||= !isHarmless(rawQuery);
      return rawQuery;
    },
  };
}

function watchedLabels(labels: ReadonlyMap<string, string>, reads: RequestReads): JsonObject {
  const query: JsonObject = Object.fromEntries(labels);
  for (const [name, value] of labels) {
    // Loops and the helper `json` can print names, too. Both also read the value.
    if (isHarmless(name) && isHarmless(value)) continue;
    const get = () => {
      reads.isHarmful = true;
      return value;
    };
    Object.defineProperty(query, name, { enumerable: true, get });
  }
  return query;
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
