/** Reads the data of a Secret as text. */

import type { JsonObject } from "../../model/json.ts";
import type { SchemaFinding } from "./check.ts";
import { textEntries } from "./json-parts.ts";

export type SecretData =
  | { readonly kind: "good"; readonly data: Readonly<Record<string, string>> }
  | { readonly kind: "bad"; readonly findings: readonly SchemaFinding[] };

// The pattern allows no line breaks. The Kubernetes API allows them in base64, so davit removes them before this check.
const base64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/**
 * Decodes `data` and merges `stringData` over it, as the API server does. It leaves out entries that are not UTF-8,
 * such as binary keys: they cannot be templates.
 */
export function readSecretData(secret: JsonObject): SecretData {
  const encoded = Object.entries(textEntries(secret.data)).map(([key, text]): [string, string] => [
    key,
    text.replaceAll(/[\r\n]/g, ""),
  ]);
  const bad = encoded.filter(([, text]) => !base64.test(text));
  if (bad.length > 0) {
    const text = "is not base64: encode it, or move it to stringData";
    return { kind: "bad", findings: bad.map(([key]) => ({ path: ["data", key], code: "not-base64", text })) };
  }
  const decoded = encoded.flatMap(([key, text]): [string, string][] => {
    const plain = decodeUtf8(Buffer.from(text, "base64"));
    return plain === undefined ? [] : [[key, plain]];
  });
  return { kind: "good", data: { ...Object.fromEntries(decoded), ...textEntries(secret.stringData) } };
}

/** Bytes as text; undefined when they are not UTF-8. A byte order mark is dropped. */
export function decodeUtf8(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    // The decoder fails only for bytes that are not UTF-8.
    return undefined;
  }
}
