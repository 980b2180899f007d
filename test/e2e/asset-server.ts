/** What `assets.download` of the chart fetches: a kernel, its initrd, and a small file for boots that are not real. */

import { createHash } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";

export interface Download {
  readonly url: string;
  readonly sha256: string;
  readonly path: string;
}

export interface AssetServer {
  /** As the chart's value has it. */
  readonly download: readonly Download[];
  /** How often a file was fetched. */
  readonly fetches: number;
  stop(): Promise<void>;
}

export const smallAsset = "e2e/small";
const smallBytes = 64 * 1024;

/**
 * @param address of this computer, as pods reach it.
 * @param directory where boot-assets.sh has put kernel and initrd.
 */
export async function startAssetServer(address: string, directory: string): Promise<AssetServer> {
  const files = new Map<string, Buffer>([[`/${smallAsset}`, Buffer.alloc(smallBytes, "davit ")]]);
  for (const name of ["vmlinuz", "initrd.gz"]) files.set(`/quickstart/${name}`, readFileSync(join(directory, name)));
  let fetches = 0;
  const server = createServer((request, response) => {
    const file = files.get(request.url ?? "");
    if (file === undefined) return void response.writeHead(404).end();
    fetches += 1;
    return void response.writeHead(200, { "content-length": file.length }).end(file);
  });
  server.listen(0, address);
  await once(server, "listening");
  const place = server.address();
  if (place === null || typeof place === "string") throw new Error("A server on a port has no port");
  return {
    download: [...files].map(([path, bytes]) => ({
      url: `http://${address}:${place.port}${path}`,
      sha256: createHash("sha256").update(bytes).digest("hex"),
      path: path.slice(1),
    })),
    get fetches() {
      return fetches;
    },
    stop: async () => {
      server.close();
      server.closeAllConnections();
    },
  };
}
