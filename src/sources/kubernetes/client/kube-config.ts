/**
 * Finds the cluster and the login for it: by a kubeconfig, or by the service account of a pod.
 *
 * The package @kubernetes/client-node reads the config and supports every form of login (tokens that expire, exec
 * plug-ins, OIDC). It takes tens of megabytes, so davit imports it only in this file, and only when it reads a cluster.
 */

import { readFileSync } from "node:fs";
import type { RequestOptions } from "node:https";
import { delimiter, dirname, join, resolve } from "node:path";
import type { KubeConfig } from "@kubernetes/client-node";
import { parse } from "yaml";
import { codeOf } from "../../../lib/errors.ts";
import { StartError } from "../../../lib/start-error.ts";
import { isJsonObject, objectOf } from "../../../model/json.ts";

export interface KubeConfigOptions {
  /**
   * A kubeconfig file; without it, `KUBECONFIG`, the pod's service account and `~/.kube/config` are tried, in this
   * order.
   */
  readonly kubeconfig?: string | undefined;
  /** A context of the kubeconfig, instead of its current one. A service account has no contexts. */
  readonly context?: string | undefined;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** The directory below which the service account's files are. Only tests set it; the default is `/`. */
  readonly root?: string;
}

/** The certificate authority and the login of a connection. */
export interface ClusterCredentials {
  readonly headers: Readonly<Record<string, string>>;
  readonly tls: ClientTlsMaterial;
}

/** PEM texts and other TLS settings. For an absent one, Node uses its own default. */
export interface ClientTlsMaterial {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  readonly passphrase?: string;
  readonly rejectUnauthorized?: boolean;
  readonly servername?: string;
}

export interface ClusterAccess {
  /** The API server's URL, without a slash at its end. */
  readonly server: string;
  /** The HTTP proxy on the way to the API server. */
  readonly proxy?: string;
  /** The namespace of the context or of the pod. */
  readonly namespace: string;
  /**
   * Returns the login. It reads the certificates' files again with each call, because certificates are rotated.
   * @throws the error of reading a file, or of a login program; also for an empty token file, which is being written.
   */
  credentials(): Promise<ClusterCredentials>;
  /** Drops cached tokens; the next call reads them again. */
  renew(): void;
}

/**
 * Finds the cluster.
 * @throws {StartError} one sentence: what is missing or cannot be used.
 */
export async function loadClusterAccess(options: KubeConfigOptions): Promise<ClusterAccess> {
  const client = await import("@kubernetes/client-node");
  const load = () => loadConfig(() => new client.KubeConfig(), options);
  return new ConfigAccess(load);
}

class ConfigAccess implements ClusterAccess {
  readonly server: string;
  readonly proxy?: string;
  readonly namespace: string;
  readonly #load: () => KubeConfig;
  /** Caches tokens; undefined when they must be read again. */
  #config: KubeConfig | undefined;

  constructor(load: () => KubeConfig) {
    this.#load = load;
    this.#config = load();
    const { server, proxyUrl, namespace } = describe(this.#config);
    this.server = server;
    if (proxyUrl) this.proxy = proxyUrl;
    this.namespace = namespace;
  }

  renew(): void {
    this.#config = undefined;
  }

  async credentials(): Promise<ClusterCredentials> {
    this.#config ??= this.#load();
    const options: RequestOptions = {};
    await this.#config.applyToHTTPSOptions(options);
    const headers = headersOf(options);
    const file: unknown = this.#config.getCurrentUser()?.authProvider?.config?.tokenFile;
    if (typeof file === "string" && /^(?:Bearer)?$/.test(headers.authorization ?? "")) {
      // The package would keep an empty token for a minute. An API server may answer a request without a token by 403,
      // and only a 401 makes davit read the file again.
      this.renew();
      throw Object.assign(new Error(`Token file "${file}" is empty`), { code: "ENODATA" });
    }
    return { headers, tls: tlsOf(options) };
  }
}

function loadConfig(create: () => KubeConfig, options: KubeConfigOptions): KubeConfig {
  const { context, environment, root } = options;
  const files = kubeconfigFiles(options);
  if (files.length === 0) {
    const config = create();
    // Without these, the package would connect to https://undefined:undefined.
    if (!environment.KUBERNETES_SERVICE_HOST || !environment.KUBERNETES_SERVICE_PORT) throw new StartError(noCluster);
    config.loadFromCluster(root);
    return config;
  }
  const [first = create(), ...others] = files.map((file) => loadFile(create(), file));
  try {
    for (const other of others) first.mergeConfig(other, true);
  } catch (error) {
    throw new StartError("Merge the files of KUBECONFIG: a name is in two of them", { cause: error });
  }
  if (context !== undefined) first.setCurrentContext(context);
  return first;
}

const noCluster =
  "Find the cluster: there is no kubeconfig, and KUBERNETES_SERVICE_HOST is not set, so that this is no pod either: " +
  "name a file with --kubeconfig";

/**
 * Returns the kubeconfig files to read, in the order of controller-runtime; none to use the pod's service account. A
 * context belongs to a file, so with a context the service account is skipped.
 */
function kubeconfigFiles({ kubeconfig, context, environment }: KubeConfigOptions): readonly string[] {
  if (kubeconfig !== undefined) return [kubeconfig];
  const listed = (environment.KUBECONFIG ?? "").split(delimiter).filter((file) => file !== "");
  if (listed.length > 0) return listed;
  const isPod = Boolean(environment.KUBERNETES_SERVICE_HOST) && context === undefined;
  return isPod || !environment.HOME ? [] : [join(environment.HOME, ".kube", "config")];
}

/** Reads one file. Its errors do not quote the parser's message, because that quotes the file, which holds keys. */
function loadFile(config: KubeConfig, file: string): KubeConfig {
  try {
    config.loadFromFile(file);
    useTokenFiles(config, file);
    return config;
  } catch (error) {
    const code = codeOf(error);
    if (code === "ENOENT") throw new StartError(`Read kubeconfig "${file}": there is no such file`, { cause: error });
    throw new StartError(`Read kubeconfig "${file}": ${code ?? "it is no valid kubeconfig"}`, { cause: error });
  }
}

function describe(config: KubeConfig) {
  const { current, cluster } = currentOf(config);
  const { server, proxyUrl, skipTLSVerify } = cluster;
  if (!URL.canParse(server)) throw new StartError(`Use context "${current}" of the kubeconfig: its server is no URL`);
  if (new URL(server).protocol !== "https:" && !skipTLSVerify) {
    throw new StartError(
      `Use context "${current}" of the kubeconfig: its server is not https, and insecure-skip-tls-verify is not set`,
    );
  }
  if (proxyUrl && !/^https?:/.test(proxyUrl)) {
    throw new StartError(`Use context "${current}" of the kubeconfig: only proxies of http and https are supported`);
  }
  return { server, proxyUrl, namespace: config.getContextObject(current)?.namespace?.trim() || "default" };
}

/** Returns the current context and its cluster. @throws {StartError} which lists the existing names. */
function currentOf(config: KubeConfig) {
  const current = config.getCurrentContext() || "";
  const contexts = namesOf(config.getContexts());
  if (current === "")
    throw new StartError(`Use the kubeconfig: it has no current context; --context takes ${contexts}`);
  const context = config.getContextObject(current);
  if (context === null) {
    throw new StartError(`Use context "${current}" of the kubeconfig: there is no such context, only ${contexts}`);
  }
  const cluster = config.getCurrentCluster();
  if (cluster === null) throw noSuchPart(current, "cluster", context.cluster, config.getClusters());
  if (config.getCurrentUser() === null) throw noSuchPart(current, "user", context.user, config.getUsers());
  return { current, cluster };
}

function noSuchPart(context: string, part: "cluster" | "user", name: string, all: readonly NamedItem[]): StartError {
  const state = `there is no ${part} "${name}", which it names, only ${namesOf(all)}`;
  return new StartError(`Use context "${context}" of the kubeconfig: ${state}`);
}

interface NamedItem {
  readonly name: string;
}

// A kubeconfig of many clusters has hundreds of contexts.
const maxNames = 20;

function namesOf(all: readonly NamedItem[] | undefined = []): string {
  const names = all.slice(0, maxNames).map(({ name }) => `"${name}"`);
  if (names.length === 0) return "none";
  return [...names, ...(all.length > maxNames ? [`${all.length - maxNames} others`] : [])].join(", ");
}

function headersOf({ headers = {}, auth }: RequestOptions): Record<string, string> {
  const basic = typeof auth === "string" ? { authorization: `Basic ${Buffer.from(auth).toString("base64")}` } : {};
  // A token from a file includes the newline at its end.
  const given = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), String(value).trim()]);
  return { ...basic, ...Object.fromEntries(given) };
}

function tlsOf(options: RequestOptions): ClientTlsMaterial {
  const { ca, cert, key, passphrase, rejectUnauthorized, servername } = options;
  return {
    ...(ca !== undefined && { ca: String(ca) }),
    ...(cert !== undefined && { cert: String(cert) }),
    ...(key !== undefined && { key: String(key) }),
    ...(passphrase !== undefined && { passphrase }),
    ...(rejectUnauthorized !== undefined && { rejectUnauthorized }),
    ...(servername !== undefined && { servername }),
  };
}

/**
 * Makes users of a kubeconfig log in by the token in their `tokenFile`. The client package ignores this field, so the
 * requests of such users would be anonymous. As in client-go, the file takes precedence over an inline token, and is
 * read again every minute (tools/clientcmd/api/v1/types.go, AuthInfo).
 * @throws the error of reading the file.
 */
function useTokenFiles(config: KubeConfig, file: string): void {
  const files = tokenFilesOf(readFileSync(file, "utf8"));
  config.users = config.users.map((user) => {
    const tokenFile = files.get(user.name);
    if (tokenFile === undefined) return user;
    const { token: _, ...others } = user;
    return { ...others, authProvider: { name: "tokenFile", config: { tokenFile: resolve(dirname(file), tokenFile) } } };
  });
}

/** Returns the token files by the names of users. */
function tokenFilesOf(text: string): ReadonlyMap<string, string> {
  const config: unknown = parse(text);
  const users: readonly unknown[] = isJsonObject(config) && Array.isArray(config.users) ? config.users : [];
  const files = new Map<string, string>();
  for (const entry of users) {
    const { name, user } = objectOf(entry);
    const tokenFile = isJsonObject(user) ? user.tokenFile : undefined;
    if (typeof name === "string" && typeof tokenFile === "string" && tokenFile !== "") files.set(name, tokenFile);
  }
  return files;
}
