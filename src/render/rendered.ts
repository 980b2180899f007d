/** What a renderer makes: the exact bytes of an answer, as text, and their type. Equal input yields equal bytes. */
export interface Rendered {
  readonly body: string;
  readonly contentType: string;
  /** Of the body as UTF-8, where it is known: counting costs as much as finding the machine's Group. */
  readonly byteLength?: number | undefined;
  /** Some of it is the request's, and could be more than data to GRUB: a signature would let it be run. */
  readonly isUnsigned?: true;
  /** It has nothing of the request: every request gets the same. Absent: unknown. */
  readonly isShared?: true;
}

/** The same with its length, for what is sent again and again. */
export function counted({ body, contentType }: Rendered): Rendered {
  return { body, contentType, byteLength: Buffer.byteLength(body) };
}

export const plainText = "text/plain; charset=utf-8";
export const jsonText = "application/json";
