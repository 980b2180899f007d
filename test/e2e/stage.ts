/** What all steps share: the cluster, the release in it, what it fetches, and machines that boot from it. */

import { createSocket } from "node:dgram";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parse } from "yaml";
import type { JsonObject } from "../../src/model/json.ts";
import { buildBootAssets } from "../../tools/firmware/boot-assets.ts";
import { hostSeenByMachine, quickstartMachine } from "../../tools/firmware/machine.ts";
import { type Onlooker, powerOn } from "../firmware/power-on.ts";
import { type AssetServer, smallAsset, startAssetServer } from "./asset-server.ts";
import { Boots } from "./boots.ts";
import { PodLogs } from "./pod-logs.ts";
import { merged, Release } from "./release.ts";
import { run } from "./run.ts";
import { type ImageName, readSettings, type Settings } from "./settings.ts";

const ownNamespace = "davit-e2e";
/** The namespace of docs/operate/install.md. */
export const pageNamespace = "netboot";
/** What is built where no image is given. */
export const builtImage: ImageName = { registry: "localhost", repository: "davit", tag: version() };
const namespaces = [ownNamespace, pageNamespace] as const;
const crds = ["profiles.davit.dev", "groups.davit.dev", "machines.davit.dev"] as const;
const bootLimitMs = 120_000;

export class Stage {
  readonly settings: Settings;
  readonly release: Release;
  /** Where machines reach the boot service. */
  readonly authority: string;
  /** The node's address. */
  readonly host: string;
  readonly image: ImageName;
  readonly assets: AssetServer;
  readonly logs: PodLogs;
  /** Goes at the end. */
  readonly folder: string;
  readonly #givenValues: JsonObject;

  private constructor({ settings, host, folder, assets, namespace }: Found) {
    this.settings = settings;
    this.#givenValues = settings.values === undefined ? {} : parse(readFileSync(settings.values, "utf8"));
    this.host = host;
    this.authority = `${host}:${settings.nodePort}`;
    this.folder = folder;
    this.assets = assets;
    this.image = settings.image ?? builtImage;
    // Users' keys are written from outside.
    const store = { expose: true, authentication: { serviceAccounts: [`${namespace}/${userAccount}`] } };
    this.release = new Release({ helm: settings.helm, namespace, values: merged(this.values, { store }) });
    this.logs = new PodLogs(namespace);
  }

  /**
   * @param namespace of the release.
   * @throws {Error} when the cluster is not one to be used: nothing of it is changed then.
   */
  static async open(
    environment: Readonly<Record<string, string | undefined>>,
    namespace: StageNamespace = ownNamespace,
  ): Promise<Stage> {
    const settings = readSettings(environment);
    await assertUnused();
    const host = settings.nodeAddress ?? (await firstNodeAddress());
    const own = settings.hostAddress ?? (await addressTowards(host));
    const folder = mkdtempSync(join(tmpdir(), "davit-e2e-"));
    await buildBootAssets(folder, "amd64");
    return new Stage({ settings, host, folder, assets: await startAssetServer(own, folder), namespace });
  }

  /** What every release needs on this cluster. */
  get values(): JsonObject {
    return merged(this.#givenValues, {
      image: { ...this.image },
      service: { type: "NodePort", nodePort: this.settings.nodePort },
      advertiseAddress: this.authority,
      assets: { download: this.assets.download.map((asset) => ({ ...asset })) },
    });
  }

  get origin(): string {
    return `http://${this.authority}`;
  }

  /** The script of the quickstart's machine; undefined when it is not answered with one. */
  async script(): Promise<string | undefined> {
    try {
      const response = await fetch(`${this.origin}${scriptPath}`, { signal: AbortSignal.timeout(5_000) });
      return response.ok ? await response.text() : undefined;
    } catch {
      // Nobody is there.
      return undefined;
    }
  }

  /** The image's name, as pods have it. */
  get imageName(): string {
    const { registry, repository, tag } = this.image;
    return `${registry}/${repository}:${tag}`;
  }

  /** Machines that boot all the time, until they are stopped. */
  startBoots(): Boots {
    const paths = ["/boot.ipxe", scriptPath, `/assets/${smallAsset}`, `/assets/${smallAsset}`];
    return new Boots({ origin: this.origin, asksOf: () => paths.map((path) => ({ path })) });
  }

  /**
   * Boots the quickstart's machine until it powers itself off, and gives its screen.
   * @param port of a cable on this computer; the boot service itself unless given.
   */
  async boot(
    how: {
      readonly port?: number;
      readonly onlooker?: Onlooker;
      readonly isPersistent?: boolean;
      readonly timeoutMs?: number;
    } = {},
  ): Promise<string> {
    const { port, onlooker, isPersistent = false, timeoutMs = bootLimitMs } = how;
    const authority = port === undefined ? this.authority : `${hostSeenByMachine}:${port}`;
    const loader = { kind: "ipxe", url: `http://${authority}/boot.ipxe` } as const;
    const machine = { ...quickstartMachine, firmware: "bios", loader, isPersistent } as const;
    const { screen } = await powerOn(machine, { timeoutMs, ...(onlooker && { onlooker }) });
    return screen;
  }

  /** Removes all that it brought, the image on the nodes excepted. */
  async close(): Promise<void> {
    await this.logs.stop();
    if (this.settings.logFolder !== undefined) this.logs.writeTo(this.settings.logFolder);
    await this.release.uninstall().catch(() => {});
    await run(["kubectl", "delete", "namespace", ...namespaces, "--ignore-not-found", "--timeout=100s"]);
    await removeDefinitions();
    await this.assets.stop();
    rmSync(this.folder, { recursive: true });
  }
}

type StageNamespace = (typeof namespaces)[number];

interface Found {
  readonly settings: Settings;
  readonly host: string;
  readonly folder: string;
  readonly assets: AssetServer;
  readonly namespace: StageNamespace;
}

/** A ServiceAccount whose token opens the store. */
export const userAccount = "store-user";

const scriptPath = `/ipxe?mac=${quickstartMachine.mac.replaceAll(":", "-")}`;

function version(): string {
  const file: { version: string } = JSON.parse(readFileSync(join(import.meta.dirname, "../../package.json"), "utf8"));
  return file.version;
}

/** With them go all Profiles and Groups. */
export async function removeDefinitions(): Promise<void> {
  await run(["kubectl", "delete", "crd", ...crds, "--ignore-not-found", "--timeout=60s"]);
}

/** The CRDs are removed at the end, and with them all Profiles and Groups. So they must not be somebody's. */
async function assertUnused(): Promise<void> {
  const found = await run(["kubectl", "get", "crd", ...crds, "--ignore-not-found", "--output=name"]);
  const spaces = await run(["kubectl", "get", "namespace", ...namespaces, "--ignore-not-found", "--output=name"]);
  const there = `${found}${spaces}`.trim().split("\n").join(", ");
  if (there !== "") throw new Error(`Using the cluster: it already has ${there}, which make e2e would remove`);
}

async function firstNodeAddress(): Promise<string> {
  const path = '{.items[0].status.addresses[?(@.type=="InternalIP")].address}';
  const addresses = await run(["kubectl", "get", "nodes", `--output=jsonpath=${path}`]);
  const [first] = addresses.split(" ");
  if (!first) throw new Error("The first node has no internal address: set E2E_NODE_ADDRESS");
  return first;
}

/** This computer's address on the way to another one. Nothing is sent. */
async function addressTowards(host: string): Promise<string> {
  const socket = createSocket("udp4");
  try {
    socket.connect(9, host);
    await once(socket, "connect");
    return socket.address().address;
  } finally {
    socket.close();
  }
}
