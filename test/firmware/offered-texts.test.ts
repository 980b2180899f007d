/**
 * What a man in the middle can have a GRUB run that enforces signatures: every text of davit's in the place of `/grub`,
 * with its signature, made by a query of his choice, and another machine's installer. One machine is offered all of it.
 */

import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, onTestFailed } from "vitest";
import { isDataToGrub } from "../../src/trust/sign/grub-reading.ts";
import { type DavitProcess, startDavit } from "../../tools/davit-process.ts";
import { hostSeenByMachine, quickstartMachine } from "../../tools/firmware/machine.ts";
import { Gpg } from "../helpers/gpg.ts";
import { grubAttacks, judged } from "../helpers/grub-attacks.ts";
import { missing } from "../helpers/requirements.ts";
import { bootTestLimitMs, startLimitMs } from "./machine-boot.ts";
import { powerOn, tail } from "./power-on.ts";
import { makeSignedGrubLoader, type SignedFirmware } from "./signed-grub.ts";

const otherMac = "52:54:00:00:00:0a";

const manifests = `
apiVersion: davit.dev/v1alpha1
kind: Profile
metadata: {name: web}
spec:
  boot: {kernel: /assets/k, args: ["name=\${hostname}"]}
  ignition: {inline: '{"ignition": {"version": "3.4.0"}, "note": {{json request.query.x}} }'}
  cloudConfig: {inline: "#cloud-config\\nhostname: {{request.query.x}}\\n"}
  generic: {inline: "{\\n{{json request.query}}\\n}\\n"}
  genericParts:
    - {name: line, inline: "{{request.query.x}}\\n"}
    - {name: raw, inline: "{{request.raw_query}}\\n"}
    - {name: json, inline: "{\\n  \\"a\\": [\\n    \\"{{request.query.mac}}\\"\\n  ]\\n}\\n"}
    - {name: yaml, inline: "a:\\n  - b: {{request.query.mac}}\\n    c: 'd e'\\n"}
---
apiVersion: davit.dev/v1alpha1
kind: Profile
metadata: {name: installer}
spec:
  effect: Install
  boot: {kernel: /assets/wipe}
---
apiVersion: davit.dev/v1alpha1
kind: Group
metadata: {name: web}
spec:
  profileRef: {name: web}
  selector: {matchLabels: {role: web}}
  metadata: {note: it's}
---
apiVersion: davit.dev/v1alpha1
kind: Group
metadata: {name: held}
spec: {profileRef: {name: web}, selector: {matchLabels: {role: held}}, hold: true}
---
apiVersion: davit.dev/v1alpha1
kind: Group
metadata: {name: other}
spec: {profileRef: {name: installer}, selector: {matchLabels: {mac: "${otherMac}"}}}
`;

/** A text and what is said to be its signature. */
interface Offer {
  readonly name: string;
  readonly text: Buffer;
  readonly signature: Buffer;
}

describe.skipIf(missing("qemu", "ipxe-rom", "gpg", "grub"))("a GRUB that enforces signatures", () => {
  const folder = mkdtempSync(join(tmpdir(), "davit-offers-"));
  const publicKeyFile = join(folder, "signing-key.gpg");
  let gpg: Gpg;
  let davit: DavitProcess;

  beforeAll(async () => {
    gpg = new Gpg();
    const fingerprint = gpg.makeKey("rack", { algorithm: "rsa2048" });
    const keyFile = join(folder, "signing.key");
    writeFileSync(keyFile, gpg.exportSecret(fingerprint), { mode: 0o600 });
    writeFileSync(publicKeyFile, gpg.exportPublic(fingerprint));
    mkdirSync(join(folder, "manifests"));
    writeFileSync(join(folder, "manifests/all.yaml"), manifests);
    const args = ["--signing-key", keyFile];
    davit = await startDavit({ manifests: join(folder, "manifests"), dataDir: join(folder, "data"), args });
  }, startLimitMs);

  afterAll(async () => {
    await davit?.stop();
    gpg?.stop();
    rmSync(folder, { recursive: true });
  });

  async function read(target: string): Promise<Buffer> {
    const response = await fetch(`${davit.bootUrl}${target}`, { headers: { "User-Agent": "GRUB 2.06" } });
    return Buffer.from(await response.arrayBuffer());
  }

  async function offerOf(name: string, query: string): Promise<Offer> {
    const [text, signature] = [await read(`/${name}?${query}`), await read(`/${name}.sig?${query}`)];
    return { name: `${name}?${query}`, text, signature };
  }

  /** @param evil what a machine asks for once an attack runs. */
  async function offers(evil: string): Promise<readonly Offer[]> {
    const attack = `set check_signatures=no;configfile ${evil};`;
    const attacks = [`1;${attack}`, `'\n${attack}\n`, `"\n;${attack}`, `$\n${attack}`, "check_signatures=no"];
    const queries = attacks.map(
      (value) => `role=web&x=${encodeURIComponent(value)}&hostname=${encodeURIComponent(value)}`,
    );
    const names = ["metadata", "cloud", "generic", "generic/line", "generic/raw", "ignition"];
    const all = [];
    for (const query of queries) for (const name of ["metadata", "generic/line"]) all.push(await offerOf(name, query));
    for (const name of names)
      all.push(await offerOf(name, `role=web&mac=52-54-00-00-00-01&x=${encodeURIComponent(`1;${attack}`)}`));
    const plain = "role=web&mac=52-54-00-00-00-01&x=y";
    for (const name of [...names, "generic/json", "generic/yaml", "ipxe", "boot.ipxe"])
      all.push(await offerOf(name, plain));
    for (const text of signedAttacks(25)) {
      const path = join(folder, "attack");
      writeFileSync(path, text);
      gpg.signFile(path);
      all.push({ name: text, text: readFileSync(path), signature: readFileSync(`${path}.sig`) });
    }
    // What is not signed, and one text with the signature of another.
    all.push(await offerOf("grub", "role=held"));
    const [{ text }, { signature }] = [await offerOf("ipxe", plain), await offerOf("metadata", plain)];
    all.push({ name: "ipxe by metadata", text, signature });
    // Would run if anything before had switched the check off.
    all.push({ name: "unsigned", text: Buffer.from(`configfile ${evil}\n`), signature });
    return all;
  }

  async function expectNothing(firmware: SignedFirmware): Promise<void> {
    const man = await ManInTheMiddle.start();
    const authority = `${hostSeenByMachine}:${man.port}`;
    const installer = await offerOf("grub", `mac=${otherMac}`);
    expect(installer.text.toString()).toContain("menuentry");
    man.offers = [...(await offers(`(http,${authority})/evil`)), installer];
    const directory = mkdtempSync(join(folder, "tftp-"));
    const loader = makeSignedGrubLoader({ directory, firmware, authority, publicKeyFile, pauseSeconds: 1 });
    // The last one ends it: the machine says that the installer is not its own, and reboots.
    const { screen } = await powerOn({ ...quickstartMachine, firmware, loader }, { timeoutMs: bootTestLimitMs });
    man.stop();
    onTestFailed(() => void process.stderr.write(`${tail(screen)}\n`));
    expect(man.evilAsked).toEqual([]);
    expect(screen).not.toContain("ATTACK");
    expect(judged(screen)).toEqual([]);
    expect(screen).not.toContain("Loading kernel");
    expect(man.offered).toBe(man.offers.length);
    const shown = screen.replaceAll(/\s+/g, " ");
    expect(shown).toContain(`this config installs the machine with mac ${otherMac} and not ${quickstartMachine.mac}`);
  }

  it.skipIf(missing("grub-bios", "all-firmware"))(
    "runs nothing of another text, nor another's installer, by BIOS",
    {
      timeout: bootTestLimitMs,
    },
    () => expectNothing("bios"),
  );

  it.skipIf(missing("grub-uefi", "ovmf", "all-firmware"))(
    "runs nothing of another text, nor another's installer, by UEFI",
    {
      timeout: bootTestLimitMs,
    },
    () => expectNothing("uefi"),
  );
});

/** Random texts that davit would sign, without those that show a menu or define what later texts use. */
function signedAttacks(count: number): readonly string[] {
  const all = [...grubAttacks(1, 2_000)].filter(({ text, ofRequest }) => isDataToGrub(text, ofRequest));
  const texts = all.map(({ text }) => text).filter((text) => !/menuentry|function|while|eval/i.test(text));
  return texts.slice(0, count);
}

/** Answers what GRUB asks for as `/grub`: each text twice, as it is run and then shown. */
class ManInTheMiddle {
  offers: readonly Offer[] = [];
  readonly evilAsked: string[] = [];
  readonly #server: Server;
  #texts = 0;

  private constructor() {
    this.#server = createServer(({ url = "" }, response) => {
      const body = this.#answer(url);
      response.sendDate = false;
      response.writeHead(200, ["Content-Type", "text/plain", "Content-Length", String(body.length)]);
      response.end(body);
    });
  }

  static async start(): Promise<ManInTheMiddle> {
    const man = new ManInTheMiddle();
    await new Promise<void>((resolve) => man.#server.listen(0, "127.0.0.1", resolve));
    return man;
  }

  get port(): number {
    const address = this.#server.address();
    return typeof address === "object" && address !== null ? address.port : 0;
  }

  /** How many were offered. */
  get offered(): number {
    return Math.ceil(this.#texts / 2);
  }

  stop(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  #answer(url: string): Buffer {
    if (url.startsWith("/evil")) {
      this.evilAsked.push(this.offers[this.offered - 1]?.name ?? "");
      return Buffer.from('echo "ATTACK"\nreboot\n');
    }
    const isSignature = url.endsWith(".sig");
    if (!isSignature) this.#texts += 1;
    const offer = this.offers[this.offered - 1];
    return (isSignature ? offer?.signature : offer?.text) ?? Buffer.from("#\n");
  }
}
