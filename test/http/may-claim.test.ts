/** Which requests of a machine may spend a permit, and the address that counts for it. */

import { generateKeyPairSync } from "node:crypto";
import { BlockList } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import type { ConfigRequest } from "../../src/boot/boot-configs.ts";
import { type BootHandlerOptions, bootHandler } from "../../src/http/boot/routes.ts";
import { Clients } from "../../src/http/client-shares.ts";
import { answerError } from "../../src/http/errors.ts";
import { createServer, type HttpServer } from "../../src/http/server.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { silentLog } from "../helpers/test-store.ts";
import { ask } from "./wire.ts";

let server: HttpServer | undefined;
afterEach(() => server?.close());

async function start(options: Partial<BootHandlerOptions> = {}) {
  const asked: (ConfigRequest & { readonly from: string | undefined })[] = [];
  const render = (_name: string, request: ConfigRequest) => {
    // A closed socket no longer has its address.
    asked.push({ ...request, from: request.address?.() });
    return { rendered: { body: "text", contentType: "text/plain" }, group: "lab/g", profile: "lab/p" };
  };
  const handler = bootHandler({ configs: { render }, ...options });
  server = createServer({ log: silentLog, clock: systemClock, answerError, handler });
  const { port } = await server.listen({ host: "127.0.0.1", port: 0, option: "--boot-address" });
  return { port, asked };
}

const signer = {
  sign: () => ({ binary: new Uint8Array(1), armored: "armored" }),
  withhold: () => {
    throw new TypeError("Not withheld");
  },
  publicKey: generateKeyPairSync("ed25519").publicKey.export({ type: "spki", format: "pem" }).toString(),
};
const grub = ["User-Agent: GRUB 2.06"];

describe.each([{ signers: {} }, { signers: { signer } }, { signers: { grubSigner: signer } }])(
  "with the signers $signers",
  ({ signers }) => {
    it.each([
      ["GET", "/ipxe?mac=1", [], true],
      ["GET", "/grub?mac=1", grub, true],
      ["GET", "/ignition?mac=1", [], true],
      ["GET", "/generic/ks.cfg?mac=1", [], true],
      ["HEAD", "/ipxe?mac=1", [], false],
      ["HEAD", "/grub?mac=1", grub, false],
      ["HEAD", "/ignition?mac=1", [], false],
      ["GET", "/grub?mac=1.sig", grub, false],
      ["GET", "/ipxe.sig?mac=1", [], false],
      ["GET", "/ipxe.asc?mac=1", [], false],
      ["GET", "/grub.sig?mac=1", grub, false],
      ["GET", "/ignition.sig?mac=1", [], false],
      ["GET", "/generic/ks.cfg.sig?mac=1", [], false],
      ["POST", "/ipxe?mac=1", [], false],
      ["PUT", "/grub?mac=1", grub, false],
    ] as const)("%s %s may claim: %#", async (method, target, headers, isAllowed) => {
      const { port, asked } = await start(signers);
      await ask(port, target, { method, headers });
      expect(asked.some(({ mayClaim }) => mayClaim === true)).toBe(isAllowed);
    });
  },
);

describe("the address", () => {
  const address = async (clients: Clients, header: string) => {
    const { port, asked } = await start({ clients });
    await ask(port, "/ipxe?mac=1", { headers: [header] });
    return asked[0]?.from;
  };
  const trusting = () => {
    const trustedProxies = new BlockList();
    trustedProxies.addAddress("127.0.0.1");
    return new Clients({ trustedProxies });
  };

  it("is that of the connection, whatever the request says", async () => {
    expect(await address(new Clients(), "X-Forwarded-For: 192.0.2.7")).toBe("127.0.0.1");
  });

  it.each([
    ["192.0.2.7", "192.0.2.7"],
    ["198.51.100.1, 192.0.2.7, 127.0.0.1", "192.0.2.7"],
    ["2001:db8::1:2", "2001:db8::1:2"],
    ["no address", undefined],
  ])("is what a trusted proxy names last: %s", async (named, expected) => {
    expect(await address(trusting(), `X-Forwarded-For: ${named}`)).toBe(expected);
  });

  it("is whole for a client without limits", async () => {
    const exempt = new BlockList();
    exempt.addAddress("127.0.0.1");
    expect(await address(new Clients({ exempt }), "X: y")).toBe("127.0.0.1");
  });
});
