/** Ports for servers that cannot choose one themselves, and have to keep it over a restart. */

import { randomInt } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:net";

// Linux takes the ports of outgoing connections from 32768 on: below, nobody gets one by accident while a server is down.
const [firstPort, endPort] = [20_000, 32_768];

/** Different ports of 127.0.0.1 on which nobody listens. */
export async function freePorts(count: number): Promise<readonly number[]> {
  const ports = new Set<number>();
  while (ports.size < count) {
    const port = randomInt(firstPort, endPort);
    if (!ports.has(port) && (await isFree(port))) ports.add(port);
  }
  return [...ports];
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
