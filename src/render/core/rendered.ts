/**
 * A renderer's result: the exact bytes of an answer, as text, and their content type. Equal input yields equal bytes.
 */
export interface Rendered {
  readonly body: string;
  readonly contentType: string;
  /**
   * The body's length in UTF-8 bytes. Only answers that are sent repeatedly have it: counting takes as long as finding
   * the machine's Group.
   */
  readonly byteLength?: number | undefined;
  /**
   * The start and end of each part of the body that comes from the request, in order, in UTF-16 units. Absent if there
   * is none that GRUB could read as more than data.
   */
  readonly ofRequest?: readonly number[];
  /**
   * True if every request gets the same bytes, because nothing in the body comes from a request. Absent if that is
   * unknown.
   */
  readonly isShared?: true;
}

/** Returns a copy of an answer with its length. The copy has neither `ofRequest` nor `isShared`. */
export function counted({ body, contentType }: Rendered): Rendered {
  return { body, contentType, byteLength: Buffer.byteLength(body) };
}

export const plainText = "text/plain; charset=utf-8";
export const jsonText = "application/json";
