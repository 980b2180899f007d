/**
 * HTTPS for machines: davit as a process, asked by HTTP and by HTTPS. A config that demands HTTPS never leaves davit by
 * HTTP, and a request by HTTP spends nothing.
 */

import { copyFile, mkdir, readFile, rename, rm, symlink, writeFile } from "node:fs/promises";
import { Agent, request } from "node:https";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { issueAuthority, issueServer } from "../../src/trust/certificates/issue.ts";
import { type DavitBootProcess, type DavitProcess, storeOf } from "../../tools/davit-process.ts";
import { type Authority, type Certificate, makeAuthority } from "../helpers/certificates.ts";
import { hourMs, InstallWorld, installObjects, ledgerId, queryOf, stateOf } from "../helpers/install-world.ts";
import { missing } from "../helpers/requirements.ts";

const limitMs = 180_000;
const soon = { timeout: 60_000, interval: 50 };
const needsTls = "403 only by HTTPS\n";
const tls = ["--boot-tls-address", "127.0.0.1:0"];

let world: InstallWorld;
let authority: Authority;
beforeEach(async () => {
  world = await InstallWorld.make();
  authority = makeAuthority(world.folder);
});
afterEach(() => world.stop());

/** @param profile and group: further lines of the specs. */
function objects({ profile = "", group = "" }: { readonly profile?: string; readonly group?: string } = {}): string {
  return `apiVersion: davit.dev/v1alpha1
kind: Profile
metadata: {name: web}
spec:
  boot: {kernel: /assets/vmlinuz, args: ["config={{davit.url}}/generic"]}
  generic: {inline: "from {{davit.url}} of {{os}}"}
  metadata: {os: debian}
${profile}---
apiVersion: davit.dev/v1alpha1
kind: Group
metadata: {name: web}
spec:
  selector: {matchLabels: {role: web}}
  profileRef: {name: web}
${group}`;
}

function filesOf({ certFile, keyFile }: Pick<Certificate, "certFile" | "keyFile">): readonly string[] {
  return ["--boot-tls-cert-file", certFile, "--boot-tls-key-file", keyFile];
}

async function serve(text: string, args: readonly string[]): Promise<DavitProcess> {
  await world.writeText(text);
  return await world.serve([...tls, ...args]);
}

function tlsAuthority({ log }: DavitBootProcess): string {
  return String(log.find(({ msg }) => msg === "serving")?.advertisedTls);
}

interface Trust {
  readonly ca: string;
  readonly client?: Certificate;
  /** Keeps the connection. */
  readonly agent?: Agent | false;
}

/** Makes a certificate that is valid from tomorrow. */
async function issueEarly() {
  const validity = { fromMs: Date.now() + 24 * hourMs, untilMs: Date.now() + 48 * hourMs };
  const by = await issueAuthority({ name: "early", kind: "rsa", validity });
  const { cert, key } = await issueServer({ authority: by, name: "early", hosts: ["127.0.0.1"], validity });
  const [certFile, keyFile] = [world.at("early.pem"), world.at("early.key")];
  await Promise.all([writeFile(certFile, cert), writeFile(keyFile, key, { mode: 0o600 })]);
  return { certFile, keyFile };
}

/** Files as Kubernetes mounts a Secret: each is a link by way of `..data`, which a rename swaps. */
class Volume {
  readonly paths: readonly string[];
  readonly #directory: string;
  readonly #names: readonly string[];
  #version = 0;

  constructor(directory: string, names: readonly string[]) {
    this.#directory = directory;
    this.#names = names;
    this.paths = names.map((name) => join(directory, name));
  }

  async put(texts: readonly string[]): Promise<void> {
    const version = `..${++this.#version}`;
    const at = (...names: readonly string[]) => join(this.#directory, ...names);
    await mkdir(at(version), { recursive: true });
    for (const [index, name] of this.#names.entries())
      await writeFile(at(version, name), texts[index] ?? "", { mode: 0o600 });
    await symlink(version, at("..next"));
    await rename(at("..next"), at("..data"));
    if (this.#version > 1) return await rm(at(`..${this.#version - 1}`), { recursive: true });
    for (const name of this.#names) await symlink(join("..data", name), at(name));
  }
}

/** Asks by HTTPS. @returns the body, or the code of the error of TLS. */
function secret(davit: DavitBootProcess, path: string, { ca, client, agent = false }: Trust): Promise<string> {
  const own = client === undefined ? {} : { cert: client.cert, key: client.key };
  return new Promise((resolve) => {
    request(`https://${tlsAuthority(davit)}${path}`, { ca, ...own, agent }, (answer) => {
      let body = "";
      answer.setEncoding("utf8").on("data", (chunk: string) => {
        body += chunk;
      });
      answer.on("end", () => resolve(body));
    })
      .on("error", (error) => resolve("code" in error ? String(error.code) : error.message))
      .end();
  });
}

async function plain({ bootUrl }: DavitBootProcess, path: string, method = "GET"): Promise<string> {
  const answer = await fetch(`${bootUrl}${path}`, { method });
  return (await answer.text()) || String(answer.status);
}

describe.skipIf(missing("openssl"))("HTTPS for machines", { timeout: limitMs }, () => {
  it("is served beside HTTP with a certificate of davit's own, and each has its own URL in configs", async () => {
    const davit = await serve(objects(), ["--boot-tls-own-certificate"]);
    const ca = await readFile(world.at("data", "boot-certificate", "ca.pem"), "utf8");
    const { host } = new URL(davit.bootUrl);
    const shown = async (path: string) => [await secret(davit, path, { ca }), await plain(davit, path)];
    for (const turn of [1, 2]) {
      const [byTls, byHttp] = await shown("/generic?role=web");
      expect([turn, byTls, byHttp]).toEqual([
        turn,
        `from https://${tlsAuthority(davit)} of debian`,
        `from http://${host} of debian`,
      ]);
      const [script, plainScript] = await shown("/ipxe?role=web");
      expect(script).toContain(`config=https://${tlsAuthority(davit)}/generic`);
      expect(plainScript).toContain(`config=http://${host}/generic`);
      for (const lines of await shown("/metadata?role=web")) expect(lines).toContain("OS=debian");
    }
    expect(await secret(davit, "/generic?role=web", { ca: authority.cert })).toMatch(/SIGN|VERIFY|ISSUER/);
    await davit.stop();
    const again = await world.serve([...tls, "--boot-tls-own-certificate"]);
    expect(await secret(again, "/boot.ipxe", { ca })).toContain("#!ipxe");
  });

  it.each([
    ["the Profile", { profile: "  requireTls: true\n" }],
    ["the Group", { group: "  requireTls: true\n" }],
  ])("is the only way to the configs if %s demands it, and scripts point there", async (_, demand) => {
    const davit = await serve(objects(demand), filesOf(authority.issue("boot")));
    const ca = authority.cert;
    for (const path of ["/generic?role=web", "/metadata?role=web"]) {
      expect(await plain(davit, path)).toBe(needsTls);
      expect(await plain(davit, path, "HEAD")).toBe("403");
    }
    expect(await secret(davit, "/generic?role=web", { ca })).toBe(`from https://${tlsAuthority(davit)} of debian`);
    expect(await secret(davit, "/metadata?role=web", { ca })).toContain("OS=debian");
    for (const path of ["/ipxe?role=web", "/grub?role=web"])
      expect(await plain(davit, path)).toContain(`config=https://${tlsAuthority(davit)}/generic`);
    expect(await (await fetch(`${davit.opsUrl}/preview?role=web`)).text()).toContain(`https://${tlsAuthority(davit)}`);
  });

  it.each([
    ["Profile", "profile"],
    ["Group", "group"],
  ] as const)("takes effect with its %s, and a newest version that is refused still demands it", async (_, part) => {
    const davit = await serve(objects(), filesOf(authority.issue("boot")));
    const old = `from http://${new URL(davit.bootUrl).host} of debian`;
    const seen = new Set<string>();
    const asked = async () => {
      const answer = await plain(davit, "/generic?role=web");
      seen.add(answer);
      return answer;
    };
    expect(await asked()).toBe(old);
    await world.writeText(objects({ [part]: "  requireTls: true\n  bot: {}\n" }));
    await expect.poll(asked, soon).toBe(needsTls);
    await world.writeText(objects({ [part]: "  requireTls: true\n" }));
    await expect
      .poll(async () => await (await fetch(`${davit.opsUrl}/readyz?verbose`)).text(), soon)
      .not.toContain("bot");
    expect(await asked()).toBe(needsTls);
    await world.writeText(objects());
    await expect.poll(asked, soon).toBe(old);
    expect(seen).toEqual(new Set([old, needsTls]));
  });

  it("is needed before a permit is spent: a request by HTTP, or without a listener for HTTPS, claims nothing", async () => {
    const granted = (ledger: string) =>
      installObjects({ generation: 1, ledger }).replace("  effect: Install", "  effect: Install\n  requireTls: true");
    const davit = await world.serve();
    await world.writeText(granted(await ledgerId(davit)));
    await expect.poll(() => plain(davit, `/ipxe?${queryOf(1)}`), soon).toBe("503 davit does not listen for HTTPS\n");
    expect(await plain(davit, `/generic?${queryOf(1)}`)).toBe("503 davit does not listen for HTTPS\n");
    expect(await stateOf(davit)).toBe("");
    await davit.stop();
    const secured = await world.serve([...tls, ...filesOf(authority.issue("boot"))]);
    expect(await plain(secured, `/generic?${queryOf(1)}`)).toMatch(/^(403|503)/);
    expect(await stateOf(secured)).toBe("");
    await expect.poll(() => plain(secured, `/ipxe?${queryOf(1)}`), soon).toContain("/assets/wipe");
    expect(await stateOf(secured)).toBe("Claimed");
    expect(await plain(secured, `/generic?${queryOf(1)}`)).toBe(needsTls);
    const config = await secret(secured, `/generic?${queryOf(1)}`, { ca: authority.cert });
    expect(config).toMatch(new RegExp(`^report to https://${tlsAuthority(secured)}/report/`));
  });

  it("asks for client certificates for configs alone, if their authority is given", async () => {
    const clients = makeAuthority(world.folder, "clients");
    const args = [...filesOf(authority.issue("boot")), "--boot-tls-client-ca-file", clients.certFile];
    const davit = await serve(objects(), args);
    const trust = { ca: authority.cert };
    const refusal = "403 configs need a client certificate of --boot-tls-client-ca-file\n";
    for (const path of ["/generic?role=web", "/metadata?role=web"]) {
      expect(await secret(davit, path, trust)).toBe(refusal);
      expect(await secret(davit, path, { ...trust, client: authority.issue("other") })).toBe(refusal);
      expect(await secret(davit, path, { ...trust, client: clients.issue("machine") })).toContain("debian");
    }
    expect(await secret(davit, "/ipxe?role=web", trust)).toContain("#!ipxe");
  });

  it("keeps a good certificate when one out of date, one for other hosts or the key of another takes its place", async () => {
    const [first, second] = [authority.issue("first"), authority.issue("second")];
    const served = authority.issue("served");
    const put = async (cert: string, key: string) => {
      await copyFile(key, `${served.keyFile}.new`);
      await rename(`${served.keyFile}.new`, served.keyFile);
      await copyFile(cert, `${served.certFile}.new`);
      await rename(`${served.certFile}.new`, served.certFile);
    };
    await put(first.certFile, first.keyFile);
    const davit = await serve(objects(), filesOf(served));
    const attention = async () => await (await fetch(`${davit.opsUrl}/readyz?verbose`)).text();
    const expired = authority.issue("expired", { isExpired: true });
    const stranger = authority.issue("stranger", { hosts: "DNS:other.example" });
    const early = await issueEarly();
    for (const [cert, key, problem] of [
      [expired.certFile, expired.keyFile, "the certificate has expired"],
      [early.certFile, early.keyFile, "the certificate is not valid before 2"],
      [stranger.certFile, stranger.keyFile, "the certificate is for DNS:other.example"],
      [second.certFile, first.keyFile, "the key is not that of the certificate"],
    ] as const) {
      await put(cert, key);
      await expect.poll(attention, soon).toContain(problem);
      expect(await secret(davit, "/boot.ipxe", { ca: authority.cert })).toContain("#!ipxe");
    }
    await put(second.certFile, second.keyFile);
    await expect.poll(attention, soon).not.toContain("HTTPS keeps");
    expect(await secret(davit, "/boot.ipxe", { ca: authority.cert })).toContain("#!ipxe");
  });

  it("follows certificates that Kubernetes swaps, and ends what an authority of before let in", async () => {
    const [old, next] = [makeAuthority(world.folder, "old"), makeAuthority(world.folder, "next")];
    const volume = new Volume(world.at("volume"), ["tls.crt", "tls.key", "ca.crt"]);
    const first = authority.issue("first");
    await volume.put([first.cert, first.key, old.cert]);
    const [certFile = "", keyFile = "", caFile = ""] = volume.paths;
    const davit = await serve(objects(), [...filesOf({ certFile, keyFile }), "--boot-tls-client-ca-file", caFile]);
    const trust = { ca: authority.cert };
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const kept = { ...trust, client: old.issue("machine"), agent };
    expect(await secret(davit, "/generic?role=web", kept)).toContain("debian");
    const second = authority.issue("second");
    await volume.put([second.cert, second.key, next.cert]);
    const asNew = { ...trust, client: next.issue("machine") };
    await expect.poll(() => secret(davit, "/generic?role=web", asNew), soon).toContain("debian");
    expect(await secret(davit, "/generic?role=web", kept)).toMatch(/^(403|ECONNRESET)/);
    expect(await secret(davit, "/generic?role=web", { ...kept, agent: false })).toMatch(/^403/);
    agent.destroy();
  });

  it("is demanded by followers, too: one with a listener for it points there, one without has machines wait", async () => {
    const boot = authority.issue("boot");
    const davit = await serve(objects({ profile: "  requireTls: true\n" }), filesOf(boot));
    const secured = await world.boot(...storeOf(davit), ...tls, ...filesOf(boot));
    const bare = await world.boot(...storeOf(davit));
    const paths = ["/ipxe", "/grub", "/generic", "/metadata"].map((path) => `${path}?role=web`);
    for (const path of paths) expect(await plain(bare, path)).toContain("503 davit does not listen for HTTPS\n");
    for (const path of paths.slice(2)) expect(await plain(secured, path)).toBe(needsTls);
    expect(await plain(secured, "/ipxe?role=web")).toContain(`config=https://${tlsAuthority(secured)}/generic`);
    expect(await secret(secured, "/generic?role=web", { ca: authority.cert })).toContain(tlsAuthority(secured));
  });

  it("refuses to start with the key of another certificate or one for other hosts, and reports an expired one", async () => {
    const [good, other] = [authority.issue("good"), authority.issue("other")];
    const stranger = authority.issue("stranger", { hosts: "DNS:other.example" });
    await world.writeText(objects());
    const failure = (...args: readonly string[]) => world.serve([...tls, ...args]).then(String, String);
    expect(await failure(...filesOf({ ...good, keyFile: other.keyFile }))).toContain("the key is not that of the cert");
    expect(await failure(...filesOf(stranger))).toContain(
      'the certificate is for DNS:other.example, and machines ask for "127.0.0.1"',
    );
    expect(await failure(...filesOf(good), "--advertise-tls-address", "boot.example:443")).toContain(
      'machines ask for "boot.example"',
    );
    expect(await failure()).toContain("No certificate for --boot-tls-address");
    const davit = await serve(objects(), filesOf(authority.issue("expired", { isExpired: true })));
    expect(await plain(davit, "/boot.ipxe")).toContain("#!ipxe");
    expect(await (await fetch(`${davit.opsUrl}/readyz?verbose`)).text()).toContain("the certificate has expired");
  });
});
