/**
 * Signatures of configs: the same path with `.sig` or `.asc`, for the same query. Errors equal those of the path
 * without the ending, and are unsigned. Without a signing key these paths do not exist.
 */

import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { after, type Soon } from "../../lib/soon.ts";
import type { Rendered } from "../../render/core/rendered.ts";
import { isGrub } from "../../render/grub/grub.ts";
import type { Signer } from "../../sign/signer.ts";
import type { Clients, Holder } from "../client-shares.ts";
import { rawQueryOf } from "../server.ts";

/** The part of a signer that routes need. */
export type BootSigner = Pick<Signer, "sign" | "withhold" | "publicKey">;

/** The signers of the boot listener. */
export interface BootSigners {
  /** Undefined: there are no signatures except `grubSigner`'s. */
  readonly signer?: BootSigner | undefined;
  /** Signs GRUB's configs instead of `signer`, and nothing else. */
  readonly grubSigner?: BootSigner | undefined;
}

/** The signer of a path, such as `/grub`; undefined for none. */
export function signerAt({ signer, grubSigner }: BootSigners, path: string): BootSigner | undefined {
  return path === "/grub" ? (grubSigner ?? signer) : signer;
}

/** A path and its answer. */
export interface BootEndpoint {
  readonly url: string;
  /** @param rawQuery replaces that of the request. @throws what `errors.ts` knows. */
  readonly render: (request: FastifyRequest, rawQuery: string) => Soon<Rendered>;
}

/** The endings of signature paths. */
export const signatureForms = ["sig", "asc"] as const;
export type SignatureForm = (typeof signatureForms)[number];

const contentTypes = {
  sig: "application/octet-stream",
  asc: "text/plain; charset=utf-8",
} as const satisfies Record<SignatureForm, string>;

export interface SignatureRoutesOptions extends BootSigners {
  /** Returns the client of a request, for limits by client. */
  readonly clients: Clients;
}

/** Registers the signatures of these endpoints, and the public keys. */
export function addSignatureRoutes(
  app: FastifyInstance,
  endpoints: readonly BootEndpoint[],
  { clients, ...signers }: SignatureRoutesOptions,
): void {
  const method = ["GET", "HEAD"];
  for (const { url, render } of endpoints) {
    const signer = signerAt(signers, url);
    if (signer === undefined) continue;
    for (const form of signatureForms) {
      app.route({
        method,
        url: `${url}.${form}`,
        handler: (request, reply) => {
          request.asksForSignature = true;
          const client = () => clients.ofRequest(request.raw);
          return sendSignature(reply, render(request, rawQueryOf(request)), { signer, form, client });
        },
      });
    }
  }
  addKeyRoute(app, "/signing-key.asc", signers.signer);
  addKeyRoute(app, "/grub-signing-key.asc", signers.grubSigner);
}

function addKeyRoute(app: FastifyInstance, url: string, signer: BootSigner | undefined): void {
  if (signer === undefined) return;
  const handler = (_request: FastifyRequest, reply: FastifyReply) =>
    send(reply, { contentType: contentTypes.asc, body: signer.publicKey });
  app.route({ method: ["GET", "HEAD"], url, handler });
}

const grubEnding = ".sig";

/**
 * The query whose answer GRUB wants the signature of; undefined for any other request. With enforced signatures GRUB
 * appends `.sig` to the whole name of each file, and counts the query as part of the name.
 */
export function queryGrubWantsSigned({ headers }: FastifyRequest, rawQuery: string): string | undefined {
  if (!rawQuery.endsWith(grubEnding) || !isGrub(headers["user-agent"])) return undefined;
  return rawQuery.slice(0, -grubEnding.length);
}

/** The bytes of an answer, and their type. */
interface SignatureAnswer {
  readonly contentType: string;
  readonly body: string | Buffer;
}

/** Which signature of a text a client asks for. */
export interface SignatureQuestion {
  readonly signer: BootSigner;
  readonly form: SignatureForm;
  readonly client: () => Holder;
}

/**
 * The signature of a rendered text: at once when it is known, since a promise costs more.
 * @throws {SigningError} withheld.
 */
export function answerSignature(
  rendered: Rendered,
  { signer, form, client }: SignatureQuestion,
): Soon<SignatureAnswer> {
  const answerOf = ({ binary, armored }: Awaited<ReturnType<BootSigner["sign"]>>) => ({
    contentType: contentTypes[form],
    body: form === "sig" ? Buffer.from(binary) : armored,
  });
  if (rendered.isUnsigned === true) return signer.withhold();
  return after(signer.sign(rendered.body, { isShared: rendered.isShared === true, client }), answerOf);
}

export function sendSignature(
  reply: FastifyReply,
  rendered: Soon<Rendered>,
  question: SignatureQuestion,
): Soon<FastifyReply> {
  const answer = after(rendered, (known) => answerSignature(known, question));
  return after(answer, (known) => send(reply, known));
}

function send(reply: FastifyReply, { contentType, body }: SignatureAnswer): FastifyReply {
  return reply.headers({ "content-type": contentType, "cache-control": "no-store" }).send(body);
}
