/**
 * What the signature of a repeated body costs beside the body itself. One davit signs with RSA-4096, the slowest kind
 * of key. The clients ask it for `/ipxe` and `/ipxe.sig` in turns.
 */

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { generateKey } from "openpgp";
import { bootContender, startBoot, temporaryDirectory, threadOptions, withStops } from "./boot-contenders.ts";
import { compared, measureAll, type Pace } from "./boot-speed.ts";
import type { AddFigure } from "./run.ts";

const groups = 10;

export async function measureSignatures(pace: Pace & { readonly threads: number }, add: AddFigure): Promise<void> {
  await withStops(async (stops) => {
    const signingKey = join(await temporaryDirectory(stops), "signing.key");
    await writeFile(signingKey, await makeKey(), { mode: 0o600 });
    const options = ["--signing-key", signingKey, ...threadOptions(pace.threads)];
    const body = bootContender("ipxe", await startBoot(groups, { stops, options }));
    const signature = { ...body, targets: body.targets.map((target) => target.replace("?", ".sig?")) };
    const speedOf = await measureAll([body, signature], pace, stops);
    const figure = { what: "`/ipxe.sig`, repeated", peer: "`/ipxe`", ...compared(speedOf(signature), speedOf(body)) };
    add({ ...figure, goal: { of: "ratio", atLeast: 0.8 } });
  });
}

async function makeKey(): Promise<Uint8Array> {
  const userIDs = { name: "bench" };
  const { privateKey } = await generateKey({ type: "rsa", rsaBits: 4096, userIDs, format: "binary" });
  return privateKey;
}
