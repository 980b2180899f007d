import { describe, expect, it } from "vitest";
import { authority, ConfigError, isLoopback, readServeConfig, serveHelp } from "../src/config.ts";

const everywhere = () => true;

function read(args: readonly string[], environment: Record<string, string> = {}, isDirectory = everywhere) {
  return readServeConfig(["--manifests", "objects", ...args], environment, isDirectory);
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
      sourceGraceMs: 10_000,
      storeMaxValueBytes: 1_048_576,
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
    expect(readServeConfig([], { DAVIT_MANIFESTS: "a,b" }, everywhere).manifests).toEqual(["a", "b"]);
  });

  it("take an empty variable as not given", () => {
    expect(read([], { DAVIT_DATA_DIR: "" }).dataDir).toBe("./data");
  });

  it.each([
    ["--source-grace", "500ms", { sourceGraceMs: 500 }],
    ["--source-grace", "2m", { sourceGraceMs: 120_000 }],
    ["--boot-address", "0.0.0.0:80", { bootAddress: { host: "0.0.0.0", port: 80 } }],
    ["--boot-address", "[::1]:0", { bootAddress: { host: "::1", port: 0 } }],
    ["--advertise-address", "boot.example:8080", { advertiseAddress: { host: "boot.example", port: 8080 } }],
    ["--log-format", "json", { logFormat: "json" }],
  ])("%s %s is read", (flag, text, expected) => {
    expect(read([flag, text])).toMatchObject(expected);
  });

  it.each([
    [["--boot-address", "8080"], 'Bad value "8080" for --boot-address: must be HOST:PORT, such as'],
    [["--boot-address", "::1:8080"], 'Bad value "::1:8080" for --boot-address'],
    [["--boot-address", "localhost:70000"], 'Bad value "localhost:70000"'],
    [["--source-grace", "10"], 'Bad value "10" for --source-grace: must be a whole number with ms, s, m or h'],
    [["--store-max-value-bytes", "0"], "must be a positive number of bytes"],
    [["--log-level", "loud"], "must be one of debug, info, warn, error, silent"],
    [["--no-such-thing"], 'Unknown option "--no-such-thing": see --help'],
    [["-x"], 'Unknown option "-x": see --help'],
    [["stray"], 'Unexpected argument "stray": options begin with --'],
    [["--data-dir"], "No value for --data-dir: give DIR"],
    [["--data-dir", "a", "--data-dir", "b"], "Option --data-dir is given twice: keep one"],
    [["--store-address", "0.0.0.0:2379"], 'Refusing to listen on "0.0.0.0:2379"'],
  ])("%j is refused with what to do", (args, message) => {
    const problems = problemsOf(() => read(args));
    expect(problems).toHaveLength(1);
    expect(problems[0]).toContain(message);
  });

  it("tell every problem at once", () => {
    const problems = problemsOf(() =>
      readServeConfig(["--log-level", "x", "--wrong"], { DAVIT_OPS_ADDRESS: "y" }, () => false),
    );
    expect(problems).toEqual([
      expect.stringContaining("--wrong"),
      expect.stringContaining("DAVIT_OPS_ADDRESS"),
      expect.stringContaining("--log-level"),
      "No source of objects: give --manifests DIR",
    ]);
  });

  it("name a manifests directory that does not exist", () => {
    expect(problemsOf(() => read([], {}, () => false))).toEqual([
      'No directory "objects": --manifests needs one that exists',
    ]);
  });

  it("let the store off loopback only when told so", () => {
    const config = read(["--store-address", "0.0.0.0:2379", "--store-insecure"]);
    expect(config.storeInsecure).toBe(true);
  });

  it("are frozen", () => {
    expect(Object.isFrozen(read([]))).toBe(true);
  });
});

it("The help names every option with its default", () => {
  const help = serveHelp();
  for (const flag of ["--manifests DIR", "--boot-address HOST:PORT", "--store-insecure", "--log-format json|pretty"]) {
    expect(help).toContain(`  ${flag}\n`);
  }
  expect(help).toContain("(default [::]:8080)");
});

it.each([
  ["127.0.0.1", true],
  ["127.8.0.1", true],
  ["::1", true],
  ["localhost", true],
  ["0.0.0.0", false],
  ["127.example.com", false],
])("`isLoopback` of %s is %s", (host, expected) => {
  expect(isLoopback(host)).toBe(expected);
});

it("`authority` puts IPv6 in brackets", () => {
  expect(authority({ host: "::1", port: 80 })).toBe("[::1]:80");
  expect(authority({ host: "a.example", port: 80 })).toBe("a.example:80");
});
