/** What a renderer makes: the exact bytes of an answer, as text, and their type. Equal input yields equal bytes. */
export interface Rendered {
  readonly body: string;
  readonly contentType: string;
}

export const plainText = "text/plain; charset=utf-8";
export const jsonText = "application/json";
