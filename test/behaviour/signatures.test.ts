/** Every signature that davit gives, as Debian's gpg finds it, by every kind of key. */

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { configNames } from "../../src/boot/boot-configs.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { createMetrics } from "../../src/lib/metrics/metrics.ts";
import { Signer } from "../../src/trust/sign/signer.ts";
import { groupDocument, profileDocument } from "../boot/feed-documents.ts";
import { Gpg } from "../helpers/gpg.ts";
import { missing } from "../helpers/requirements.ts";
import { silentLog } from "../helpers/test-store.ts";
import { headerOf, statusOf } from "../http/wire.ts";
import { type BootServer, kernelBoot, startBootServer, template } from "./boot-server.ts";

const passphrase = "correct horse";
const makeLimitMs = 120_000;
const endings = ["sig", "asc"] as const;
const query = "uuid=A1B2C3D4-0000-4000-8000-00000000ABCD&mac=52-54-00-a1-9c-ae&note=a%20%22b%22+c";

const documents = [
  profileDocument("lab/web", {
    displayName: "Debian",
    boot: kernelBoot({ initrd: ["/assets/a.img", "/assets/b.img"], args: ["console=ttyS0", `mac=\${mac:hexhyp}`] }),
    templates: {
      ignition: template('{"ignition":{"version":"3.4.0"},"note":{{json request.query.mac}} }'),
      cloudConfig: template("#cloud-config\nhostname: {{name}}\n"),
      generic: template("grüße {{name}}\r\nno newline at the end"),
    },
  }),
  groupDocument("lab/node", { selector: { mac: "52:54:00:a1:9c:ae" }, metadata: { name: "näme" } }),
];

interface KeyRow {
  readonly name: string;
  readonly make: (gpg: Gpg) => Buffer;
}

const rows: readonly KeyRow[] = [
  { name: "RSA-3072", make: (gpg) => gpg.exportSecret(gpg.makeKey("rsa", { algorithm: "rsa3072" })) },
  {
    name: "ECDSA P-256",
    make: (gpg) => gpg.exportSecret(gpg.makeKey("p256", { algorithm: "nistp256" }), { armor: true }),
  },
  { name: "Ed25519", make: (gpg) => gpg.exportSecret(gpg.makeKey("ed25519", { algorithm: "ed25519" })) },
  {
    name: "a subkey of which the primary key is elsewhere",
    make: (gpg) => {
      const fingerprint = gpg.makeKey("with a subkey", { algorithm: "rsa2048", usage: "cert" });
      gpg.addSubkey(fingerprint, { algorithm: "rsa2048" });
      return gpg.exportSecret(fingerprint, { subkeysOnly: true });
    },
  },
  {
    name: "a key with a passphrase",
    make: (gpg) => gpg.exportSecret(gpg.makeKey("locked", { algorithm: "rsa2048", passphrase }), { passphrase }),
  },
];

describe.skipIf(missing("gpg")).each(rows)("by $name", ({ make }) => {
  const folder = mkdtempSync(join(tmpdir(), "davit-signatures-"));
  /** Knows nothing but the key that davit shows. */
  let verifier: Gpg;
  let signer: Signer;
  let server: BootServer;

  beforeAll(async () => {
    const keyFile = join(folder, "key");
    const owner = new Gpg();
    writeFileSync(keyFile, make(owner), { mode: 0o600 });
    owner.stop();
    const metrics = createMetrics("test");
    const how = { passphraseFile: undefined, passphrase, clock: systemClock, log: silentLog, metrics };
    signer = await Signer.open({ keyFile, ...how });
    server = await startBootServer(documents, undefined, signer);
    verifier = new Gpg();
    verifier.import((await server.read("/signing-key.asc")).body);
  }, makeLimitMs);

  afterAll(async () => {
    await server?.close();
    await signer?.stop();
    verifier?.stop();
    rmSync(folder, { recursive: true });
  });

  it.each(configNames.flatMap((name) => endings.map((ending) => ({ name, ending }))))(
    "gpg verifies `/$name.$ending`, and refuses it for anything else",
    async ({ name, ending }) => {
      const content = await server.get(`/${name}?${query}`);
      const signature = await server.get(`/${name}.${ending}?${query}`);
      expect([statusOf(content), statusOf(signature)]).toEqual([200, 200]);
      expect(verifier.verify(signature.body, content.body)).toMatchObject({ isGood: true });
      const other = Buffer.concat([content.body, Buffer.from("\n")]);
      expect(verifier.verify(signature.body, other)).toMatchObject({ isGood: false });
    },
  );

  it.each([
    "boot.ipxe",
    "boot.ipxe.0",
    "chain.ipxe",
    "chain.ipxe?zone=a",
    "chain.ipxe?zone=%7D%3B%20reboot%20%23%22%27%24%28x%29",
  ])("gpg verifies the signatures of `/%s`", async (name) => {
    const { body } = await server.get(`/${name}`);
    for (const ending of endings) {
      const signature = await server.get(`/${name.replace(/(?=\?)|$/, `.${ending}`)}`);
      expect(verifier.verify(signature.body, body)).toMatchObject({ isGood: true });
    }
  });

  it.each(["zone=a%0Areboot", "zone%0Dreboot=a", "serial=7"])(
    "there is no signature of a refused query of `/chain.ipxe`: %s",
    async (harmful) => {
      for (const ending of ["", ".sig", ".asc"]) {
        const answer = await server.read(`/chain.ipxe${ending}?${harmful}`);
        expect([answer.status, answer.body]).toEqual([400, "400 bad request\n"]);
      }
    },
  );

  it("gpg verifies what GRUB gets for a name with `.sig` at its end", async () => {
    const grub = { headers: ["User-Agent: GRUB 2.06-13+deb12u2"] };
    const content = await server.get(`/grub?${query}`, grub);
    const signature = await server.get(`/grub?${query}.sig`, grub);
    expect(headerOf(signature, "Content-Length")).toBe(String(signature.body.length));
    expect(verifier.verify(signature.body, content.body)).toMatchObject({ isGood: true });
  });

  it("the armor has its first and last line, and a checksum", async () => {
    const { body } = await server.read(`/ipxe.asc?${query}`);
    expect(body).toMatch(/^-----BEGIN PGP SIGNATURE-----\n/);
    expect(body).toMatch(/\n=[A-Za-z0-9+/]{4}\n-----END PGP SIGNATURE-----\n$/);
  });
});
