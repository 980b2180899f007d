/** A davit whose machines reach it by a line that can be watched and interrupted. */

import type { Loader } from "../../tools/firmware/machine.ts";
import { BootLine } from "./boot-line.ts";
import { type BootServer, startBootServer } from "./machine-boot.ts";

export interface LinedServer extends BootServer {
  readonly line: BootLine;
  /** iPXE, which gets the URL of davit's boot script. */
  readonly loader: Loader;
}

/** As `startBootServer`; the line's address is what davit advertises. */
export async function startLinedServer(source: readonly string[]): Promise<LinedServer> {
  const line = await BootLine.start();
  const { authoritySeenByMachine } = line;
  try {
    const server = await startBootServer([...source, "--advertise-address", authoritySeenByMachine]);
    line.leadTo(server.authority);
    return {
      ...server,
      line,
      authoritySeenByMachine,
      loader: { kind: "ipxe", url: `http://${authoritySeenByMachine}/boot.ipxe` },
      stop: async () => {
        await line.close();
        await server.stop();
      },
    };
  } catch (error) {
    await line.close();
    throw error;
  }
}
