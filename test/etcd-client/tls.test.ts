/** The client of etcd v3 over TLS: authorities, names, client certificates, and what the messages say. */

import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { EtcdClient, type EtcdClientOptions } from "../../packages/etcd-client/src/etcd-client.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { type Authority, type Certificate, makeAuthority } from "../helpers/certificates.ts";
import { type EtcdMembers, startEtcdV3 } from "../helpers/etcd-v3.ts";
import { missing } from "../helpers/requirements.ts";
import { silentLog } from "../helpers/test-store.ts";

describe.skipIf(missing("etcd", "openssl"))("EtcdClient over TLS", () => {
  let folder: string;
  let authority: Authority;
  let stranger: Authority;
  let member: Certificate;
  let user: Certificate;
  let plain: EtcdMembers;
  let secure: EtcdMembers;
  let expired: EtcdMembers;
  const clients: EtcdClient[] = [];

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "davit-etcd-tls-"));
    authority = makeAuthority(folder);
    stranger = makeAuthority(folder, "stranger");
    member = authority.issue("member");
    user = authority.issue("davit");
    const old = authority.issue("old", { isExpired: true });
    const tls = ({ certFile, keyFile }: Certificate) => [`--cert-file=${certFile}`, `--key-file=${keyFile}`];
    const mutual = ["--client-cert-auth", `--trusted-ca-file=${authority.certFile}`];
    [plain, secure, expired] = await Promise.all([
      startEtcdV3(),
      startEtcdV3({ scheme: "https", args: [...tls(member), ...mutual] }),
      startEtcdV3({ scheme: "https", args: tls(old) }),
    ]);
  });

  afterAll(async () => {
    for (const client of clients) client.close();
    await Promise.all([plain, secure, expired].map((each) => each.stop()));
    rmSync(folder, { recursive: true });
  });

  function open(url: URL | undefined, tls: EtcdClientOptions["tls"] = {}): EtcdClient {
    if (url === undefined) throw new Error("no member");
    const options = { clock: systemClock, log: silentLog, random: () => 0, withinMs: 3_000 };
    const client = EtcdClient.open({ endpoints: [url], tls, ...options });
    clients.push(client);
    return client;
  }

  const trusting = (certificate: Pick<Certificate, "cert" | "key">) => ({
    ca: () => authority.cert,
    cert: () => certificate.cert,
    key: () => certificate.key,
  });

  it("reads and watches with a client certificate", async () => {
    const client = open(secure.urls[0], trusting(user));
    await client.txn({ success: [{ put: { key: "k", value: Buffer.from("v") } }] });
    expect((await client.range({ key: "k" })).keys).toHaveLength(1);
    const stop = new AbortController();
    const watch = client.watch({ key: "k", startRevision: 1 }, { signal: stop.signal });
    await watch.next();
    expect((await watch.next()).value).toMatchObject({ events: [{ key: { key: "k" } }] });
    await watch.return();
  });

  it("reads the files again for each connection", async () => {
    let current: Pick<Certificate, "cert" | "key"> = stranger.issue("nobody");
    const tls = { ca: () => authority.cert, cert: () => current.cert, key: () => current.key };
    const client = open(secure.urls[0], tls);
    await expect(client.range({ key: "k" })).rejects.toMatchObject({ reason: "denied", mayBeDone: false });
    current = user;
    await client.range({ key: "k" });
  });

  it("names a client certificate that the server refuses", async () => {
    const foreign = open(secure.urls[0], trusting(stranger.issue("foreign")));
    await expect(foreign.range({ key: "k" })).rejects.toThrow("it refuses davit's client certificate, or requires one");
    const without = open(secure.urls[0], { ca: () => authority.cert });
    await expect(without.range({ key: "k" })).rejects.toThrow("it refuses davit's client certificate, or requires one");
  });

  it("names a server certificate that davit refuses", async () => {
    const foreign = open(secure.urls[0], { ...trusting(user), ca: () => stranger.cert });
    await expect(foreign.range({ key: "k" })).rejects.toMatchObject({
      reason: "denied",
      mayBeDone: false,
      sentence: "its certificate is not signed by the authority in the CA file",
    });
    const old = open(expired.urls[0], { ca: () => authority.cert });
    await expect(old.range({ key: "k" })).rejects.toThrow("its certificate has expired");
    const url = new URL(secure.urls[0] ?? "");
    url.hostname = "127.0.0.2";
    // The member listens on another address, which Linux refuses at once.
    await expect(open(url, trusting(user)).range({ key: "k" })).rejects.toThrow("nothing listens there");
  });

  it("names TLS without a server for it, and a server without TLS", async () => {
    const port = (members: EtcdMembers) => members.urls[0]?.port ?? "";
    const toPlain = open(new URL(`https://127.0.0.1:${port(plain)}`), trusting(user));
    await expect(toPlain.range({ key: "k" })).rejects.toThrow("use http:// in the endpoint if it does not speak TLS");
    const toSecure = open(new URL(`http://127.0.0.1:${port(secure)}`));
    await expect(toSecure.range({ key: "k" })).rejects.toThrow("it speaks TLS: use https:// in the endpoint");
  });

  it("trusts nobody by an empty CA file, and says when a file is gone", async () => {
    const empty = open(secure.urls[0], { ...trusting(user), ca: () => "\n" });
    await expect(empty.range({ key: "k" })).rejects.toThrow("the CA file is empty");
    const gone = { ...trusting(user), cert: () => readFileSync(join(import.meta.dirname, "absent"), "utf8") };
    const sentence = "a file of davit's certificates cannot be read";
    await expect(open(secure.urls[0], gone).range({ key: "k" })).rejects.toThrow(sentence);
  });

  it("names a key that does not fit", async () => {
    const other = authority.issue("other");
    const client = open(secure.urls[0], trusting({ cert: user.cert, key: other.key }));
    await expect(client.range({ key: "k" })).rejects.toThrow(
      "davit's client certificate and key do not fit, or cannot be read",
    );
    const broken = open(secure.urls[0], { ca: () => "not a certificate" });
    await expect(broken.range({ key: "k" })).rejects.toMatchObject({ name: "EtcdError" });
  });
});
