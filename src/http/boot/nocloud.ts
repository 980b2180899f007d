/**
 * The files that cloud-init's data source NoCloud reads below a URL. Each is the generic part of its name, if the
 * Profile has one. Else davit makes it, because cloud-init asks eleven times for a file that is missing, once a second.
 */

import type { ConfigName } from "../../boot/boot-configs.ts";
import { BootError } from "../../boot/core/boot-error.ts";
import { after, rescued, type Soon } from "../../lib/soon.ts";
import { identityLabels, type Labels } from "../../model/labels/labels.ts";
import { genericPart } from "../../model/objects/profile.ts";
import { plainText, type Rendered } from "../../render/core/rendered.ts";
import type { MachineVisit, RefusalSink } from "./answer.ts";

/** What cloud-init asks for: up to 24.2 without `network-config`. */
export const nocloudFiles = ["user-data", "meta-data", "vendor-data", "network-config"] as const;
export type NocloudFile = (typeof nocloudFiles)[number];

/** How a file finds the machine's configs. */
export interface NocloudRequest {
  /** Has the machine as soon as a config was asked for. */
  readonly visit: MachineVisit;
  /** @throws {BootError} */
  readonly config: (name: ConfigName) => Soon<Rendered>;
  /** As `config`, where it is no refusal that the Profile lacks the config. @throws {BootError} also then. */
  readonly optional: (name: ConfigName) => Soon<Rendered>;
}

/**
 * Returns a file of the machine.
 * @throws {BootError} as its configs. Without `cloudConfig` and without a part of its name, `user-data` is missing.
 */
export function nocloudFile(file: NocloudFile, request: NocloudRequest): Soon<Rendered> {
  return rescued(
    () => request.optional(genericPart(file)),
    (error) => {
      if (!isForWantOfPart(error)) throw error;
      return madeFile(file, request);
    },
  );
}

/** Returns a sink that takes every refusal but that of a Profile that lacks the config. */
export function exceptForWantOfPart(sink: RefusalSink): RefusalSink {
  return (refusal, request) => {
    if (!isForWantOfPart(refusal)) sink(refusal, request);
  };
}

function isForWantOfPart(error: unknown): boolean {
  return error instanceof BootError && error.reason === "noPart";
}

function madeFile(file: NocloudFile, { visit, config }: NocloudRequest): Soon<Rendered> {
  if (file === "user-data") return config("cloud");
  if (file === "meta-data") return after(config("metadata"), ({ body }) => metaData(visit.machine?.labels, body));
  if (visit.machine !== undefined) visit.machine = { ...visit.machine, refusal: undefined };
  return { body: "", contentType: plainText, isShared: true };
}

/** A value of `hostname` that is a name of RFC 1123; in `/metadata` such a value is never in quotes. */
const hostnameLine = /^HOSTNAME=([a-z\d](?:[a-z\d.-]{0,251}[a-z\d])?)$/im;

/** @param metadata the text of `/metadata`: only metadata and selectors have a line `HOSTNAME`. */
function metaData(labels: Labels | undefined, metadata: string): Rendered {
  const identity = identityLabels.map((name) => labels?.get(name)).find((value) => value !== undefined && value !== "");
  const [, hostname] = hostnameLine.exec(metadata) ?? [];
  const id = JSON.stringify(identity ?? hostname ?? "davit");
  const body = `instance-id: ${id}\n${hostname === undefined ? "" : `local-hostname: ${hostname}\n`}`;
  const from = "instance-id: ".length;
  return { body, contentType: plainText, ofRequest: [from, from + id.length] };
}
