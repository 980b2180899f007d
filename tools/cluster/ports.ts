/** Ports for servers that cannot choose one themselves, and have to keep it over a restart. */

import { randomInt } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:net";

// Linux takes the ports of outgoing connections from 32768 on: below, nobody gets one by accident while a server is down.
const [firstPort, endPort] = [20_000, 32_768];

// Two workers of the test runner must not choose the same port, nor one of them twice: it is free until its server starts.
const shares = 8;
const share = Number(process.env.VITEST_POOL_ID ?? 0) % shares;
const chosen = new Set<number>();

/** Different ports of 127.0.0.1 on which nobody listens. */
export async function freePorts(count: number): Promise<readonly number[]> {
  const ports: number[] = [];
  while (ports.length < count) {
    const port = firstPort + share + shares * randomInt(Math.floor((endPort - firstPort) / shares));
    if (chosen.has(port) || !(await isFree(port))) continue;
    chosen.add(port);
    ports.push(port);
  }
  return ports;
}

/** True when nobody listens on a port of 127.0.0.1. */
export async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  try {
    server.listen(port, "127.0.0.1");
    await once(server, "listening");
    return true;
  } catch {
    // In use.
    return false;
  } finally {
    server.close();
  }
}
