/** A stand-in for the thread of a key: it signs by showing what it is to sign, and dies of whatever begins with `x`. */

import { parentPort, workerData } from "node:worker_threads";
import type { KeyReport, SignAnswer, SignOrder } from "../../../src/trust/sign/sign-worker.ts";

const expiresAtMs: number | undefined = Number(Buffer.from(workerData.bytes).toString()) || undefined;
const info = { fingerprint: "AB", userId: "stand-in", expiresAtMs, publicKey: "public" };
const report: KeyReport = { kind: "ready", info };
parentPort?.postMessage(report);
parentPort?.on("message", ({ id, bytes, nowMs }: SignOrder) => {
  const text = Buffer.from(bytes).toString();
  if (text.startsWith("x")) process.exit(1);
  const signature = { binary: bytes, armored: `${text} at ${nowMs}` };
  const answer: SignAnswer = { id, signature: text.startsWith("?") ? undefined : signature };
  parentPort?.postMessage(answer);
});
