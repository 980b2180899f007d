/**
 * The way that most requests of machines take: a plain GET of a config is answered here, before Fastify's router sees it.
 * Measured, that saves one to two of twenty microseconds, about as much as selection and a boot script cost.
 *
 * It takes only requests that it is sure of: a config's own path, a target of usual length, a client that is not GRUB
 * (which asks for signatures in ways of its own), a server that is not ending. Whatever else it meets is left to the
 * routes, which answer everything. What it answers has the same bytes as theirs, and the same line in the log.
 */

import type { IncomingMessage } from "node:http";
import { type BootConfigs, type ConfigName, configNames } from "../boot/boot-configs.ts";
import type { AccessLog, RequestedMachine } from "./access-log.ts";
import { answerMachine } from "./boot-answer.ts";
import type { FastPath } from "./server.ts";

export interface BootFastPathOptions {
  readonly configs: Pick<BootConfigs, "render">;
  readonly accessLog: Pick<AccessLog, "follow">;
}

const longestTarget = 2_048;
const namesByPath: ReadonlyMap<string, ConfigName> = new Map(configNames.map((name) => [`/${name}`, name]));

/** Makes what `createServer` takes as `fastPath`. */
export function bootFastPath({ configs, accessLog }: BootFastPathOptions): FastPath {
  return (request, response, fail) => {
    const target = plainTarget(request);
    if (target === undefined) return false;
    const { name, path, rawQuery, userAgent } = target;
    let machine: RequestedMachine | undefined;
    accessLog.follow(response, () => ({ method: "GET", path, route: path, machine }));
    try {
      const { body, contentType } = answerMachine(configs, { name, rawQuery, userAgent }, (found) => {
        machine = found;
      });
      const length = String(Buffer.byteLength(body));
      const headers = ["Content-Type", contentType, "Cache-Control", "no-store", "Content-Length", length];
      response.writeOrdered(200, headers);
      response.end(body);
    } catch (error) {
      fail(error);
    }
    return true;
  };
}

interface PlainTarget {
  readonly name: ConfigName;
  readonly path: string;
  readonly rawQuery: string;
  readonly userAgent: string;
}

function plainTarget({ method, url = "", headers, httpVersionMinor }: IncomingMessage): PlainTarget | undefined {
  if (method !== "GET" || url.length > longestTarget) return undefined;
  if (headers.host === undefined && httpVersionMinor !== 0) return undefined;
  const userAgent = headers["user-agent"] ?? "";
  if (userAgent.startsWith("GRUB ")) return undefined;
  const mark = url.indexOf("?");
  const path = mark < 0 ? url : url.slice(0, mark);
  const name = namesByPath.get(path);
  return name && { name, path, rawQuery: mark < 0 ? "" : url.slice(mark + 1), userAgent };
}
