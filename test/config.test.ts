import { describe, expect, it } from "vitest";
import { ConfigError, helpOf, type OptionTable } from "../src/options/parsing.ts";
import { bootHelp, readBootConfig, readServeConfig } from "../src/options/serve.ts";
import { bootOptions, serveOptions } from "../src/options/table.ts";

const everything = { isDirectory: () => true, isFile: () => true };
const nothing = { isDirectory: () => false, isFile: () => false };

function read(args: readonly string[], environment: Record<string, string> = {}, paths = everything) {
  return readServeConfig(["--manifests", "objects", ...args], environment, paths);
}

function problemsOf(read: () => unknown): readonly string[] {
  try {
    read();
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  return [];
}

describe("the options of davit serve", () => {
  it("have the defaults of the table", () => {
    expect(read([])).toMatchObject({
      manifests: ["objects"],
      dataDir: "./data",
      bootAddress: { host: "::", port: 8080 },
      storeAddress: { host: "127.0.0.1", port: 2379 },
      opsAddress: { host: "127.0.0.1", port: 8081 },
      limits: { sourceGraceMs: 10_000, watchSilenceMs: 150_000, storeMaxValueBytes: 1_048_576 },
      grubSeparator: "auto",
      logLevel: "info",
    });
  });

  it("come from a flag before a variable before the default", () => {
    const environment = { DAVIT_DATA_DIR: "from-variable", DAVIT_LOG_LEVEL: "warn" };
    const config = read(["--data-dir", "from-flag"], environment);
    expect(config.dataDir).toBe("from-flag");
    expect(config.logLevel).toBe("warn");
  });

  it("take a list from several flags, or from one variable with commas", () => {
    expect(read(["--manifests", "more"]).manifests).toEqual(["objects", "more"]);
    expect(readServeConfig([], { DAVIT_MANIFESTS: "a,b" }, everything).manifests).toEqual(["a", "b"]);
  });

  it("take an empty variable as not given", () => {
    expect(read([], { DAVIT_DATA_DIR: "" }).dataDir).toBe("./data");
  });

  it.each([
    ["--ops-token-file", "tokens", { opsTokenFile: "tokens" }],
    ["--admin-namespace", "infra", { adminNamespace: "infra" }],
    ["--tombstone-ttl", "10m", { tombstoneTtlMs: 600_000 }],
    ["--ledger-mark-configmap", "spare-ledger", { ledgerMarkConfigMap: "spare-ledger" }],
    ["--boot-address", "0.0.0.0:80", { bootAddress: { host: "0.0.0.0", port: 80 } }],
    ["--boot-address", "[::1]:0", { bootAddress: { host: "::1", port: 0 } }],
    ["--advertise-address", "boot.example:8080", { advertiseAddress: { host: "boot.example", port: 8080 } }],
    ["--log-format", "json", { logFormat: "json" }],
    ["--store-quota-bytes", "5000000000", { storeQuotaBytes: 5_000_000_000 }],
    ["--assets-dir", "assets", { assetsDir: "assets", assetsDotfiles: false }],
    ["--assets-dir=assets", "--assets-dotfiles", { assetsDir: "assets", assetsDotfiles: true }],
    ["--on-damage", "move-aside", { onDamage: "move-aside" }],
    ["--store-advertise-url", "http://keys.example:2379/", { storeAdvertiseUrl: new URL("http://keys.example:2379") }],
  ])("%s %s is read", (flag, text, expected) => {
    expect(read([flag, text])).toMatchObject(expected);
  });

  it.each([
    [["--boot-address", "8080"], 'Bad value "8080" for --boot-address: must be HOST:PORT, such as'],
    [["--boot-address", "::1:8080"], 'Bad value "::1:8080" for --boot-address'],
    [["--boot-address", "localhost:70000"], 'Bad value "localhost:70000"'],
    [["--admin-namespace", "Infra"], 'Bad value "Infra" for --admin-namespace: must be a namespace'],
    [["--tombstone-ttl", "0s"], 'Bad value "0s" for --tombstone-ttl: must be 1s or longer'],
    [["--store-advertise-url", "keys:2379"], 'Bad value "keys:2379" for --store-advertise-url: must be http://'],
    [["--log-level", "loud"], "must be one of debug, info, warn, error, silent"],
    [["--no-such-thing"], 'Unknown option "--no-such-thing": see --help'],
    [["-x"], 'Unknown option "-x": see --help'],
    [["--no-such-thing", "value"], 'Unknown option "--no-such-thing": see --help'],
    [["--manifest", "objects"], 'Unknown option "--manifest": write --manifests'],
    [["stray"], 'Unexpected argument "stray": options begin with --'],
    [["--data-dir"], "No value for --data-dir: give DIR"],
    [["--data-dir", "a", "--data-dir", "b"], "Option --data-dir is given twice: keep one"],
    [["--backup-every", "24h"], "No place for --backup-every: give --backup-dir DIR"],
    [["--backup-dir", "b"], "No schedule for --backup-dir: give --backup-every DURATION, such as 24h"],
    [
      ["--backup-every", "10ms", "--backup-dir", "b"],
      'Bad value "10ms" for --backup-every: must be 1s or longer, or 0s',
    ],
    [
      ["--backup-every", "24h", "--data-dir", "/d", "--backup-dir", "/d/backups"],
      'Bad place "/d/backups" for --backup-dir: it is in --data-dir, and would be lost with it',
    ],
    [["--store-address", "no"], 'Bad value "no" for --store-address: must be HOST:PORT, such as 127.0.0.1:8080 or'],
    [
      ["--store-address", "none", "--store-token-file", "t"],
      "No listener for --store-token-file: --store-address is none; give HOST:PORT",
    ],
    [
      ["--store-address", "none", "--store-etcd-endpoints", "http://etcd:2379"],
      "No listener for the followers of this member: with --store-etcd-endpoints give --store-address HOST:PORT",
    ],
    [["--store-address", "0.0.0.0:2379"], 'Refusing to listen on "0.0.0.0:2379"'],
    [
      ["--store-etcd-endpoints", "http://etcd:2379", "--store-address", "127.0.0.1:0"],
      "No URL for the other members: the port of --store-address is chosen later; give --store-advertise-url, or",
    ],
  ])("%j is refused with what to do", (args, message) => {
    const problems = problemsOf(() => read(args));
    expect(problems).toHaveLength(1);
    expect(problems[0]).toContain(message);
  });

  it("tell every problem at once", () => {
    const problems = problemsOf(() =>
      readServeConfig(["--log-level", "x", "--wrong"], { DAVIT_OPS_ADDRESS: "y" }, nothing),
    );
    expect(problems).toEqual([
      expect.stringContaining("--wrong"),
      expect.stringContaining("DAVIT_OPS_ADDRESS"),
      expect.stringContaining("--log-level"),
      "No source of objects: give --manifests DIR, or --kubernetes",
    ]);
  });

  it.each([
    { name: "of a file", args: ["--signing-key", "k", "--signing-passphrase-file", "p"], variables: {} },
    { name: "of a variable", args: ["--signing-key", "k"], variables: { DAVIT_SIGNING_PASSPHRASE: "words" } },
    { name: "of an empty variable", args: ["--signing-key", "k"], variables: { DAVIT_SIGNING_PASSPHRASE: "" } },
  ])("take the signing passphrase $name", ({ args, variables }) => {
    const config = read(args, variables);
    expect([config.signingPassphraseFile, config.signingPassphrase]).toEqual([
      args.includes("p") ? "p" : undefined,
      variables.DAVIT_SIGNING_PASSPHRASE === "words" ? "words" : undefined,
    ]);
  });

  it.each([
    {
      name: "two signing passphrases",
      args: ["--signing-key", "k", "--signing-passphrase-file", "p"],
      variables: { DAVIT_SIGNING_PASSPHRASE: "words" },
      problem: "Two passphrases: give --signing-passphrase-file or DAVIT_SIGNING_PASSPHRASE, not both",
    },
    {
      name: "two GRUB signing passphrases",
      args: ["--grub-signing-key", "k", "--grub-signing-passphrase-file", "p"],
      variables: { DAVIT_GRUB_SIGNING_PASSPHRASE: "words" },
      problem: "Two passphrases: give --grub-signing-passphrase-file or DAVIT_GRUB_SIGNING_PASSPHRASE, not both",
    },
    {
      name: "a GRUB signing passphrase without its key",
      args: ["--signing-key", "k", "--grub-signing-passphrase-file", "p"],
      variables: {},
      problem: "No key for the GRUB signing passphrase: give --grub-signing-key",
    },
    {
      name: "a signing passphrase without a key",
      args: [],
      variables: { DAVIT_SIGNING_PASSPHRASE: "words" },
      problem: "No key for the signing passphrase: give --signing-key",
    },
  ])("refuse $name, and quote nothing", ({ args, variables, problem }) => {
    expect(problemsOf(() => read(args, variables))).toEqual([problem]);
    const boot = ["--store", "http://127.0.0.1:2379", ...args];
    expect(problemsOf(() => readBootConfig(boot, variables, everything))).toEqual([problem]);
  });

  it("name a manifests directory that does not exist", () => {
    expect(problemsOf(() => read([], {}, nothing))).toEqual([
      'No directory "objects": --manifests needs one that exists',
    ]);
  });

  describe("let the store off loopback", () => {
    const off = ["--store-address", "0.0.0.0:2379"];
    const pair = ["--store-cert-file", "c", "--store-key-file", "k"];
    const token = ["--store-token-file", "t"];

    it.each([
      { name: "when told so", args: ["--store-insecure"] },
      { name: "with TLS and tokens", args: [...pair, ...token] },
      { name: "with TLS and client certificates", args: [...pair, "--store-client-ca-file", "ca"] },
    ])("$name", ({ args }) => {
      expect(read([...off, ...args]).storeAddress).toMatchObject({ host: "0.0.0.0" });
    });

    it.each([
      { name: "without either", args: [], lacks: ["TLS (--store-cert", "authentication (--store-token"] },
      { name: "with tokens alone", args: token, lacks: ["TLS (--store-cert"] },
      { name: "with TLS alone", args: pair, lacks: ["authentication (--store-token"] },
    ])("but not $name", ({ args, lacks }) => {
      const problems = problemsOf(() => read([...off, ...args]));
      expect(problems).toHaveLength(1);
      for (const each of ["TLS (--store-cert", "authentication (--store-token"]) {
        expect(problems[0]?.includes(each)).toBe(lacks.includes(each));
      }
    });
  });

  it("take a certificate only with its key, and client authorities only with both", () => {
    expect(problemsOf(() => read(["--store-key-file", "k"]))).toEqual([
      "Missing --store-cert-file: --store-key-file is of no use without it",
    ]);
    expect(problemsOf(() => read(["--store-client-ca-file", "ca"]))).toEqual([
      "No TLS for --store-client-ca-file: give --store-cert-file and --store-key-file",
    ]);
  });

  it("name every file that does not exist", () => {
    const args = ["--store-cert-file", "c", "--store-key-file", "k", "--store-token-file", "t"];
    expect(problemsOf(() => read(args, {}, { ...everything, isFile: () => false }))).toEqual([
      'No file "c": --store-cert-file needs one that exists',
      'No file "k": --store-key-file needs one that exists',
      'No file "t": --store-token-file needs one that exists',
    ]);
  });

  it("are frozen", () => {
    expect(Object.isFrozen(read([]))).toBe(true);
  });
});

it.each([serveOptions, bootOptions])("The rules of an option name others of its table", (table: OptionTable) => {
  const named = Object.values(table).flatMap(({ needs = [], excludes }) => [...needs, ...(excludes ? [excludes] : [])]);
  expect(Object.keys(table)).toEqual(expect.arrayContaining(named.map(({ name }) => name)));
});

describe("the options of davit boot", () => {
  const readBoot = (args: readonly string[], paths = everything) => readBootConfig(args, {}, paths);

  it("name the store, and have the defaults of the boot service", () => {
    const { store, ...config } = readBoot(["--store", "https://store.example:2379, http://[::1]:2379"]);
    expect(store.map(({ href }) => href)).toEqual(["https://store.example:2379/", "http://[::1]:2379/"]);
    expect(config).toMatchObject({
      bootAddress: { host: "::", port: 8080 },
      limits: { sourceGraceMs: 10_000 },
      logLevel: "info",
    });
  });

  it.each([
    [[], "No store to follow: give --store URL"],
    [["--store", "store:2379"], "must be http://HOST:PORT or https://HOST:PORT, without path or password"],
    [["--store", "https://a:b@store"], "without path or password"],
    [["--store", "https://store/v2"], "without path or password"],
    [["--store", "http://s", "--store-ca-file", "ca"], 'No TLS with "http://s"'],
    [["--store", "http://s", "--store-token-file", "t"], 'No TLS with "http://s": a token needs a URL that begins'],
    [["--store", "http://192.0.2.1", "--data-dir", "d"], 'Not on this computer: "http://192.0.2.1"'],
    // Its door takes no local token, and whoever has that name would get it.
    [["--store", "https://s", "--data-dir", "d"], 'Not on this computer: "https://s": --data-dir needs a loopback'],
    [
      ["--store", "http://127.0.0.1:1,http://127.0.0.1:2", "--data-dir", "d"],
      "One local token for several stores: with --data-dir give one URL in --store; else give --store-token-file",
    ],
    [["--store", "https://s", "--data-dir", "d", "--store-token-file", "t"], "Two tokens for the store: give"],
    [["--store", "https://s", "--store-cert-file", "c"], "Missing --store-key-file"],
    [["--store", "http://s", "--manifests=objects"], 'Unknown option "--manifests"'],
  ])("%j is refused with what to do", (args, message) => {
    const problems = problemsOf(() => readBoot(args));
    expect(problems).toHaveLength(1);
    expect(problems[0]).toContain(message);
  });

  it.each(["http://127.0.0.1:2379", "http://[::1]:2379", "http://localhost"])("let a token go to %s", (store) => {
    expect(readBoot(["--store", store, "--data-dir", "d"]).dataDir).toBe("d");
    expect(readBoot(["--store", store, "--store-token-file", "t"]).storeTokenFile).toBe("t");
  });

  it("take a data directory from the flag alone: the variable is that of a davit serve", () => {
    const config = readBootConfig(["--store", "https://s"], { DAVIT_DATA_DIR: "/var/lib/davit" }, nothing);
    expect(config.dataDir).toBeUndefined();
  });

  it("name a data directory that has no local token", () => {
    const paths = { ...everything, isFile: () => false };
    expect(problemsOf(() => readBoot(["--store", "http://127.0.0.1", "--data-dir", "d"], paths))).toEqual([
      'No local token in "d": start davit serve with it first, of this version or later',
    ]);
  });

  it("never tell a password that stood in the URL's place", () => {
    expect(problemsOf(() => readBoot(["--store", "https://me:secretword@store"])).join()).not.toContain("secretword");
  });

  it("name every file that does not exist, with every other problem", () => {
    expect(problemsOf(() => readBoot(["--store-token-file", "t", "--assets-dir", "a"], nothing))).toEqual([
      "No store to follow: give --store URL",
      'No file "t": --store-token-file needs one that exists',
      'No directory "a": --assets-dir needs one that exists',
    ]);
  });

  it("are told by the help", () => {
    expect(helpOf(bootHelp)).toContain("  --store URL,URL\n");
  });
});

describe("the source of objects", () => {
  const inPod = { KUBERNETES_SERVICE_HOST: "10.0.0.1" };

  it.each([
    { what: "asked for", args: ["--kubernetes"], environment: {}, kubernetes: true },
    { what: "in a pod", args: [], environment: inPod, kubernetes: true },
    { what: "in a pod with manifests", args: ["--manifests", "objects"], environment: inPod, kubernetes: false },
    { what: "elsewhere", args: ["--manifests", "objects"], environment: {}, kubernetes: false },
  ])("is a cluster: $kubernetes, $what", ({ args, environment, kubernetes }) => {
    expect(readServeConfig(args, environment, everything).kubernetes).toBe(kubernetes);
  });

  it("is one, several or all namespaces", () => {
    const several = ["--kubernetes", "--namespace", "a", "--namespace", "b"];
    expect(readServeConfig(several, {}, everything).namespaces).toEqual(["a", "b"]);
    expect(readServeConfig(["--kubernetes"], { DAVIT_NAMESPACE: "a,b" }, everything).namespaces).toEqual(["a", "b"]);
    expect(readServeConfig(["--kubernetes", "--all-namespaces"], {}, everything)).toMatchObject({
      allNamespaces: true,
      namespaces: [],
    });
  });

  it.each([
    { args: [], problem: "No source of objects: give --manifests DIR, or --kubernetes" },
    {
      args: ["--kubernetes", "--manifests", "objects"],
      problem: "Two sources of objects: give --manifests or --kubernetes, not both",
    },
    {
      args: ["--kubernetes", "--namespace", "a", "--all-namespaces"],
      problem: "Too many namespaces: give --namespace or --all-namespaces, not both",
    },
    {
      args: ["--kubernetes", "--namespace", "A"],
      problem: 'Bad value "A" for --namespace: must be a namespace: 1 to 63 lower-case letters, digits and hyphens',
    },
    {
      args: ["--manifests", "objects", "--store-allow-service-account", "a/b"],
      problem: "No cluster for --store-allow-service-account: give --kubernetes",
    },
    {
      args: ["--manifests", "objects", "--store-read-service-account", "a/b"],
      problem: "No cluster for --store-read-service-account: give --kubernetes",
    },
    {
      args: ["--kubernetes", "--store-allow-service-account", "a"],
      problem: 'Bad value "a" for --store-allow-service-account: must be NAMESPACE/NAME of a ServiceAccount',
    },
    {
      args: ["--kubernetes", "--store-ca-configmap", "x"],
      problem: "No own certificate for --store-ca-configmap: give --store-own-certificate",
    },
    {
      args: ["--kubernetes", "--store-own-certificate", "--store-allowed-host", "a:2379"],
      problem: 'Bad value "a:2379" for --store-allowed-host: must be a DNS name or an IP address, without a port',
    },
    {
      args: ["--kubernetes", "--store-own-certificate", "--store-cert-file", "c", "--store-key-file", "k"],
      problem: "Two certificates of the store: give --store-own-certificate or --store-cert-file, not both",
    },
    { args: ["--manifests", "objects", "--context", "x"], problem: "No cluster for --context: give --kubernetes" },
    { args: ["--manifests", "objects", "--namespace", "x"], problem: "No cluster for --namespace: give --kubernetes" },
  ])("$args is refused", ({ args, problem }) => {
    expect(problemsOf(() => readServeConfig(args, {}, everything))).toEqual([problem]);
  });

  it("may vouch for clients of the store, which is then guarded off loopback", () => {
    const trust = ["--store-own-certificate", "--store-allow-service-account", "davit/davit-boot"];
    const config = readServeConfig(["--kubernetes", "--store-address", "0.0.0.0:2379", ...trust], {}, everything);
    expect(config).toMatchObject({ storeServiceAccounts: ["davit/davit-boot"], storeTokenAudience: "davit" });
  });

  it("may vouch for clients that only read, which guards the store just as well", () => {
    const trust = ["--store-own-certificate", "--store-read-service-account", "davit/davit-boot"];
    const config = readServeConfig(["--kubernetes", "--store-address", "0.0.0.0:2379", ...trust], {}, everything);
    expect(config).toMatchObject({ storeServiceAccounts: [], storeReadingAccounts: ["davit/davit-boot"] });
  });

  it("a kubeconfig has to exist", () => {
    const args = ["--kubernetes", "--kubeconfig", "none"];
    expect(problemsOf(() => readServeConfig(args, {}, nothing))).toEqual([
      'No file "none": --kubeconfig needs one that exists',
    ]);
  });
});
