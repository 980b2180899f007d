/**
 * The way that most requests of machines take: a plain GET of a config, or of its signature, is answered here, before
 * Fastify's router sees it.
 * Measured, that saves one to two of twenty microseconds, about as much as selection and a boot script cost.
 *
 * It takes only requests that it is sure of: a config's own path or its signature's, a target of usual length, a client that is not GRUB
 * (which asks for signatures in ways of its own), a server that is not ending. Whatever else it meets is left to the
 * routes, which answer everything. What it answers has the same bytes as theirs, and the same line in the log.
 */

import type { IncomingMessage } from "node:http";
import { type BootConfigs, type ConfigName, configNames } from "../boot/boot-configs.ts";
import type { AccessLog, RequestedMachine } from "./access-log.ts";
import { answerMachine } from "./boot-answer.ts";
import type { WireResponse } from "./response-headers.ts";
import type { FastPath } from "./server.ts";
import { answerSignature, type BootSigner, type SignatureForm, signatureForms } from "./signatures.ts";

export interface BootFastPathOptions {
  readonly configs: Pick<BootConfigs, "render">;
  /** Undefined: there are no signatures. */
  readonly signer?: BootSigner | undefined;
  readonly accessLog: Pick<AccessLog, "follow">;
}

/** What a path asks for. */
interface Asked {
  readonly name: ConfigName;
  /** Of the config's signature; undefined for the config itself. */
  readonly form: SignatureForm | undefined;
}

const longestTarget = 2_048;

/** Makes what `createServer` takes as `fastPath`. */
export function bootFastPath({ configs, signer, accessLog }: BootFastPathOptions): FastPath {
  const askedByPath = pathsOf(signer === undefined ? [undefined] : [undefined, ...signatureForms]);
  return (request, response, fail) => {
    const target = plainTarget(request, askedByPath);
    if (target === undefined) return false;
    const { name, form, path, rawQuery, userAgent } = target;
    let machine: RequestedMachine | undefined;
    const isSignature = form !== undefined;
    accessLog.follow(response, () => ({ method: "GET", path, route: path, machine, isSignature }));
    try {
      const rendered = answerMachine(configs, { name, rawQuery, userAgent }, (found) => {
        machine = found;
      });
      const answer =
        signer === undefined || form === undefined ? rendered : answerSignature(signer, rendered.body, form);
      if (answer instanceof Promise) answer.then((made) => write(response, made)).catch(fail);
      else write(response, answer);
    } catch (error) {
      fail(error);
    }
    return true;
  };
}

function pathsOf(forms: readonly Asked["form"][]): ReadonlyMap<string, Asked> {
  const ending = (form: Asked["form"]) => (form === undefined ? "" : `.${form}`);
  return new Map(configNames.flatMap((name) => forms.map((form) => [`/${name}${ending(form)}`, { name, form }])));
}

interface Answer {
  readonly contentType: string;
  readonly body: string | Buffer;
  readonly byteLength?: number | undefined;
}

function write(response: WireResponse, { contentType, body, byteLength }: Answer): void {
  const length = String(byteLength ?? Buffer.byteLength(body));
  response.writeOrdered(200, ["Content-Type", contentType, "Cache-Control", "no-store", "Content-Length", length]);
  response.end(body);
}

interface PlainTarget extends Asked {
  readonly path: string;
  readonly rawQuery: string;
  readonly userAgent: string;
}

function plainTarget(
  { method, url = "", headers, httpVersionMinor }: IncomingMessage,
  askedByPath: ReadonlyMap<string, Asked>,
): PlainTarget | undefined {
  if (method !== "GET" || url.length > longestTarget) return undefined;
  if (headers.host === undefined && httpVersionMinor !== 0) return undefined;
  const userAgent = headers["user-agent"] ?? "";
  if (userAgent.startsWith("GRUB ")) return undefined;
  const mark = url.indexOf("?");
  const path = mark < 0 ? url : url.slice(0, mark);
  const asked = askedByPath.get(path);
  return asked && { ...asked, path, rawQuery: mark < 0 ? "" : url.slice(mark + 1), userAgent };
}
