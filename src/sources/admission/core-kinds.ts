/**
 * The schemas of metadata, ConfigMaps and Secrets, which no CRD of davit describes, and the text of Secrets. They
 * follow the Kubernetes API, and use the schema language of the CRDs.
 */

import { type JsonObject, textEntries } from "../../model/json.ts";
import type { SchemaFinding } from "./check.ts";

const controlFree = "^[^\\x00-\\x1f\\x7f]+$";
const subdomain = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";
const dnsLabel = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$";

const text = { type: "string" };
const texts = { type: "object", additionalProperties: text };
// For fields that `kubectl get -o yaml` prints and davit does not use.
const anything = { type: "object", "x-kubernetes-preserve-unknown-fields": true };
const anyList = { type: "array", items: anything };

const metadata = {
  type: "object",
  required: ["name"],
  properties: {
    name: { type: "string", minLength: 1, maxLength: 253, pattern: subdomain },
    namespace: { type: "string", minLength: 1, maxLength: 63, pattern: dnsLabel },
    labels: texts,
    annotations: texts,
    uid: { type: "string", pattern: controlFree },
    resourceVersion: { type: "string", pattern: controlFree },
    generation: { type: "integer" },
    creationTimestamp: { type: "string", pattern: controlFree },
    selfLink: text,
    finalizers: { type: "array", items: text },
    managedFields: anyList,
    ownerReferences: anyList,
  },
};

const envelope = { apiVersion: text, kind: text, metadata };

const keyedTexts = {
  ...texts,
  "x-kubernetes-validations": [
    {
      rule: 'self.all(k, k.matches("^[-._a-zA-Z0-9]{1,253}$"))',
      message: "keys are 1 to 253 letters, digits, hyphens, underscores and dots",
    },
  ],
};

/** Returns the schema of a whole document. @param spec the schema of the kind's spec. */
export function documentSchema<Schema>(spec: Schema) {
  return {
    type: "object",
    required: ["metadata", "spec"],
    properties: { ...envelope, spec, status: anything },
  };
}

export const configMapSchema = {
  type: "object",
  required: ["metadata"],
  properties: { ...envelope, data: keyedTexts, binaryData: keyedTexts, immutable: { type: "boolean" } },
};

export const secretSchema = {
  type: "object",
  required: ["metadata"],
  properties: { ...envelope, type: text, data: keyedTexts, stringData: keyedTexts, immutable: { type: "boolean" } },
};

/** True for a DNS-1123 subdomain, the form of object names. */
export function isObjectName(name: string): boolean {
  return name.length <= 253 && new RegExp(subdomain).test(name);
}

/** True for a DNS-1123 label, the form of namespaces. */
export function isNamespace(namespace: string): boolean {
  return namespace.length <= 63 && new RegExp(dnsLabel).test(namespace);
}

type SecretData =
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
