import { expect, it } from "vitest";
import { helpOf, type OptionTable } from "../../src/options/parsing.ts";
import { serveHelp } from "../../src/options/serve.ts";
import { serveOptions } from "../../src/options/table.ts";

it("The help names every option with its default", () => {
  const help = helpOf(serveHelp);
  for (const flag of ["--manifests DIR", "--boot-address HOST:PORT", "--store-insecure", "--log-format json|pretty"]) {
    expect(help).toContain(`  ${flag}\n`);
  }
  expect(help).toContain("(default [::]:8080)");
  expect(help).toMatch(/ {2}--limit watch-silence=DURATION\n.*\(default 150s\)\n/);
});

it("The help of davit serve begins with the five options that a host needs first", () => {
  const [, first = "", ...others] = helpOf(serveHelp).split(/\n\n(?=[^\n]+:\n {2}--)/);
  expect(first.split("\n", 1)).toEqual(["What a host needs first:"]);
  expect([...first.matchAll(/^ {2}--(\S+)/gm)].map(([, flag]) => flag)).toEqual([
    "manifests",
    "data-dir",
    "boot-address",
    "advertise-address",
    "assets-dir",
  ]);
  expect(others.map((part) => part.split(":\n", 1)[0])).toEqual([
    "Where objects come from",
    "DHCP and TFTP",
    "How machines boot",
    "Assets",
    "Signatures and encryption",
    "Operations and log",
    "The store",
    "Clients of the store",
    "The store in etcd",
    "Limits",
  ]);
});

it("A table with an option that has no heading has no headings in its help", () => {
  const { logLevel, logFormat }: OptionTable = serveOptions;
  const help = (options: OptionTable) => helpOf({ usage: "x", purpose: "Does x.", options });
  expect(help({ logLevel, logFormat })).toContain("\n\nOperations and log:\n  --log-level");
  expect(help({ logLevel, logFormat: { ...logFormat, heading: undefined } })).not.toContain("Operations and log");
});
