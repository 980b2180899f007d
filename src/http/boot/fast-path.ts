/**
 * The path of most machine requests: it answers a plain GET of a config, or of its signature, before Fastify's router
 * runs.
 * Measured: it saves one to two of twenty microseconds, about as much as selection and a boot script cost.
 *
 * It takes only requests that meet all conditions: a config's own path or its signature's, a target of usual length, a
 * client other than GRUB (which asks for signatures in its own ways), a server that is not ending. The routes answer
 * everything else. Both give the same bytes and the same log line.
 */

import type { IncomingMessage } from "node:http";
import { type ConfigName, configNames } from "../../boot/boot-configs.ts";
import { after } from "../../lib/soon.ts";
import { genericPart, isPartName } from "../../model/profile.ts";
import type { Rendered } from "../../render/core/rendered.ts";
import { isGrub } from "../../render/grub/grub.ts";
import { Clients, type Holder } from "../client-shares.ts";
import { LargeBodies } from "../large-bodies.ts";
import type { WireResponse } from "../response-headers.ts";
import type { FastPath } from "../server.ts";
import { pathEnd } from "../target.ts";
import type { AccessLog, RequestedMachine } from "./access-log.ts";
import { answerMachine, type Configs, partRoute } from "./answer.ts";
import {
  answerSignature,
  type BootSigner,
  type BootSigners,
  type SignatureForm,
  signatureForms,
  signerAt,
} from "./signatures.ts";

export interface BootFastPathOptions extends BootSigners {
  readonly configs: Configs;
  readonly accessLog: Pick<AccessLog, "follow">;
  /** Returns the client of a request, for limits by client. */
  readonly clients?: Clients;
  readonly large?: LargeBodies;
}

/** What a path asks for. */
interface AskedEndpoint {
  readonly name: ConfigName;
  /** The form of the config's signature; undefined for the config itself. */
  readonly form: SignatureForm | undefined;
  /** The signer of that signature. */
  readonly signer: BootSigner | undefined;
  /** The name under which requests are counted. */
  readonly route: string;
}

/** What a path asks for; undefined for a path that the routes answer. */
type AskedBy = (path: string) => AskedEndpoint | undefined;

const longestTarget = 2_048;

/** Makes the `fastPath` option of `createServer`. */
export function bootFastPath(options: BootFastPathOptions): FastPath {
  const { configs, accessLog, clients = new Clients(), large = new LargeBodies(), ...signers } = options;
  const askedBy = readPaths(signers);
  return (request, response, fail) => {
    const target = plainTarget(request, askedBy);
    if (target === undefined) return false;
    const { name, form, signer, route, path, rawQuery, userAgent } = target;
    let machine: RequestedMachine | undefined;
    const isSignature = form !== undefined;
    accessLog.follow(response, () => ({ method: "GET", path, route, machine, isSignature }));
    try {
      // Called only for large or slow configs: reading an address takes time.
      const client = () => clients.ofRequest(request);
      const rendered = answerMachine(configs, { name, rawQuery, userAgent, client }, (found) => {
        machine = found;
      });
      const answer =
        signer === undefined || form === undefined
          ? after(rendered, (known) => sendable(known, large, response, client))
          : after(rendered, (known) => answerSignature(known, { signer, form, client }));
      if (answer instanceof Promise) answer.then((made) => write(response, made)).catch(fail);
      else write(response, answer);
    } catch (error) {
      fail(error);
    }
    return true;
  };
}

function readPaths(signers: BootSigners): AskedBy {
  const byPath = new Map(
    configNames.flatMap((name) => {
      const signer = signerAt(signers, `/${name}`);
      return formsBy(signer).map((form): [string, AskedEndpoint] => {
        const route = `/${name}${endingOf(form)}`;
        return [route, { name, form, signer, route }];
      });
    }),
  );
  return (path) => byPath.get(path) ?? askedPart(path, signers.signer);
}

const unsigned: readonly AskedEndpoint["form"][] = [undefined];
const signed: readonly AskedEndpoint["form"][] = [undefined, ...signatureForms];

function formsBy(signer: BootSigner | undefined): readonly AskedEndpoint["form"][] {
  return signer === undefined ? unsigned : signed;
}

const partPath = /^\/generic\/([^/]+?)(?:\.(sig|asc))?$/;

function askedPart(path: string, signer: BootSigner | undefined): AskedEndpoint | undefined {
  const [, name, ending] = partPath.exec(path) ?? [];
  const form = signatureForms.find((known) => known === ending);
  if (name === undefined || !isPartName(name) || !formsBy(signer).includes(form)) return undefined;
  return { name: genericPart(name), form, signer, route: `${partRoute}${endingOf(form)}` };
}

function endingOf(form: AskedEndpoint["form"]): string {
  return form === undefined ? "" : `.${form}`;
}

interface FastAnswer {
  readonly contentType: string;
  readonly body: string | Buffer;
  readonly byteLength?: number | undefined;
}

/** The same text as bytes; a long one shares them with other answers. */
function sendable(rendered: Rendered, large: LargeBodies, response: WireResponse, client: () => Holder): FastAnswer {
  const body = large.take(rendered, response, client);
  if (typeof body === "string") return rendered;
  return { contentType: rendered.contentType, body, byteLength: body.length };
}

function write(response: WireResponse, { contentType, body, byteLength }: FastAnswer): void {
  const bytes = byteLength ?? Buffer.byteLength(body);
  const length = String(bytes);
  response.writeOrdered(200, ["Content-Type", contentType, "Cache-Control", "no-store", "Content-Length", length]);
  // Byte count equals letter count, so the text is ASCII. Node copies that faster if it is declared.
  if (typeof body === "string" && bytes === body.length) response.end(body, "latin1");
  else response.end(body);
}

interface PlainBootTarget extends AskedEndpoint {
  readonly path: string;
  readonly rawQuery: string;
  readonly userAgent: string;
}

function plainTarget(
  { method, url = "", headers, httpVersionMinor }: IncomingMessage,
  askedBy: AskedBy,
): PlainBootTarget | undefined {
  if (method !== "GET" || url.length > longestTarget) return undefined;
  if (headers.host === undefined && httpVersionMinor !== 0) return undefined;
  const userAgent = headers["user-agent"] ?? "";
  if (isGrub(userAgent)) return undefined;
  const end = pathEnd(url);
  const path = url.slice(0, end);
  const asked = askedBy(path);
  return asked && { ...asked, path, rawQuery: url.slice(end + 1), userAgent };
}
