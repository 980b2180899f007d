/** The welcome text for a terminal, which appears when davit begins to answer machines. */

import type { ServedFromStore } from "../../app/boot-app.ts";
import type { MachineAddresses } from "../../app/listener/boot-listener.ts";
import type { Served } from "../../app/served.ts";
import { type Address, authority, isWildcard } from "../../lib/text/address.ts";

/** Returns the welcome text of `davit serve`, with commands to try, without its last newline. */
export function welcome(served: Served): string {
  const boot = url(served.bootAddress);
  const { storeAddress } = served;
  const store = storeAddress === undefined ? "no listener" : url(storeAddress, served.storeTls ? "https" : "http");
  const objects = `${count(served.profiles, "profile")} and ${count(served.groups, "group")}`;
  const problems = served.problems === 0 ? "" : `, ${count(served.problems, "problem")} (see the log)`;
  return [
    "",
    `davit ${served.version} serves ${objects} from ${served.source}${problems}`,
    "",
    bootLine(served),
    `  store         ${store}`,
    `  operations    ${url(served.opsAddress)}`,
    "",
    ...(served.firstCommand === undefined ? linesToTry(boot, served.opsAddress) : firstSteps(served.firstCommand)),
  ].join("\n");
}

/** Returns the welcome text of `davit boot`, with commands to try, without its last newline. */
export function welcomeOfBoot(served: ServedFromStore): string {
  const boot = url(served.bootAddress);
  return [
    "",
    `davit ${served.version} serves ${count(served.groups, "group")} from the store at ${served.store}`,
    "",
    bootLine(served),
    `  operations    ${url(served.opsAddress)}`,
    "",
    ...(served.groups === 0 ? firstStepsOfBoot : linesToTry(boot, served.opsAddress)),
  ].join("\n");
}

function bootLine(served: MachineAddresses): string {
  const everywhere = isWildcard(served.bootAddress.host) ? ", on every address of this computer" : "";
  return `  boot service  ${url(served.bootAddress)}${everywhere}  (machines reach it as ${machineUrls(served)})`;
}

function machineUrls({ advertised, advertisedTls }: MachineAddresses): string {
  return `http://${advertised}${advertisedTls === undefined ? "" : ` and https://${advertisedTls}`}`;
}

/** Lines for a davit without Groups. It answers every machine with 404, so there is nothing to try yet. */
function firstSteps(command: string): readonly string[] {
  return ["No machine has a Group yet. Add one, such as that of the quick start:", `  ${command}`, ""];
}

const firstStepsOfBoot = [
  "No machine has a Group yet. Add Profiles and Groups where the davit of that store reads them.",
  "",
];

/** Commands that work with any objects. With a machine's MAC, the second shows what this machine gets, and why. */
function linesToTry(boot: string, ops: Address): readonly string[] {
  return ["Try:", `  curl '${boot}/boot.ipxe'`, `  curl '${url(ops)}/preview?mac=52-54-00-a1-9c-ae'`, "", ""];
}

/** Returns a URL for a person on this computer. Loopback replaces a wildcard, which is no address to connect to. */
function url(address: Address, scheme = "http"): string {
  return `${scheme}://${authority(isWildcard(address.host) ? { ...address, host: "127.0.0.1" } : address)}`;
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}
