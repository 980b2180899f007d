import { describe, expect, it } from "vitest";
import { operationsOptions, variablesOf } from "../../src/commands/machine/options.ts";
import { placeOptions } from "../../src/commands/store/store-places.ts";
import { formerNames } from "../../src/options/former-names.ts";
import { readTable, variableOf } from "../../src/options/parsing.ts";
import { bootOptions, serveOptions } from "../../src/options/table.ts";

const tables = [serveOptions, bootOptions, operationsOptions];
const commands = Object.entries({ serve: serveOptions, boot: bootOptions, machine: operationsOptions });
const flags = tables.flatMap((table) => Object.values(table).map(({ flag }) => flag));

describe("A former name", () => {
  it.each(Object.entries(formerNames))("%s is no option, and belongs to one", (name, { now, of = now }) => {
    expect(flags).not.toContain(name);
    expect(flags).toEqual(expect.arrayContaining([now, of]));
  });

  it.each([
    ["serve", "allowed-host", "store-allowed-host"],
    ["serve", "max-staleness", "install-max-source-age"],
    ["boot", "max-staleness", "install-max-source-age"],
    ["serve", "store-certificate-name", "store-allowed-host"],
    ["machine", "operations-url", "ops-url"],
    ["machine", "operations-token-file", "ops-token-file"],
  ])("of davit %s, %s, is refused by name, as flag and as variable", (command, former, now) => {
    const table = commands.find(([name]) => name === command)?.[1] ?? {};
    const problemsOf = (args: readonly string[], environment = {}) =>
      readTable(table, args, command === "machine" ? variablesOf(environment) : environment).problems;
    expect(problemsOf([`--${former}`, "value"])).toEqual([`Former option "--${former}": write --${now}`]);
    expect(problemsOf([`--${former}=value`])).toEqual([`Former option "--${former}": write --${now}`]);
    const variable = variableOf(former);
    expect(problemsOf([], { [variable]: "value" })).toEqual([`Former variable ${variable}: write ${variableOf(now)}`]);
    expect(problemsOf([], { [variable]: "" })).toEqual([]);
  });

  it.each([
    ["serve", "watch-silence", "DURATION"],
    ["serve", "source-grace", "DURATION"],
    ["boot", "assets-cache-bytes", "BYTES"],
  ])("of davit %s, %s, is a limit now", (command, former, value) => {
    const table = commands.find(([name]) => name === command)?.[1] ?? {};
    const { problems } = readTable(table, [`--${former}=1`], { [variableOf(former)]: "1" });
    expect(problems).toEqual([
      `Former option "--${former}": write --limit ${former}=${value}`,
      `Former variable ${variableOf(former)}: write DAVIT_LIMIT=${former}=${value}`,
    ]);
  });

  it.each([
    ["store-etcd-ca-file", "store-etcd-tls"],
    ["store-etcd-cert-file", "store-etcd-tls"],
    ["store-etcd-key-file", "store-etcd-tls"],
    ["store-etcd-username", "store-etcd-auth"],
    ["store-etcd-password-file", "store-etcd-auth"],
  ])("%s is a file in a directory now", (former, now) => {
    for (const table of [serveOptions, placeOptions]) {
      const { problems } = readTable(table, [`--${former}=x`], { [variableOf(former)]: "x" });
      expect(problems).toEqual([
        `Former option "--${former}": write --${now} DIR`,
        `Former variable ${variableOf(former)}: write ${variableOf(now)}=DIR`,
      ]);
    }
  });

  it("is nothing to a command that never had it", () => {
    expect(readTable(bootOptions, [], { DAVIT_BACKUP_KEEP: "3" }).problems).toEqual([]);
    expect(readTable(serveOptions, [], { DAVIT_OPERATIONS_TOKEN_FILE: "x" }).problems).toEqual([]);
    const { problems } = readTable(bootOptions, ["--allowed-host=x"], { DAVIT_ALLOWED_HOST: "x" });
    expect(problems).toEqual(['Unknown option "--allowed-host": see --help']);
  });
});
