/** What is particular to a cluster, from variables: `make e2e` itself knows none. */

export interface Settings {
  readonly kubeconfig: string;
  /** In the cluster already; built and loaded where there is none. */
  readonly image: ImageName | undefined;
  /** A command that gives an archive, its last word, to the nodes. */
  readonly loadImage: Command | undefined;
  /** Of a node, as this computer reaches it; the first node's internal address unless given. */
  readonly nodeAddress: string | undefined;
  /** On which the boot Service is offered. */
  readonly nodePort: number;
  /** Of this computer, as pods reach it; that from which it reaches the node unless given. */
  readonly hostAddress: string | undefined;
  readonly helm: string;
  /** What breaks the cluster, if there is a way. */
  readonly faults: FaultCommands | undefined;
  /** Of etcd, for several members. */
  readonly etcdImage: string | undefined;
  /** A command that runs its words in the network of a node, for machines that are there. */
  readonly enterNode: Command | undefined;
  /** Of dnsmasq, in the cluster already; built and loaded where there is none. */
  readonly dnsmasqImage: ImageName | undefined;
  /** Directory of an earlier chart to upgrade from; the first one of this repository's history unless given. */
  readonly previousChart: string | undefined;
  /** A file with more of them for every release; the suite's own win over those. */
  readonly values: string | undefined;
  /** Directory for the logs of davit's containers. */
  readonly logFolder: string | undefined;
}

export interface FaultCommands {
  /** Its last two words are `kube-apiserver`, and `stop` or `start`. */
  readonly service: Command;
  /** Ends a container's processes without asking the API server or the container; its last word is the container's id. */
  readonly killContainer: Command;
}

export type Command = readonly [program: string, ...words: string[]];

/** As the chart's values have it. */
export interface ImageName {
  readonly registry: string;
  readonly repository: string;
  readonly tag: string;
}

/** The words that `help` explains, in the order of a run. */
const variables = {
  KUBECONFIG: "the cluster's administrator; davit's CRDs must not be there yet",
  E2E_IMAGE: "REGISTRY/REPOSITORY:TAG that the nodes have or can fetch; else make image builds one, and",
  E2E_LOAD_IMAGE: "a command to which the archive's path is added gives it to the nodes",
  E2E_NODE_ADDRESS: "a node's address; default: the first node's internal one",
  E2E_NODE_PORT: "where the boot Service is offered; default: 30080",
  E2E_HOST_ADDRESS: "this computer's address for pods; default: the one from which it reaches the node",
  E2E_HELM: "default: helm",
  E2E_SERVICE: 'a command to which "kube-apiserver stop" and "kube-apiserver start" are added, and',
  E2E_KILL_CONTAINER: "one to which a container's id is added; without both no API server is taken away",
  E2E_ETCD_IMAGE:
    "image of etcd 3.4 or later that the nodes have or can fetch; without it there are no several members",
  E2E_ENTER_NODE:
    "a command to which words are added runs them in the node's network, such as nsenter; without it no dnsmasq",
  E2E_DNSMASQ_IMAGE: "as E2E_IMAGE; else make image-dnsmasq builds one",
  E2E_PREVIOUS_CHART: "directory of the chart to upgrade from; default: the first one in git's history",
  E2E_VALUES:
    "file with values of the chart, such as bootThreads, for every release but the page's; those of the suite win",
  E2E_LOG_DIR: "directory for the logs of all containers of davit; default: they are not kept",
} as const;

type Variable = keyof typeof variables;

export class SettingsError extends Error {}

/** @throws {SettingsError} with all that is wrong, and every variable. */
export function readSettings(environment: Readonly<Record<string, string | undefined>>): Settings {
  const problems: string[] = [];
  const value = (name: Variable) => environment[name] || undefined;
  const kubeconfig = value("KUBECONFIG");
  if (kubeconfig === undefined) problems.push("KUBECONFIG is not set");
  const image = imageName("E2E_IMAGE", value("E2E_IMAGE"), problems);
  const dnsmasqImage = imageName("E2E_DNSMASQ_IMAGE", value("E2E_DNSMASQ_IMAGE"), problems);
  const loadImage = command(value("E2E_LOAD_IMAGE"));
  if (value("E2E_IMAGE") === undefined && loadImage === undefined) {
    problems.push("Neither E2E_IMAGE nor E2E_LOAD_IMAGE is set");
  }
  const nodePort = Number(value("E2E_NODE_PORT") ?? "30080");
  if (!Number.isInteger(nodePort) || nodePort < 1 || nodePort > 65_535) {
    problems.push(`E2E_NODE_PORT "${value("E2E_NODE_PORT")}" is not a port`);
  }
  const service = command(value("E2E_SERVICE"));
  const killContainer = command(value("E2E_KILL_CONTAINER"));
  if ((service === undefined) !== (killContainer === undefined)) {
    problems.push("Of E2E_SERVICE and E2E_KILL_CONTAINER only one is set");
  }
  if (kubeconfig === undefined || problems.length > 0) throw new SettingsError(`${problems.join("\n")}\n\n${help()}`);
  return {
    kubeconfig,
    image,
    loadImage,
    nodeAddress: value("E2E_NODE_ADDRESS"),
    nodePort,
    hostAddress: value("E2E_HOST_ADDRESS"),
    helm: value("E2E_HELM") ?? "helm",
    faults: service && killContainer && { service, killContainer },
    etcdImage: value("E2E_ETCD_IMAGE"),
    enterNode: command(value("E2E_ENTER_NODE")),
    dnsmasqImage,
    previousChart: value("E2E_PREVIOUS_CHART"),
    values: value("E2E_VALUES"),
    logFolder: value("E2E_LOG_DIR"),
  };
}

function imageName(name: Variable, text: string | undefined, problems: string[]): ImageName | undefined {
  if (text === undefined) return undefined;
  const parsed = parseImageName(text);
  if (parsed === undefined) problems.push(`${name} "${text}" is not of the form REGISTRY/REPOSITORY:TAG`);
  return parsed;
}

/** Undefined when it lacks one of its parts. */
function parseImageName(text: string): ImageName | undefined {
  const [, registry, repository, tag] = /^([^/]+)\/(.+):([^/:@]+)$/.exec(text) ?? [];
  return registry && repository && tag ? { registry, repository, tag } : undefined;
}

/** Words are parted by blanks; none has one in it. */
function command(text: string | undefined): Command | undefined {
  const [program, ...words] = (text ?? "").split(" ").filter((word) => word !== "");
  return program === undefined ? undefined : [program, ...words];
}

function help(): string {
  const width = Math.max(...Object.keys(variables).map((name) => name.length));
  return [
    "The variables of make e2e:",
    ...Object.entries(variables).map(([name, text]) => `  ${name.padEnd(width)}  ${text}`),
  ].join("\n");
}
