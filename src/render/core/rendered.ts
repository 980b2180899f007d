/** A renderer's result: the exact bytes of an answer, as text, and their type. Equal input yields equal bytes. */
export interface Rendered {
  readonly body: string;
  readonly contentType: string;
  /** The body's length in UTF-8, if known: counting takes as long as finding the machine's Group. */
  readonly byteLength?: number | undefined;
  /** True if it has text from the request that GRUB might run: a signature would allow that. */
  readonly isUnsigned?: true;
  /** True if nothing comes from the request, so that every request gets the same bytes. Absent: unknown. */
  readonly isShared?: true;
}

/** Adds the length to an answer that is sent repeatedly. */
export function counted({ body, contentType }: Rendered): Rendered {
  return { body, contentType, byteLength: Buffer.byteLength(body) };
}

export const plainText = "text/plain; charset=utf-8";
export const jsonText = "application/json";
