import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { StartError } from "../../../src/lib/start-error.ts";
import { type KubeConfigOptions, loadClusterAccess } from "../../../src/sources/kubernetes/client/kube-config.ts";

let folder: string;
const pod = { KUBERNETES_SERVICE_HOST: "10.0.0.1", KUBERNETES_SERVICE_PORT: "443" };

beforeAll(async () => {
  // The client package looks for the pod's API server in the process's own environment.
  for (const [name, value] of Object.entries(pod)) vi.stubEnv(name, value);
  folder = await mkdtemp(join(tmpdir(), "davit-kubeconfig-"));
  const account = join(folder, "var/run/secrets/kubernetes.io/serviceaccount");
  await mkdir(account, { recursive: true });
  await writeFile(join(account, "token"), "pod-token\n");
  await writeFile(join(account, "ca.crt"), "pod-ca");
  await writeFile(join(account, "namespace"), "davit-system\n");
  await mkdir(join(folder, ".kube"));
  await writeFile(join(folder, ".kube/config"), config({ server: "https://home" }));
  await writeFile(join(folder, "one"), config({ server: "https://one", more: "token: abc" }));
  await writeFile(join(folder, "two"), config({ server: "https://two", name: "other" }));
  await writeFile(join(folder, "plain"), config({ server: "http://plain" }));
  await writeFile(join(folder, "socks"), config({ server: "https://a", cluster: "proxy-url: socks5://b:1" }));
  await writeFile(join(folder, "garbage"), "clusters: [secret-text");
  await writeFile(join(folder, "token-file"), config({ server: "https://a", more: "tokenFile: rack.token, token: b" }));
  await writeFile(join(folder, "no-token-file"), config({ server: "https://a", more: "tokenFile: absent" }));
  const text = config({ server: "https://a" });
  await writeFile(join(folder, "undecided"), text.replace("current-context: main", ""));
  await writeFile(join(folder, "no-cluster"), text.replace("{cluster: main", "{cluster: gone"));
  await writeFile(join(folder, "no-user"), text.replace("user: main", "user: gone"));
  await writeFile(join(folder, "ca.pem"), "first-ca");
  await writeFile(
    join(folder, "files"),
    config({ server: "https://files/", cluster: "certificate-authority: ca.pem" }),
  );
});

afterAll(async () => {
  vi.unstubAllEnvs();
  await rm(folder, { recursive: true, force: true });
});

function load(options: Partial<KubeConfigOptions>) {
  return loadClusterAccess({ environment: {}, root: folder, ...options });
}

describe("the cluster", () => {
  it("is the one of the kubeconfig that is named, whatever else there is", async () => {
    const access = await load({ kubeconfig: join(folder, "one"), environment: { ...pod, KUBECONFIG: "elsewhere" } });
    expect(access.server).toBe("https://one");
    expect(access.namespace).toBe("racks");
    expect((await access.credentials()).headers.authorization).toBe("Bearer abc");
  });

  it("is the one of KUBECONFIG, whose first file comes first", async () => {
    const environment = { ...pod, KUBECONFIG: `${join(folder, "one")}:${join(folder, "two")}` };
    expect((await load({ environment })).server).toBe("https://one");
    expect((await load({ environment, context: "other" })).server).toBe("https://two");
  });

  it("is the pod's own, with the namespace and the token of its service account", async () => {
    const access = await load({ environment: { ...pod, HOME: folder } });
    expect(access.server).toBe("https://10.0.0.1:443");
    expect(access.namespace).toBe("davit-system");
    const { headers, tls } = await access.credentials();
    expect(headers.authorization).toBe("Bearer pod-token");
    expect(tls.ca).toBe("pod-ca");
  });

  it("is the one of the home directory, last of all", async () => {
    expect((await load({ environment: { HOME: folder } })).server).toBe("https://home");
  });

  it.each([
    { name: "nothing is there", options: {}, text: "KUBERNETES_SERVICE_HOST is not set" },
    { name: "a file is not there", options: { kubeconfig: "absent" }, text: 'kubeconfig "absent": there is no such' },
    { name: "a file is no kubeconfig", options: { kubeconfig: "garbage" }, text: "it is no valid kubeconfig" },
    {
      name: "there is no such context",
      options: { kubeconfig: "one", context: "x" },
      text: 'Use context "x" of the kubeconfig: there is no such context, only "main"',
    },
    {
      name: "no context is the current one",
      options: { kubeconfig: "undecided" },
      text: 'it has no current context; --context takes "main"',
    },
    {
      name: "the context names a cluster that is not there",
      options: { kubeconfig: "no-cluster" },
      text: 'there is no cluster "gone", which it names, only "main"',
    },
    {
      name: "the context names a user who is not there",
      options: { kubeconfig: "no-user" },
      text: 'there is no user "gone", which it names, only "main"',
    },
    { name: "the server has no TLS", options: { kubeconfig: "plain" }, text: "its server is not https" },
    { name: "the proxy is of another kind", options: { kubeconfig: "socks" }, text: "only proxies of http" },
  ])("is not guessed when $name", async ({ options: { kubeconfig, ...options }, text }) => {
    const file = kubeconfig === undefined || kubeconfig === "absent" ? kubeconfig : join(folder, kubeconfig);
    const loaded = load({ kubeconfig: file, ...options });
    await expect(loaded).rejects.toThrow(StartError);
    await expect(loaded).rejects.toThrow(text);
    await expect(loaded).rejects.not.toThrow("secret-text");
  });
});

describe("credentials", () => {
  it("follow their files: an authority that changed is the one of the next call", async () => {
    const access = await load({ kubeconfig: join(folder, "files") });
    expect((await access.credentials()).tls.ca).toBe("first-ca");
    await writeFile(join(folder, "ca.pem"), "second-ca");
    expect((await access.credentials()).tls.ca).toBe("second-ca");
  });

  it("are the token of the file that is named, whatever token is beside it, and follow it when they were refused", async () => {
    await writeFile(join(folder, "rack.token"), "first-token\n");
    const access = await load({ kubeconfig: join(folder, "token-file") });
    expect((await access.credentials()).headers.authorization).toBe("Bearer first-token");
    await writeFile(join(folder, "rack.token"), "second-token\n");
    access.renew();
    expect((await access.credentials()).headers.authorization).toBe("Bearer second-token");
  });

  it("cannot be had from a token file that is not there", async () => {
    const access = await load({ kubeconfig: join(folder, "no-token-file") });
    await expect(access.credentials()).rejects.toThrow("ENOENT");
  });

  it.each(["", "\n"])("are never missing because the token file holds %j while it is written", async (written) => {
    await writeFile(join(folder, "rack.token"), written);
    const access = await load({ kubeconfig: join(folder, "token-file") });
    await expect(access.credentials()).rejects.toThrow(`Token file "${join(folder, "rack.token")}" is empty`);
    await writeFile(join(folder, "rack.token"), "new-token\n");
    expect((await access.credentials()).headers.authorization).toBe("Bearer new-token");
  });

  it("that were refused are read anew", async () => {
    const access = await load({ environment: pod });
    await access.credentials();
    await writeFile(join(folder, "var/run/secrets/kubernetes.io/serviceaccount/token"), "new-token");
    expect((await access.credentials()).headers.authorization).toBe("Bearer pod-token");
    access.renew();
    expect((await access.credentials()).headers.authorization).toBe("Bearer new-token");
  });
});

interface ConfigText {
  readonly server: string;
  readonly name?: string;
  readonly cluster?: string;
  readonly more?: string;
}

function config({ server, name = "main", cluster = "", more = "" }: ConfigText): string {
  return `
apiVersion: v1
kind: Config
current-context: ${name}
clusters: [{name: ${name}, cluster: {server: "${server}"${cluster && `, ${cluster}`}}}]
users: [{name: ${name}, user: {${more}}}]
contexts: [{name: ${name}, context: {cluster: ${name}, user: ${name}, namespace: racks}}]
`;
}
