/** Guards as the listeners of davit make them. */

import { mkdtemp, writeFile } from "node:fs/promises";
import type { IncomingMessage } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Guard } from "../../../src/http/guard/guard.ts";
import { opsRow } from "../../../src/http/guard/ops-guard.ts";
import { secretsGuard, storeNeed, storeRow } from "../../../src/http/guard/store-guard.ts";
import { systemClock } from "../../../src/lib/clock.ts";
import { createMetrics } from "../../../src/lib/metrics/metrics.ts";
import { silentLog } from "../../helpers/test-store.ts";

export interface GivenOps {
  readonly boundTo: string;
  readonly readerToken?: string;
  readonly adminToken?: string;
}

export async function opsUnderTest({ boundTo, readerToken, adminToken }: GivenOps) {
  const metrics = createMetrics("1");
  const row = opsRow({
    tokenFile: await tokenFile(readerToken),
    adminTokenFile: await tokenFile(adminToken),
    boundTo: () => boundTo,
    metrics,
  });
  const guard = await Guard.open(row, { clock: systemClock, log: silentLog });
  return {
    guard,
    counted: async () => (await metrics.opsUnauthorized.get()).values[0]?.value,
    stop: () => guard.stop(),
  };
}

export interface GivenStore {
  readonly isLoopback: boolean;
  readonly localToken: string;
  readonly token?: string;
  readonly accounts?: Readonly<Record<string, "read" | "write">>;
  readonly asksForCertificate?: boolean;
  readonly host?: string;
  readonly allowedHosts?: readonly string[];
}

export async function storeUnderTest(given: GivenStore) {
  const { isLoopback: onLoopback, localToken, token, accounts, asksForCertificate, host, allowedHosts = [] } = given;
  const metrics = createMetrics("1");
  const serviceAccounts = accounts && {
    // A token is known once it was checked.
    known: () => undefined,
    accessOf: async (asked: string) => accounts[asked],
  };
  const row = storeRow({
    tokenFile: await tokenFile(token),
    clientCaFile: asksForCertificate === true ? "ca.pem" : undefined,
    host,
    allowedHosts,
    serviceAccounts,
    clock: systemClock,
    log: silentLog,
    metrics,
  });
  const guard = await Guard.open(row, { clock: systemClock, log: silentLog });
  const secretsRefusal = secretsGuard({
    asksForCredentials: guard.asksForCredentials,
    isLoopback: onLoopback,
    localToken,
  });
  return {
    refusal: async (request: IncomingMessage) => await guard.refusalOf(request, storeNeed(request)),
    secretsRefusal,
    counted: async () => (await metrics.storeUnauthorized.get()).values[0]?.value,
    stop: () => guard.stop(),
  };
}

async function tokenFile(token: string | undefined): Promise<string | undefined> {
  if (token === undefined) return undefined;
  const path = join(await mkdtemp(join(tmpdir(), "davit-guard-")), "tokens");
  await writeFile(path, `${token}\n`, { mode: 0o600 });
  return path;
}
