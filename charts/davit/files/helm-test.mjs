/**
 * What `helm test` runs in a pod of davit's own image: asks the boot Service for a script, for its signature where answers
 * are signed, and the store for its refusal. Says what it found, a line each; the exit code is 1 when something is wrong.
 *
 * BOOT_URL, SIGNED (true or false), and STORE_URL (with STORE_ASKS_CERTIFICATES) of a store that is exposed or
 * CLOSED_STORE_URL of one that is not.
 */

import { env, exit, stdout } from "node:process";

// Connections that a network drops without a word.
const limitMs = 10_000;

async function ask(url) {
  const answer = await fetch(url, { signal: AbortSignal.timeout(limitMs), redirect: "error" });
  return { status: answer.status, text: await answer.text() };
}

async function bootScript() {
  const { status, text } = await ask(`${env.BOOT_URL}/boot.ipxe`);
  return status === 200 && text.startsWith("#!ipxe\n") ? undefined : `answered ${status}`;
}

/** Any answer of davit's will do, be there a Group or not; 503 is said while it waits for the cluster. */
async function machineAnswer() {
  const { status } = await ask(`${env.BOOT_URL}/ipxe?mac=52:54:00:a1:9c:ae`);
  return status === 200 || status === 404 ? undefined : `answered ${status}`;
}

async function signature() {
  const { status, text } = await ask(`${env.BOOT_URL}/boot.ipxe.asc`);
  const isSigned = status === 200 && text.startsWith("-----BEGIN PGP SIGNATURE-----");
  return isSigned === (env.SIGNED === "true") ? undefined : `answered ${status}`;
}

async function storeRefusal() {
  try {
    const { status } = await ask(`${env.STORE_URL}/v2/keys/`);
    return status === 401 ? undefined : `answered ${status} to somebody without credentials`;
  } catch (error) {
    // Where certificates are asked for, the store ends the connection of somebody without one.
    const isRefused = /CERTIFICATE_REQUIRED|UND_ERR_SOCKET|ECONNRESET/.test(reasonOf(error));
    return env.STORE_ASKS_CERTIFICATES === "true" && isRefused ? undefined : reasonOf(error);
  }
}

async function closedStore() {
  try {
    const { status } = await ask(`${env.CLOSED_STORE_URL}/v2/keys/`);
    return `answered ${status}, and should not be reached`;
  } catch (error) {
    return error.cause?.code === "ECONNREFUSED" ? undefined : `ended with ${reasonOf(error)}`;
  }
}

function reasonOf(error) {
  return String(error.cause?.code ?? error.cause?.message ?? error.message);
}

const checks = [
  [`${env.BOOT_URL} answers with the first script`, bootScript],
  [`${env.BOOT_URL} answers a machine`, machineAnswer],
  [env.SIGNED === "true" ? "answers are signed" : "answers are not signed", signature],
  env.STORE_URL
    ? [`${env.STORE_URL} refuses who has no credentials`, storeRefusal]
    : [`${env.CLOSED_STORE_URL} is closed`, closedStore],
];

let failures = 0;
for (const [fact, check] of checks) {
  const wrong = await check().catch(reasonOf);
  stdout.write(wrong === undefined ? `ok      ${fact}\n` : `NOT OK  ${fact}: ${wrong}\n`);
  if (wrong !== undefined) failures += 1;
}
exit(failures === 0 ? 0 : 1);
