/** `/loaders/NAME`: the loaders that UEFI HTTP Boot gets from DHCP. They are small, so each thread keeps them. */

import { readFile } from "node:fs/promises";
import { StartError } from "../../lib/start-error.ts";
import type { BootRoute } from "./routes.ts";

// Some UEFI firmware takes a loader only with this type (UEFI 2.10, section 24.7.1).
const headers = ["Content-Type", "application/efi", "Cache-Control", "no-cache"];

/**
 * Reads the loaders, and makes their routes.
 * @param files the path of each loader, by its URL.
 * @throws {StartError} if a file cannot be read.
 */
export async function loaderRoutes(files: ReadonlyMap<string, string>): Promise<readonly BootRoute[]> {
  const routes = [...files].map(async ([url, path]): Promise<BootRoute> => {
    const body = await readFile(path).catch((cause: unknown) => {
      throw new StartError(`Cannot read the loader "${path}": check its mode`, { cause });
    });
    return { url, answer: () => ({ status: 200, headers, body, byteLength: body.length }) };
  });
  return await Promise.all(routes);
}
