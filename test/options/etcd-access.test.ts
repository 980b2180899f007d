import { mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { etcdAccess } from "../../src/app/core/etcd-access.ts";

let folder = "";
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "davit-etcd-access-"));
});
afterEach(() => rm(folder, { recursive: true }));

async function fill(files: Readonly<Record<string, string>>): Promise<void> {
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
}

const withTls = () => etcdAccess({ storeEtcdTls: folder, storeEtcdAuth: undefined }).tls;
const withLogin = () => etcdAccess({ storeEtcdTls: undefined, storeEtcdAuth: folder }).credentials;

describe("--store-etcd-tls", () => {
  it.each([
    { files: { "ca.crt": "ca" }, read: ["ca", undefined, undefined] },
    { files: { "tls.crt": "cert", "tls.key": "key" }, read: [undefined, "cert", "key"] },
    { files: { "ca.crt": "ca", "tls.crt": "cert", "tls.key": "key" }, read: ["ca", "cert", "key"] },
  ])("takes $files", async ({ files, read }) => {
    await fill(files);
    const tls = withTls();
    expect([tls?.ca?.(), tls?.cert?.(), tls?.key?.()]).toEqual(read);
  });

  it.each([{}, { "tls.crt": "cert" }, { "ca.crt": "ca", "tls.key": "key" }])("refuses %j", async (files) => {
    await fill(files);
    expect(withTls).toThrow(`Files are missing in "${folder}": --store-etcd-tls needs ca.crt, or`);
  });

  it("reads a file anew, and trusts no other authorities once the file is gone", async () => {
    await fill({ "ca.crt": "old" });
    const tls = withTls();
    await fill({ "ca.crt": "new" });
    expect(tls?.ca?.()).toBe("new");
    await rm(join(folder, "ca.crt"));
    expect(() => tls?.ca?.()).toThrow("ENOENT");
  });

  it("trusts no other authorities while ca.crt is a link that leads nowhere", async () => {
    await fill({ "tls.crt": "cert", "tls.key": "key" });
    await symlink(join(folder, "absent"), join(folder, "ca.crt"));
    const tls = withTls();
    expect(() => tls?.ca?.()).toThrow("ENOENT");
  });

  it("is not needed", () => {
    const { tls, credentials } = etcdAccess({ storeEtcdTls: undefined, storeEtcdAuth: undefined });
    expect([tls?.ca?.(), tls?.cert?.(), credentials]).toEqual([undefined, undefined, undefined]);
  });
});

describe("--store-etcd-auth", () => {
  it("takes the first lines of username and password, and reads them anew", async () => {
    await fill({ username: "davit\n", password: "secret\nmore" });
    const login = withLogin();
    expect([login?.username, await login?.password()]).toEqual(["davit", "secret"]);
    await fill({ username: "other", password: "new" });
    expect([login?.username, await login?.password()]).toEqual(["other", "new"]);
  });

  it.each([{ username: "davit" }, { password: "secret" }])("refuses %j alone", async (files) => {
    await fill(files);
    expect(withLogin).toThrow("--store-etcd-auth needs username and password");
  });
});
