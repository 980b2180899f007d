/** Converts options' strings to values, or reports the expected form. Makes options that many tables share. */

import { BlockList, isIP } from "node:net";
import { availableParallelism } from "node:os";
import type { Address } from "../lib/text/address.ts";
import { type Option, OptionRefusal, type OptionTable } from "./parsing.ts";

/** Makes the `read` of an option with one value, which must not be empty. */
export function one<Value>(
  read: (text: string) => Value | OptionRefusal,
): (texts: readonly string[]) => Value | OptionRefusal {
  return ([text = ""]) => (text === "" ? new OptionRefusal("must not be empty") : read(text));
}

/** Makes the `read` of an option with any number of values. Empty values are ignored. */
export function each<Value>(
  read: (text: string) => Value | OptionRefusal,
): (texts: readonly string[]) => readonly Value[] | OptionRefusal {
  return (texts) => {
    const values: Value[] = [];
    for (const text of texts.filter((given) => given !== "")) {
      const value = read(text);
      if (value instanceof OptionRefusal) return value;
      values.push(value);
    }
    return values;
  };
}

export function readText(text: string): string {
  return text;
}

/** Puts options under a heading of help and docs. */
export function under<Options extends OptionTable>(heading: string, options: Options): Options {
  const entries = Object.entries(options).map(([name, option]) => [name, { ...option, heading }]);
  return Object.fromEntries(entries) as Options;
}

/** Makes a switch that is off unless it is given. */
export function switchOption(flag: string, help: string) {
  return { flag, preset: "false", help, read: one(readSwitch) } satisfies Option<boolean>;
}

/** Makes an option for a file that must exist. */
export function fileOption(flag: string, help: string) {
  return { flag, value: "FILE", help, read: one(readText), mustExist: { kind: "file" } } satisfies Option<string>;
}

/** Makes an option for a directory that davit creates if it is missing. */
export function newDirectoryOption(flag: string, help: string) {
  return { flag, value: "DIR", help, read: one(readText) } satisfies Option<string>;
}

/** Makes an option for a directory that must exist. */
export function directoryOption(flag: string, help: string) {
  return { ...newDirectoryOption(flag, help), mustExist: { kind: "directory" } } satisfies Option<string>;
}

/** Reads the name of a Kubernetes namespace: RFC 1123, 2.1, in lower case. */
export function readNamespace(text: string): string | OptionRefusal {
  const rule = "must be a namespace: 1 to 63 lower-case letters, digits and hyphens";
  return /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(text) ? text : new OptionRefusal(rule);
}

/** Reads a name in the form of most Kubernetes objects: RFC 1123, 2.1, in lower case, with dots. */
export function readObjectName(text: string): string | OptionRefusal {
  const rule = "must be the name of an object: lower-case letters, digits, hyphens and dots, 253 at most";
  return /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/.test(text) ? text : new OptionRefusal(rule);
}

/** Reads a label, `NAME=VALUE`. The value can be empty. */
export function readLabel(text: string): readonly [name: string, value: string] | OptionRefusal {
  const equals = text.indexOf("=");
  return equals > 0 ? [text.slice(0, equals), text.slice(equals + 1)] : new OptionRefusal("must be NAME=VALUE");
}

/** Reads a ServiceAccount, `NAMESPACE/NAME`. */
export function readServiceAccount(text: string): string | OptionRefusal {
  const [namespace = "", name = "", ...rest] = text.split("/");
  const isNamed = [readNamespace(namespace), readObjectName(name)].every((part) => typeof part === "string");
  return isNamed && rest.length === 0 ? text : new OptionRefusal("must be NAMESPACE/NAME of a ServiceAccount");
}

/** Reads all networks of an option into one list; undefined if there are none. */
export function readNetworks(texts: readonly string[]): BlockList | undefined | OptionRefusal {
  if (texts.length === 0) return undefined;
  const list = new BlockList();
  for (const text of texts) {
    const [address = "", prefix = "", ...rest] = text.split("/");
    const bits = isIP(address) === 6 ? 128 : 32;
    const isNetwork = isIP(address) !== 0 && /^\d{1,3}$/.test(prefix) && Number(prefix) <= bits && rest.length === 0;
    if (!isNetwork) return new OptionRefusal("must be a network, such as 192.0.2.0/24 or 2001:db8::/32");
    list.addSubnet(address, Number(prefix), bits === 128 ? "ipv6" : "ipv4");
  }
  return list;
}

/** Reads a DNS name or an IP address with a port. Without one, the ports are those of HTTP and HTTPS. */
export function readServers(text: string): readonly Address[] | OptionRefusal {
  const address = isIP(text) === 0 && text.includes(":") ? readAddress(text) : undefined;
  if (address instanceof OptionRefusal) return new OptionRefusal("must be HOST or HOST:PORT, such as mirror.example");
  const host = readHost(address?.host ?? text);
  if (typeof host !== "string") return host;
  return address === undefined ? [80, 443].map((port) => ({ host, port })) : [address];
}

/** Reads a DNS name or an IP address, without a port. */
export function readHost(text: string): string | OptionRefusal {
  const isName =
    /^(?=.{1,253}$)[A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?(\.[A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?)*$/.test(text);
  return isName || isIP(text) !== 0 ? text : new OptionRefusal("must be a DNS name or an IP address, without a port");
}

/**
 * Makes the reader of an option with a fixed set of values.
 * @param others further choices, which the caller reads itself. The message for a bad value lists them, too.
 */
export function readChoice<Choice extends string>(
  choices: readonly Choice[],
  others: readonly string[] = [],
): (text: string) => Choice | OptionRefusal {
  const rule = `must be one of ${[...choices, ...others].join(", ")}`;
  return (text) => choices.find((choice) => choice === text) ?? new OptionRefusal(rule);
}

export function readSwitch(text: string): boolean | OptionRefusal {
  return text === "true" || (text === "false" ? false : new OptionRefusal("must be true or false"));
}

export function readBytes(text: string): number | OptionRefusal {
  const bytes = /^\d{1,10}$/.test(text) ? Number(text) : 0;
  return bytes > 0 ? bytes : new OptionRefusal("must be a positive number of bytes");
}

/** Like `readBytes`, but allows 0, which means none. */
export function readBytesOrNone(text: string): number | OptionRefusal {
  return /^\d{1,11}$/.test(text) ? Number(text) : new OptionRefusal("must be a number of bytes; 0 is none");
}

export function readCount(text: string): number | OptionRefusal {
  const count = /^\d{1,9}$/.test(text) ? Number(text) : 0;
  return count > 0 ? count : new OptionRefusal("must be a positive number");
}

/** The highest number of boot threads. Each needs the memory of an index. */
const maxThreads = 64;

/** Reads a number of threads; `auto` is one for each processor that this process may use. */
export function readThreads(text: string): number | OptionRefusal {
  if (text === "auto") return Math.min(availableParallelism(), maxThreads);
  const count = /^\d{1,2}$/.test(text) ? Number(text) : 0;
  return count > 0 && count <= maxThreads ? count : new OptionRefusal(`must be auto, or 1 to ${maxThreads}`);
}

const unitMs: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };

/** @returns milliseconds. */
export function readDuration(text: string): number | OptionRefusal {
  const [, amount, unit] = /^(\d{1,6})(ms|s|m|h)$/.exec(text) ?? [];
  const factor = unitMs[unit ?? ""];
  return factor === undefined
    ? new OptionRefusal("must be a whole number with ms, s, m or h, such as 10s")
    : Number(amount) * factor;
}

/** @returns milliseconds, a second or more. */
export function readWait(text: string): number | OptionRefusal {
  const durationMs = readDuration(text);
  return typeof durationMs === "number" && durationMs < 1_000 ? new OptionRefusal("must be 1s or longer") : durationMs;
}

/** @returns milliseconds, a second or more; 0 for no limit. */
export function readLimit(text: string): number | OptionRefusal {
  return readWaitOrNone(text, "for no limit");
}

/** @returns milliseconds, a second or more; 0 for never. */
export function readInterval(text: string): number | OptionRefusal {
  return readWaitOrNone(text, "for never");
}

function readWaitOrNone(text: string, meaning: string): number | OptionRefusal {
  const durationMs = readDuration(text);
  const isTooShort = typeof durationMs === "number" && durationMs > 0 && durationMs < 1_000;
  return isTooShort ? new OptionRefusal(`must be 1s or longer, or 0s ${meaning}`) : durationMs;
}

export function readAddress(text: string): Address | OptionRefusal {
  const [, bracketed, plain, port] = /^(?:\[([0-9A-Fa-f:.]+)\]|([^:[\]\s/]*)):(\d{1,5})$/.exec(text) ?? [];
  const host = bracketed ?? plain;
  if (host === undefined || host === "" || Number(port) > 65_535) {
    return new OptionRefusal("must be HOST:PORT, such as 127.0.0.1:8080 or [::]:8080");
  }
  return { host, port: Number(port) };
}

/** Like `readAddress`, but allows `none`: no listener. */
export function readAddressOrNone(text: string): Address | "none" | OptionRefusal {
  if (text === "none") return "none";
  const address = readAddress(text);
  return address instanceof OptionRefusal ? new OptionRefusal(`${address.rule}, or none`) : address;
}

/** Reads the URLs of several servers, with commas between them. */
export function readServerUrls(text: string): readonly URL[] | OptionRefusal {
  const urls = text.split(",").map((each) => readServerUrl(each.trim()));
  const refused = urls.find((url) => url instanceof OptionRefusal);
  return refused ?? urls.filter((url) => url instanceof URL);
}

/** Reads a prefix of keys: visible ASCII. The result ends with a slash. */
export function readKeyPrefix(text: string): string | OptionRefusal {
  if (!/^[\x21-\x7e]+$/.test(text)) return new OptionRefusal("must be visible ASCII characters");
  return text.endsWith("/") ? text : `${text}/`;
}

/** Reads a server's URL: a scheme, a host and an optional port. A URL with anything else is refused. */
export function readServerUrl(text: string): URL | OptionRefusal {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isServer =
    (url?.protocol === "http:" || url?.protocol === "https:") && `${url.pathname}${url.search}${url.hash}` === "/";
  return url !== undefined && isServer && `${url.username}${url.password}` === ""
    ? url
    : new OptionRefusal("must be http://HOST:PORT or https://HOST:PORT, without path or password");
}

/** Makes the options of a certificate and its key. Each of the two needs the other. */
export function certificatePair(help: string) {
  return {
    storeCertFile: { ...fileOption("store-cert-file", help), needs: [{ name: "storeKeyFile" }] },
    storeKeyFile: {
      ...fileOption("store-key-file", "private key of that certificate, PEM"),
      needs: [{ name: "storeCertFile" }],
    },
  };
}
