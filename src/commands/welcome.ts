/** What a person at a terminal reads once everything is served. */

import type { Served } from "../app.ts";
import { type Address, authority, isWildcard } from "../config.ts";

/** The welcome text, with three lines to try. */
export function welcome(served: Served, directories: readonly string[]): string {
  const boot = url(served.bootAddress);
  const machine = "uuid=a1b2c3d4-0000-4000-8000-00000000abcd&mac=52-54-00-a1-9c-ae";
  const objects = `${count(served.profiles, "profile")} and ${count(served.groups, "group")}`;
  const problems = served.problems === 0 ? "" : `, ${count(served.problems, "problem")} (see the log)`;
  return [
    "",
    `davit ${served.version} serves ${objects} from ${directories.join(", ")}${problems}`,
    "",
    `  boot service  ${boot}  (machines reach it as http://${served.advertised})`,
    `  store         ${url(served.storeAddress)}`,
    `  operations    ${url(served.opsAddress)}`,
    "",
    "Try:",
    `  curl '${boot}/ipxe?${machine}'`,
    `  curl '${boot}/ignition?${machine}'`,
    `  curl '${boot}/metadata?${machine}'`,
    "",
    "",
  ].join("\n");
}

/** A wildcard is where davit listens; a person on this machine asks loopback. */
function url(address: Address): string {
  return `http://${authority(isWildcard(address.host) ? { ...address, host: "127.0.0.1" } : address)}`;
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}
