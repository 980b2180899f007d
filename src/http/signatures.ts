/**
 * Signatures of what machines ask for: the same path with `.sig` or `.asc`, in answer to the same query. Errors are those
 * of the path without the ending, unsigned. Without a signing key there are no such paths.
 */

import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { after, type Soon } from "../lib/soon.ts";
import type { Rendered } from "../render/rendered.ts";
import type { Signer } from "../sign/signer.ts";
import { rawQueryOf } from "./server.ts";

/** What signs, as routes need it. */
export type BootSigner = Pick<Signer, "sign" | "withhold" | "publicKey">;

/** A path and what it answers. */
export interface Endpoint {
  readonly url: string;
  /** @param rawQuery stands in for that of the request. @throws what `errors.ts` knows. */
  readonly render: (request: FastifyRequest, rawQuery: string) => Soon<Rendered>;
}

/** As endings of paths name them. */
export const signatureForms = ["sig", "asc"] as const;
export type SignatureForm = (typeof signatureForms)[number];

const contentTypes = {
  sig: "application/octet-stream",
  asc: "text/plain; charset=utf-8",
} as const satisfies Record<SignatureForm, string>;

/** Registers the signatures of these endpoints, and the key to verify them by. */
export function addSignatureRoutes(app: FastifyInstance, endpoints: readonly Endpoint[], signer: BootSigner): void {
  const method = ["GET", "HEAD"];
  for (const { url, render } of endpoints) {
    for (const form of signatureForms) {
      app.route({
        method,
        url: `${url}.${form}`,
        handler: (request, reply) => {
          request.asksForSignature = true;
          return sendSignature(reply, signer, render(request, rawQueryOf(request)), form);
        },
      });
    }
  }
  app.route({
    method,
    url: "/signing-key.asc",
    handler: (_request, reply) => send(reply, { contentType: contentTypes.asc, body: signer.publicKey }),
  });
}

const grubEnding = ".sig";

/**
 * The query whose answer GRUB wants the signature of, or undefined when it wants something else. Where signatures are
 * enforced GRUB appends `.sig` to the whole name of each file, and a query is part of the name to it.
 */
export function queryGrubWantsSigned({ headers }: FastifyRequest, rawQuery: string): string | undefined {
  if (!rawQuery.endsWith(grubEnding) || headers["user-agent"]?.startsWith("GRUB ") !== true) return undefined;
  return rawQuery.slice(0, -grubEnding.length);
}

/** The bytes of an answer, and their type. */
interface SignatureAnswer {
  readonly contentType: string;
  readonly body: string | Buffer;
}

/**
 * The signature of a rendered text as it is answered: at once when it is known, since a promise costs more than that.
 * @throws {SigningError} withheld.
 */
export function answerSignature(signer: BootSigner, rendered: Rendered, form: SignatureForm): Soon<SignatureAnswer> {
  const answerOf = ({ binary, armored }: Awaited<ReturnType<BootSigner["sign"]>>) => ({
    contentType: contentTypes[form],
    body: form === "sig" ? Buffer.from(binary) : armored,
  });
  if (rendered.isUnsigned === true) return signer.withhold();
  return after(signer.sign(rendered.body), answerOf);
}

export function sendSignature(
  reply: FastifyReply,
  signer: BootSigner,
  rendered: Soon<Rendered>,
  form: SignatureForm,
): Soon<FastifyReply> {
  const answer = after(rendered, (known) => answerSignature(signer, known, form));
  return after(answer, (known) => send(reply, known));
}

function send(reply: FastifyReply, { contentType, body }: SignatureAnswer): FastifyReply {
  return reply.headers({ "content-type": contentType, "cache-control": "no-store" }).send(body);
}
