/**
 * DHCP and TFTP of `davit serve --dhcp`: checks the network, then runs dnsmasq, which sends every machine to this davit
 * and to no other place.
 */

import { chmod, chown, mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Log } from "../lib/log.ts";
import type { Ports } from "../lib/ports.ts";
import { StartError } from "../lib/start-error.ts";
import { type Address, authority, isWildcard } from "../lib/text/address.ts";
import type { AddressRange } from "../lib/text/ipv4.ts";
import { visible } from "../lib/text/visible.ts";
import { askNetwork } from "./ask.ts";
import { assertPrograms, DnsmasqChild } from "./child.ts";
import { type DhcpRole, dnsmasqConfig } from "./config.ts";
import { copyLoaders, type FoundLoader, findLoaders, httpLoadersOf, loaderByFirmware } from "./loaders.ts";
import {
  assertInNetwork,
  assertPortsFree,
  deviceAddresses,
  type MachineNetwork,
  mayChangeUser,
  networkOf,
  nobody,
} from "./network.ts";

/** The options of davit that decide it. */
export interface DhcpConfig {
  readonly dhcp: "proxy" | AddressRange | undefined;
  readonly dhcpInterface: string | undefined;
  readonly loadersDir: string | undefined;
  readonly bootAddress: Address;
  readonly advertiseAddress: Address | undefined;
}

/** Where davit serves the loaders of UEFI HTTP Boot. */
const loadersPath = "/loaders/";

/** A server that pings an address first offers it after 3 s. */
const otherServersMs = 4_500;
const anyMachine = [{ name: "any machine", architecture: 7, vendorClass: "PXEClient" }] as const;

interface CheckedDhcp {
  readonly mode: "proxy" | AddressRange;
  readonly network: MachineNetwork;
  readonly advertiseAddress: Address;
  readonly changesUser: boolean;
  readonly loaders: readonly FoundLoader[];
}

/** What the boot listener needs of DHCP. */
export interface DhcpListening {
  /** Where machines of the network reach davit. */
  readonly advertiseAddress: Address;
  /** The files that davit serves for UEFI HTTP Boot, by the paths of their URLs. */
  readonly loaderFiles: ReadonlyMap<string, string>;
}

interface DhcpPorts extends Ports {
  /** Aborts when davit must stop. */
  readonly stop: AbortSignal;
}

export class DhcpService {
  readonly #checked: CheckedDhcp;
  readonly #ports: DhcpPorts;
  #child: DnsmasqChild | undefined;
  #folder: string | undefined;

  private constructor(checked: CheckedDhcp, ports: DhcpPorts) {
    this.#checked = checked;
    this.#ports = ports;
  }

  /**
   * Checks what dnsmasq needs. Undefined without `--dhcp`.
   * @throws {StartError} with what is wrong, and the cure.
   */
  static async open(config: DhcpConfig, ports: DhcpPorts): Promise<DhcpService | undefined> {
    const { dhcp: mode, dhcpInterface: device, loadersDir } = config;
    if (mode === undefined || device === undefined) return undefined;
    const network = networkOf(device, "--dhcp-interface", await deviceAddresses());
    const advertiseAddress = reachableAddress(config, network);
    if (mode !== "proxy") assertInNetwork(mode, network);
    await assertPrograms();
    const loaders = await findLoaders(loadersDir);
    const changesUser = await mayChangeUser();
    await assertPortsFree(network, mode === "proxy");
    return new DhcpService({ mode, network, advertiseAddress, changesUser, loaders }, ports);
  }

  get listening(): DhcpListening {
    const { advertiseAddress, loaders } = this.#checked;
    const files = httpLoadersOf(loaders).map(({ name, path }) => [`${loadersPath}${name}`, path] as const);
    return { advertiseAddress, loaderFiles: new Map(files) };
  }

  /** Problems for the operator, one per line. */
  get attention(): readonly string[] {
    const problem = this.#child?.problem;
    return problem === undefined ? [] : [`dhcp: ${problem}; davit starts it again, and answers machines meanwhile`];
  }

  /**
   * Starts dnsmasq, and resolves when it answers machines.
   * @param advertised `HOST:PORT` at which machines reach davit.
   * @throws {StartError} if another DHCP server gives addresses, too, or dnsmasq does not start. Then the caller must
   * call `stop`.
   */
  async start(advertised: string): Promise<void> {
    const { mode, network, changesUser, loaders } = this.#checked;
    const log = this.#ports.log.child({ part: "dhcp" });
    if (mode !== "proxy") await this.#assertAlone(log);
    const folder = await mkdtemp(join(tmpdir(), "davit-dhcp-"));
    this.#folder = folder;
    const [tftpRoot, state] = [join(folder, "tftp"), join(folder, "state")];
    await copyLoaders(loaders, tftpRoot);
    await mkdir(state, { mode: 0o700 });
    if (changesUser) {
      // dnsmasq may write only its leases. Only root can change the loaders.
      await chown(state, nobody, nobody);
      await chmod(folder, 0o711);
    }
    const role: DhcpRole =
      mode === "proxy" ? { subnet: network.subnet } : { ranges: [`${mode.from},${mode.to}`], router: mode.router };
    const byFirmware = loaderByFirmware(loaders, mode !== "proxy");
    const config = dnsmasqConfig({
      role,
      advertised,
      interface: network.device,
      leaseFile: join(state, "leases"),
      tftpRoot,
      loaders: byFirmware,
      httpLoaders: Object.fromEntries(
        httpLoadersOf(loaders).map(({ number, name }) => [number, `http://${advertised}${loadersPath}${name}`]),
      ),
    });
    this.#child = new DnsmasqChild({ ...this.#ports, log, config, changesUser });
    await this.#child.start();
    if (mode === "proxy") void this.#lookForServer(log);
    log.info(
      { interface: network.device, script: `http://${advertised}/chain.ipxe`, loaders: byFirmware },
      "dhcp runs",
    );
  }

  /** Ends dnsmasq, and removes its files. Idempotent. */
  async stop(): Promise<void> {
    await this.#child?.stop();
    if (this.#folder !== undefined) await rm(this.#folder, { recursive: true, force: true });
  }

  /** Two servers with ranges would give one address twice. @throws {StartError} */
  async #assertAlone(log: Log): Promise<void> {
    const [other] = await this.#otherServers(log);
    if (other === undefined) return;
    const place = `already gives addresses on "${this.#checked.network.device}"`;
    throw new StartError(`Two DHCP servers: ${other} ${place}: give --dhcp proxy, or stop that server`);
  }

  async #lookForServer(log: Log): Promise<void> {
    const servers = await this.#otherServers(log);
    if (servers.length > 0) log.info({ servers }, "another DHCP server gives the addresses");
    else log.warn({}, "no DHCP server answers: with --dhcp proxy, machines get no address until one does");
  }

  async #otherServers(log: Log): Promise<readonly string[]> {
    const { address } = this.#checked.network;
    try {
      const [answers = []] = await askNetwork({
        ...this.#ports,
        address,
        kinds: anyMachine,
        waitMs: otherServersMs,
        isEnough: ({ address: offered }) => offered !== undefined,
      });
      return answers.flatMap(({ server, address: offered }) => (offered === undefined ? [] : [visible(server)]));
    } catch (error) {
      if (!(error instanceof StartError)) throw error;
      log.warn({ reason: error.message }, "cannot look for other DHCP servers");
      return [];
    }
  }
}

/**
 * Returns the address at which machines of the network reach davit.
 * @throws {StartError} if there is none.
 */
function reachableAddress({ bootAddress, advertiseAddress }: DhcpConfig, { device, address }: MachineNetwork): Address {
  if (advertiseAddress?.host.includes(":") === true) {
    throw new StartError(`Cannot use --advertise-address "${authority(advertiseAddress)}" with --dhcp: it is for IPv4`);
  }
  if (advertiseAddress !== undefined) return advertiseAddress;
  const { host, port } = bootAddress;
  if (port === 0) throw new StartError("No port for --dhcp: give --boot-address one, such as [::]:8080");
  if (isWildcard(host) || host === address) return { host: address, port };
  throw new StartError(
    `Machines on "${device}" cannot reach --boot-address "${authority(bootAddress)}": give ` +
      `${authority({ host: address, port })}, or [::]:${port}`,
  );
}
