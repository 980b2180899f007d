/** Who may talk to a test cluster: the administrator's token, ServiceAccounts' tokens, and kubeconfig files for both. */

import { generateKeyPairSync, type KeyObject, randomBytes, sign } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../src/lib/clock.ts";
import { parseJsonObject } from "../../src/model/json.ts";

export interface Credentials {
  readonly adminToken: string;
  /** Flags with which an API server knows these credentials. */
  readonly flags: readonly string[];
  /**
   * A ServiceAccount's token once more, with another end: what TokenRequest gives lives ten minutes at least. One that
   * was used may live ten seconds longer than announced, for which the API server remembers it.
   */
  withLifetime(token: string, lifetimeSeconds: number): string;
}

const issuer = "https://kubernetes.default.svc";

/** Makes them anew, in files of a directory. */
export function makeCredentials(directory: string): Credentials {
  const file = (name: string, text: string | Buffer) => {
    writeFileSync(join(directory, name), text, { mode: 0o600 });
    return join(directory, name);
  };
  const adminToken = randomBytes(24).toString("hex");
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const tokensFile = file("tokens.csv", `${adminToken},admin,admin,"system:masters"\n`);
  const privateFile = file("service-accounts.key", privateKey.export({ type: "sec1", format: "pem" }));
  const publicFile = file("service-accounts.pub", publicKey.export({ type: "spki", format: "pem" }));
  return {
    adminToken,
    flags: [
      `--token-auth-file=${tokensFile}`,
      `--service-account-issuer=${issuer}`,
      `--api-audiences=${issuer}`,
      `--service-account-key-file=${publicFile}`,
      `--service-account-signing-key-file=${privateFile}`,
    ],
    withLifetime: (token, lifetimeSeconds) => signAgain(token, lifetimeSeconds, privateKey),
  };
}

// The API server takes a token for a minute after its end (DefaultLeeway of go-jose's package jwt).
const leewaySeconds = 60;

/** A JSON Web Token (RFC 7519) with other times and the same key. */
function signAgain(token: string, lifetimeSeconds: number, key: KeyObject): string {
  const [header = "", payload = ""] = token.split(".");
  const now = Math.floor(systemClock.nowMs() / 1_000);
  const claims = parseJsonObject(Buffer.from(payload, "base64url").toString());
  const changed = { ...claims, iat: now, nbf: now, exp: now + lifetimeSeconds - leewaySeconds };
  const signed = `${header}.${Buffer.from(JSON.stringify(changed)).toString("base64url")}`;
  const signature = sign("sha256", Buffer.from(signed), { key, dsaEncoding: "ieee-p1363" });
  return `${signed}.${signature.toString("base64url")}`;
}

export interface KubeconfigOptions {
  readonly server: string;
  /** PEM text. */
  readonly ca: string;
  readonly token: string;
  /** Where objects go that name no namespace. */
  readonly namespace: string;
}

/** The text of a kubeconfig file with one context. JSON is YAML, too. */
export function kubeconfigText({ server, ca, token, namespace }: KubeconfigOptions): string {
  const trust = server.startsWith("https:")
    ? { "certificate-authority-data": Buffer.from(ca).toString("base64") }
    : { "insecure-skip-tls-verify": true };
  const cluster = { server, ...trust };
  const config = {
    apiVersion: "v1",
    kind: "Config",
    "current-context": "davit-test",
    clusters: [{ name: "davit-test", cluster }],
    users: [{ name: "davit-test", user: { token } }],
    contexts: [{ name: "davit-test", context: { cluster: "davit-test", user: "davit-test", namespace } }],
  };
  return `${JSON.stringify(config, null, 2)}\n`;
}
