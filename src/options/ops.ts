/** The options of the listener for operators. */

import type { Address } from "../lib/text/address.ts";
import type { Option } from "./parsing.ts";
import { fileOption, one, readAddress, readSwitch } from "./readers.ts";

export const opsOptions = {
  opsAddress: {
    flag: "ops-address",
    value: "HOST:PORT",
    preset: "127.0.0.1:8081",
    help:
      "address of /livez, /readyz, /metrics and /version, and of /preview, /history, /machines, /ledger and " +
      "/documents (see --ops-token-file)",
    read: one(readAddress),
  } satisfies Option<Address>,
  opsTokenFile: fileOption(
    "ops-token-file",
    "tokens, one per line; /preview, /history, /machines, /ledger and /documents need one of them; default: none, " +
      "and only a loopback --ops-address serves these",
  ),
  opsAdminTokenFile: fileOption(
    "ops-admin-token-file",
    "tokens, one per line; davit machine adopt and forget need one of them; default: none, and only a " +
      "loopback --ops-address accepts these two",
  ),
  opsConsole: {
    flag: "ops-console",
    preset: "true",
    help: "serve the console, pages for people, at /console/ of --ops-address; false: not",
    read: one(readSwitch),
  } satisfies Option<boolean>,
};
