import { describe, expect, it } from "vitest";
import { backupHelp, readBackupConfig } from "../src/commands/store/backup.ts";
import { readMigrateConfig } from "../src/commands/store/migrate-store.ts";
import { readRestoreConfig, restoreHelp } from "../src/commands/store/restore.ts";
import { ConfigError, helpOf } from "../src/options/parsing.ts";
import type { Paths } from "../src/options/rules.ts";

/** Directories end with a slash here. */
function pathsOf(...there: readonly string[]): Paths {
  return { isDirectory: (path) => there.includes(`${path}/`), isFile: (path) => there.includes(path) };
}

const usual = pathsOf("./", "data/", "data/local-token", "older", "tokens", "ca", "cert", "key");

function problemsOf(read: () => unknown): readonly string[] {
  try {
    read();
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  return [];
}

const backup = (args: readonly string[], environment = {}, paths = usual) => readBackupConfig(args, environment, paths);
const fromStore = ["--store", "https://store.example:2379", "--output", "file"];

describe("the options of davit backup", () => {
  it("name a store and a file", () => {
    expect(backup([...fromStore, "--store-token-file", "tokens", "--store-ca-file", "ca"])).toEqual({
      source: { kind: "store", url: new URL("https://store.example:2379") },
      output: "file",
      force: false,
      storeTokenFile: "tokens",
      storeCaFile: "ca",
      tokenFile: "tokens",
    });
  });

  it("name a data directory instead", () => {
    const { source } = backup(["--data-dir", "data", "--output", "file"]);
    expect(source).toEqual({ kind: "directory", path: "data" });
  });

  it("show the local token of a data directory to its store", () => {
    const args = ["--store", "http://127.0.0.1:2379", "--data-dir", "data", "--output", "file"];
    const { source, tokenFile } = backup(args);
    expect(source).toMatchObject({ kind: "store" });
    expect(tokenFile).toBe("data/local-token");
  });

  it("take a source that a flag names before one of a variable, such as that of a serve beside", () => {
    const environment = { DAVIT_DATA_DIR: "elsewhere", DAVIT_STORE: "http://other.example:1" };
    expect(backup(fromStore, environment).source).toMatchObject({ kind: "store" });
    expect(backup(["--data-dir", "data", "--output", "file"], environment).source).toMatchObject({ path: "data" });
  });

  it("replace a file by force only", () => {
    const onto = ["--store", "http://store.example:1", "--output", "older"];
    const problem = 'File "older" exists: give another name, or --force to replace it';
    expect(problemsOf(() => backup(onto))).toEqual([problem]);
    expect(backup([...onto, "--force"]).force).toBe(true);
  });

  const noSource = "No source of the backup: give --store URL or --data-dir DIR";
  it.each([
    { args: ["--output", "file"], problem: noSource },
    {
      args: ["--store", "http://store.example:1", "--output", "file", "--store-token-file", "tokens"],
      problem:
        'No TLS with "http://store.example:1": a token needs a URL that begins with https://, or a loopback address',
    },
    {
      args: ["--store", "https://store.example:1", "--data-dir", "data", "--output", "file"],
      problem:
        'Not on this computer: "https://store.example:1": --data-dir needs a loopback address; else give ' +
        "--store-token-file",
    },
    { args: ["--store", "http://store.example:1"], problem: "No place for the backup: give --output FILE" },
    {
      args: ["--data-dir", "gone", "--output", "file"],
      problem: 'No directory "gone": --data-dir needs one that exists',
    },
    {
      args: ["--data-dir", "data", "--output", "data"],
      problem: '"data" is a directory: --output needs the name of a file',
    },
    {
      args: ["--data-dir", "data", "--output", "gone/file"],
      problem: 'No directory "gone": --output needs one that exists',
    },
    {
      args: [...fromStore, "--store-token-file", "none"],
      problem: 'No file "none": --store-token-file needs one that exists',
    },
    {
      args: [...fromStore, "--store-cert-file", "cert"],
      problem: "Missing --store-key-file: --store-cert-file is of no use without it",
    },
    {
      args: ["--store", "http://store.example:1", "--output", "file", "--store-ca-file", "ca"],
      problem: 'No TLS with "http://store.example:1": certificates need a URL that begins with https://',
    },
    { args: [...fromStore, "more"], problem: 'Unexpected argument "more": options begin with --' },
  ])("are refused: $problem", ({ args, problem }) => {
    expect(problemsOf(() => backup(args))).toContain(problem);
  });

  it("are told by the help", () => {
    for (const flag of ["store URL", "data-dir DIR", "output FILE", "force", "store-token-file FILE"]) {
      expect(helpOf(backupHelp)).toContain(`  --${flag}\n`);
    }
  });
});

describe("the options of davit restore", () => {
  it("name a backup and a data directory, which need not exist", () => {
    const config = readRestoreConfig(["--input", "older", "--data-dir", "new"], {}, usual);
    expect(config).toEqual({ input: "older", dataDir: "new", storeEtcdPrefix: "/davit/" });
  });

  it("name an etcd instead, as those of a serve beside do, unless a flag names a directory", () => {
    const environment = { DAVIT_DATA_DIR: "data", DAVIT_STORE_ETCD_ENDPOINTS: "http://etcd.example:2379" };
    const restore = (...args: string[]) => readRestoreConfig(["--input", "older", ...args], environment, usual);
    const storeEtcdEndpoints = [new URL("http://etcd.example:2379")];
    expect(restore()).toEqual({ input: "older", storeEtcdEndpoints, storeEtcdPrefix: "/davit/" });
    expect(restore("--data-dir", "new")).toEqual({ input: "older", dataDir: "new", storeEtcdPrefix: "/davit/" });
    const other = restore("--store-etcd-endpoints", "http://other.example:1", "--store-etcd-prefix", "/x");
    expect(other).toMatchObject({ storeEtcdEndpoints: [new URL("http://other.example:1")], storeEtcdPrefix: "/x/" });
  });

  it.each([
    {
      args: [],
      problems: [
        "No backup: give --input FILE",
        "No place for the store: give --data-dir DIR, or --store-etcd-endpoints URL,URL",
      ],
    },
    {
      args: ["--input", "older", "--data-dir", "new", "--store-etcd-endpoints", "http://etcd.example:2379"],
      problems: ["Two places for the store: give --data-dir or --store-etcd-endpoints, not both"],
    },
    {
      args: ["--input", "gone", "--data-dir", "new"],
      problems: ['No file "gone": --input needs one that exists'],
    },
  ])("are refused: $problems", ({ args, problems }) => {
    expect(problemsOf(() => readRestoreConfig(args, {}, usual))).toEqual(problems);
  });

  it("are told by the help", () => {
    for (const flag of ["input FILE", "data-dir DIR", "store-etcd-prefix PREFIX"])
      expect(helpOf(restoreHelp)).toContain(`  --${flag}\n`);
  });
});

describe("the options of davit migrate-store", () => {
  it("name a direction and both places", () => {
    const args = ["--to", "etcd", "--data-dir", "data", "--store-etcd-endpoints", "http://etcd.example:2379"];
    expect(readMigrateConfig(args, {}, usual)).toEqual({
      to: "etcd",
      dataDir: "data",
      storeEtcdEndpoints: [new URL("http://etcd.example:2379")],
      storeEtcdPrefix: "/davit/",
    });
  });

  it("are refused without them", () => {
    expect(problemsOf(() => readMigrateConfig([], {}, usual))).toEqual([
      "No direction: give --to etcd, or --to data-dir",
      "No data directory: give --data-dir DIR",
      "No etcd: give --store-etcd-endpoints URL,URL",
    ]);
  });
});
