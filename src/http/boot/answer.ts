/** Finds the config that a machine asks for, and reports the result to the access log. */

import { hash } from "node:crypto";
import type { ConfigName, ConfigRequest, MachineConfig } from "../../boot/boot-configs.ts";
import { BootError } from "../../boot/core/boot-error.ts";
import type { Soon } from "../../lib/soon.ts";
import type { Rendered } from "../../render/core/rendered.ts";
import type { RequestedMachine } from "./access-log.ts";

/**
 * The one route of all generic parts. Metrics use it as the name, so a stranger cannot add names by asking for parts.
 */
export const partRoute = "/generic/:name";

/** Makes machines' configs. A slow config is a promise. */
export interface Configs {
  /** @throws {BootError} */
  render(name: ConfigName, request: ConfigRequest): Soon<MachineConfig>;
}

/** Where the machine and the result of its question go, for the access log. */
export interface MachineVisit {
  machine: RequestedMachine | undefined;
}

/**
 * Returns the config that a machine asks for.
 * @param visit gets the machine and the result, also for a refusal.
 * @throws {BootError}
 */
export function answerMachine(
  configs: Configs,
  name: ConfigName,
  request: ConfigRequest,
  visit: MachineVisit,
): Soon<Rendered> {
  try {
    const config = configs.render(name, request);
    if (!(config instanceof Promise)) return found(name, config, request, visit);
    return config.then(
      (made) => found(name, made, request, visit),
      (error) => refused(error, request, visit),
    );
  } catch (error) {
    return refused(error, request, visit);
  }
}

function found(
  name: ConfigName,
  { rendered, group, profile }: MachineConfig,
  request: ConfigRequest,
  visit: MachineVisit,
): Rendered {
  const { labels, rawQuery } = request;
  const scriptSha256 = isScript(name) ? digestOf(rendered) : undefined;
  visit.machine = { labels, rawQuery, group, profile, scriptSha256 };
  return rendered;
}

/** True for a boot script. */
export function isScript(name: ConfigName): boolean {
  return name === "ipxe" || name === "grub";
}

/** The digests of kept texts: a Group's script for iPXE is the same object for each of its machines. */
const digests = new WeakMap<Rendered, string>();

function digestOf(rendered: Rendered): string {
  const known = digests.get(rendered);
  if (known !== undefined) return known;
  const digest = hash("sha256", rendered.body);
  digests.set(rendered, digest);
  return digest;
}

function refused(error: unknown, { labels, rawQuery }: ConfigRequest, visit: MachineVisit): never {
  visit.machine =
    error instanceof BootError
      ? { labels, rawQuery, group: error.group, profile: error.profile, refusal: error.reason, missing: error.asset }
      : { labels, rawQuery };
  throw error;
}
