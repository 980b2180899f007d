/**
 * Signatures of configs. The signature of a config is at the same path with `.sig` or `.asc`, for the same query. If
 * the config is refused, the path of its signature answers the same error. Errors are not signed. Without a signing key
 * these paths do not exist.
 */

import { after, type Soon } from "../../lib/soon.ts";
import type { Rendered } from "../../render/core/rendered.ts";
import { isGrub } from "../../render/grub/grub.ts";
import { isDataToGrub } from "../../trust/sign/grub-reading.ts";
import type { Signer } from "../../trust/sign/signer.ts";
import type { Holder } from "../client-shares.ts";
import type { Answer, Exchange } from "../exchange.ts";

/** The part of a signer that routes need. */
export type BootSigner = Pick<Signer, "sign" | "withhold" | "publicKey">;

/** The signers of the boot listener. */
export interface BootSigners {
  /** Undefined: there are no signatures except `grubSigner`'s. */
  readonly signer?: BootSigner | undefined;
  /** Signs `/grub` instead of `signer`, and nothing else. */
  readonly grubSigner?: BootSigner | undefined;
}

/** The signer of a path, such as `/grub`; undefined for none. */
export function signerAt({ signer, grubSigner }: BootSigners, path: string): BootSigner | undefined {
  return path === "/grub" ? (grubSigner ?? signer) : signer;
}

/** The endings of signature paths. */
export const signatureForms = ["sig", "asc"] as const;
export type SignatureForm = (typeof signatureForms)[number];

const contentTypes = {
  sig: "application/octet-stream",
  asc: "text/plain; charset=utf-8",
} as const satisfies Record<SignatureForm, string>;

/** The paths of the existing public keys, with their answers. */
export function publicKeys({ signer, grubSigner }: BootSigners): readonly (readonly [url: string, key: Answer])[] {
  const keys = { "/signing-key.asc": signer, "/grub-signing-key.asc": grubSigner };
  return Object.entries(keys).flatMap(([url, key]) => (key ? [[url, answerIn("asc", key.publicKey)] as const] : []));
}

const grubEnding = ".sig";

/**
 * If GRUB asks for a signature, returns the query of the signed config; otherwise undefined. When GRUB enforces
 * signatures, it appends `.sig` to each file's name. For GRUB the query is part of the name, so the query ends in
 * `.sig`.
 */
export function queryGrubWantsSigned({ request: { headers }, rawQuery }: Exchange): string | undefined {
  if (!rawQuery.endsWith(grubEnding) || !isGrub(headers["user-agent"])) return undefined;
  return rawQuery.slice(0, -grubEnding.length);
}

/** Which signature of a text a client asks for. */
interface SignatureQuestion {
  readonly signer: BootSigner;
  readonly form: SignatureForm;
  readonly client: () => Holder;
  /** True if a GRUB can trust this signer for more than `/grub`, because `/grub` has no key of its own. */
  readonly isTrustedByGrub: boolean;
}

/**
 * Returns the signature of a rendered text. A known signature comes without a promise, which would cost more.
 * @throws {SigningError} withheld, for a text that must not be signed. Other SigningErrors reject the promise.
 */
export function signatureOf(rendered: Rendered, question: SignatureQuestion): Soon<Answer> {
  const { signer, form, client, isTrustedByGrub } = question;
  if (isTrustedByGrub && !isDataToGrub(rendered.body, rendered.ofRequest ?? [])) return signer.withhold();
  const signing = signer.sign(rendered.body, { isShared: rendered.isShared === true, client });
  return after(signing, ({ binary, armored }) => answerIn(form, form === "sig" ? Buffer.from(binary) : armored));
}

function answerIn(form: SignatureForm, body: string | Buffer): Answer {
  return { status: 200, headers: ["Content-Type", contentTypes[form], "Cache-Control", "no-store"], body };
}
