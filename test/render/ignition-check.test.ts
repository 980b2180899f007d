import { execFileSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import type { JsonObject } from "../../src/model/json.ts";
import { checkIgnition } from "../../src/render/config/ignition-check.ts";
import { missing } from "../helpers/requirements.ts";

function config(version: string, rest: JsonObject = {}): JsonObject {
  return { ...rest, ignition: { version } };
}

function storage(members: JsonObject, version = "3.3.0"): JsonObject {
  return config(version, { storage: members });
}

function file(members: JsonObject, version = "3.3.0"): JsonObject {
  return storage({ files: [{ path: "/etc/motd", ...members }] }, version);
}

function unit(members: JsonObject): JsonObject {
  return config("3.3.0", { systemd: { units: [{ name: "a.service", ...members }] } });
}

const whole: JsonObject = {
  ignition: {
    version: "3.3.0",
    config: { merge: [{ source: "http://192.0.2.1/base.ign", compression: "gzip" }] },
    timeouts: { httpTotal: 30 },
    security: { tls: { certificateAuthorities: [{ source: "data:,x" }] } },
    proxy: { httpProxy: "http://192.0.2.1/", noProxy: ["192.0.2.0/24", null] },
  },
  storage: {
    disks: [{ device: "/dev/vda", wipeTable: true, partitions: [{ label: "root", number: 0, resize: true }] }],
    raid: [{ name: "data", level: "raid1", devices: ["/dev/vdb", "/dev/vdc"] }],
    filesystems: [{ device: "/dev/vda1", format: "ext4", path: "/var", mountOptions: ["noatime"] }],
    files: [{ path: "/etc/hostname", mode: 420, contents: { source: "data:,node" }, user: { name: "core" } }],
    directories: [{ path: "/opt", mode: null, group: { id: 0 } }],
    links: [{ path: "/etc/localtime", target: "/usr/share/zoneinfo/UTC", hard: false }],
    luks: [{ name: "data", device: "/dev/md/data", clevis: { tpm2: true } }],
  },
  systemd: { units: [{ name: "a.service", enabled: true, dropins: [{ name: "b.conf", contents: "[Unit]" }] }] },
  passwd: { users: [{ name: "core", uid: 1000, sshAuthorizedKeys: ["ssh-ed25519 AAAA"] }], groups: [{ name: "g" }] },
  kernelArguments: { shouldExist: ["quiet"] },
};

/** Configs with nothing that Ignition refuses; `told` is what davit advises all the same. */
const accepted: readonly { readonly name: string; readonly value: JsonObject; readonly told?: string }[] = [
  ...[
    "data:,50%25",
    "data:,",
    "data:;base64,",
    "data:;base64,aGk=",
    "data:text/plain;charset=utf-8,x",
    'data:text/x-sh;name="a b",x',
    "data:x-own/any;base64,aGk=",
    "data:application/vnd.a+json;a=b;base64,aGkK",
    "data:,a+b?c'",
    "http://a/b c?q=50%",
    "tftp://a/b",
    "",
  ].map((source) => ({ name: `the source "${source}"`, value: file({ contents: { source } }) })),
  { name: "Google's scheme in 3.2", value: file({ contents: { source: "gs://a/b" } }, "3.2.0") },
  { name: "a version alone", value: config("3.3.0") },
  { name: "the oldest version of 3", value: config("3.0.0") },
  { name: "every section", value: whole },
  { name: "nulls in place of values", value: config("3.3.0", { storage: { files: null }, systemd: null }) },
  { name: "a link without target before 3.3", value: storage({ links: [{ path: "/a" }] }, "3.2.0") },
  { name: "a merge without source in 3.0", value: { ignition: { version: "3.0.0", config: { merge: [{}] } } } },
  {
    name: "an experimental version",
    value: config("3.4.0-experimental"),
    told: "ignition.version is experimental: most releases of Ignition refuse it",
  },
  {
    name: "a section of nobody",
    value: config("3.3.0", { secretname: 1 }),
    told: "the config has a field that the specification has not: Ignition passes over it",
  },
  {
    name: "the old spelling of enabled",
    value: unit({ enable: true }),
    told: "systemd.units[0] has a field that the specification has not: Ignition passes over it",
  },
  {
    name: "kernel arguments before 3.3",
    value: config("3.2.0", { kernelArguments: { shouldExist: 5 } }),
    told: "kernelArguments came with 3.3.0: older configs cannot have it",
  },
  {
    name: "a resized partition before 3.2",
    value: storage({ disks: [{ device: "/dev/vda", partitions: [{ number: 1, resize: true }] }] }, "3.1.0"),
    told: "storage.disks[0].partitions[0].resize came with 3.2.0: older configs cannot have it",
  },
  {
    name: "a user without a name",
    value: config("3.3.0", { passwd: { users: [{}] } }),
    told: "passwd.users[0].name is missing",
  },
];

/** Configs that Ignition refuses. */
const refused: readonly { readonly name: string; readonly value: JsonObject; readonly told: string }[] = [
  ...[
    ["a blank in data:", "data:,a b", "is a data: URL with a blank"],
    ["a # in data:", "data:,a#b", "is a data: URL with a blank"],
    ["a brace in data:", "data:,{}", "is a data: URL with a blank"],
    ["a bare % in data:", "data:,50%", "has a % without"],
    ["a bare % in a URL", "http://a/50%zz", "has a % without"],
    ["data: without a comma", "data:abc", "is a data: URL without a comma"],
    ["a media type without a slash", "data:text,abc", "is a data: URL whose media type or parameters are wrong"],
    ["an unknown media type", "data:font/woff2,abc", "is a data: URL whose media type or parameters are wrong"],
    ["a parameter without a value", "data:;charset,abc", "is a data: URL whose media type or parameters are wrong"],
    ["a scheme in capitals", "DATA:,a", "must begin with data: in lower case"],
    ["base64 without its end", "data:;base64,aGk", "is a data: URL whose base64 is wrong"],
    ["base64 of URLs", "data:;base64,a-_=", "is a data: URL whose base64 is wrong"],
    ["escapes in base64", "data:;base64,aGk%3D", "is a data: URL whose base64 is wrong"],
    ["a line break in base64", "data:;base64,aGk=\n", "has a control character"],
    ["a blank in a host", "http://a b/c", "has a blank in its host"],
    ["an unknown scheme", "ftp://a/b", "must begin with data:"],
    ["a path", "/etc/hosts", "must begin with data:"],
  ].map(([name = "", source = "", told]) => ({
    name,
    value: file({ contents: { source } }),
    told: `storage.files[0].contents.source ${told}`,
  })),
  ...[
    ["gs:", "3.1.0", "came with 3.2.0"],
    ["arn:", "3.3.0", "came with 3.4.0"],
  ].map(([scheme = "", old = "", told = ""]) => ({
    name: `${scheme} in ${old}`,
    value: file({ contents: { source: scheme === "gs:" ? "gs://a/b" : "arn:aws:s3:::b/k" } }, old),
    told: `storage.files[0].contents.source has the scheme ${scheme}, which ${told}`,
  })),
  { name: "half a version", value: config("3.3"), told: "ignition.version is no version of the specification" },
  { name: "a patch version", value: config("3.3.1"), told: "ignition.version is no version of the specification" },
  { name: "a version of nothing", value: config(""), told: "ignition.version is no version of the specification" },
  { name: "a number as name", value: unit({ name: 5 }), told: "systemd.units[0].name must be a text" },
  { name: "a text as switch", value: unit({ enabled: "yes" }), told: "systemd.units[0].enabled must be true or false" },
  { name: "a unit without a name", value: unit({ name: null }), told: "systemd.units[0].name is missing" },
  {
    name: "a drop-in without a name",
    value: unit({ dropins: [{}] }),
    told: "systemd.units[0].dropins[0].name is missing",
  },
  { name: "a mode in quotes", value: file({ mode: "0644" }), told: "storage.files[0].mode must be a whole number" },
  { name: "half a mode", value: file({ mode: 420.5 }), told: "storage.files[0].mode must be a whole number" },
  {
    name: "a path from nowhere",
    value: file({ path: "etc" }),
    told: "storage.files[0].path must be a path that begins",
  },
  { name: "an empty path", value: file({ path: "" }), told: "storage.files[0].path is missing" },
  { name: "a null as file", value: storage({ files: [null] }), told: "storage.files[0].path is missing" },
  {
    name: "a directory without a path",
    value: storage({ directories: [{}] }),
    told: "storage.directories[0].path is missing",
  },
  {
    name: "a link without target",
    value: storage({ links: [{ path: "/a" }] }),
    told: "storage.links[0].target is missing",
  },
  { name: "a disk without device", value: storage({ disks: [{}] }), told: "storage.disks[0].device is missing" },
  {
    name: "a file system without device",
    value: storage({ filesystems: [{}] }),
    told: "storage.filesystems[0].device is missing",
  },
  {
    name: "a RAID without level",
    value: storage({ raid: [{ name: "a", devices: ["/dev/a"] }] }),
    told: "storage.raid[0].level is missing",
  },
  {
    name: "a volume without device",
    value: storage({ luks: [{ name: "a" }] }),
    told: "storage.luks[0].device is missing",
  },
  { name: "files that are no list", value: storage({ files: { a: 1 } }), told: "storage.files must be a list" },
  { name: "a section that is a list", value: config("3.3.0", { storage: [] }), told: "storage must be an object" },
  { name: "a section that is a text", value: config("3.3.0", { systemd: "a" }), told: "systemd must be an object" },
  {
    name: "an argument that is no list",
    value: config("3.3.0", { kernelArguments: { shouldExist: "quiet" } }),
    told: "kernelArguments.shouldExist must be a list",
  },
  {
    name: "a merge without source",
    value: { ignition: { version: "3.3.0", config: { merge: [{}] } } },
    told: "ignition.config.merge[0].source is missing",
  },
  {
    name: "a header without name",
    value: file({ contents: { source: "http://192.0.2.1/", httpHeaders: [{ value: "x" }] } }),
    told: "storage.files[0].contents.httpHeaders[0].name is missing",
  },
];

describe("checkIgnition", () => {
  it.each(accepted)("lets pass $name", ({ value, told }) => {
    expect(checkIgnition(value).map(({ text }) => text)).toEqual(told === undefined ? [] : [told]);
    expect(checkIgnition(value).some(({ isRefused }) => isRefused)).toBe(false);
  });

  it.each(refused)("tells that Ignition refuses $name", ({ value, told }) => {
    const findings = checkIgnition(value).filter(({ isRefused }) => isRefused);
    expect(findings.map(({ text }) => text)).toEqual([expect.stringContaining(told)]);
  });

  it.each(["2.0.0", "2.4.0", "3.4.0", "3.5.0", "3.6.0"])("knows version %s", (version) => {
    expect(checkIgnition(config(version))).toEqual([]);
  });

  it.each(["2.5.0", "3.7.0", "3.10.0"])("advises on version %s, which may be newer than davit", (version) => {
    const [finding] = checkIgnition(config(version));
    expect(finding).toMatchObject({ isRefused: false, text: expect.stringContaining("3.0.0 to 3.6.0") });
  });

  it("looks at no field of version 2", () => {
    expect(checkIgnition(config("2.3.0", { networkd: { units: 5 }, storage: 7 }))).toEqual([]);
  });

  // ignition-validate of Debian 12 knows no version that has ARNs.
  it.each([
    ["arn:aws:s3:::bucket/key", []],
    ["arn:aws:s3:::bucket/key?versionId=a", []],
    ["arn:aws:s3:us-west-1:1:accesspoint/a/object/k", []],
    ["arn:aws:ec2:::a/b", ["storage.files[0].contents.source is no ARN of an object in S3"]],
    ["arn:aws:s3:::bucket", ["storage.files[0].contents.source is no ARN of an object in S3"]],
  ])("knows ARNs: %s", (source, told) => {
    expect(checkIgnition(file({ contents: { source } }, "3.4.0")).map(({ text }) => text)).toEqual(told);
  });

  it("tells the first five findings, whatever there is", () => {
    const files = Array.from({ length: 100_000 }, () => 5);
    expect(checkIgnition(storage({ files }))).toHaveLength(5);
  });

  it("never tells a name or a value that is the user's", () => {
    const secret = "hunter2";
    const value = { ...file({ [secret]: secret, mode: secret, user: secret }), [secret]: { [secret]: secret } };
    const findings = checkIgnition(value);
    expect(findings).toHaveLength(4);
    expect(findings.map(({ text }) => text).join()).not.toContain(secret);
  });
});

describe.skipIf(missing("ignition-validate"))("ignition-validate", () => {
  function validates(value: JsonObject): boolean {
    try {
      execFileSync("ignition-validate", ["-"], { input: JSON.stringify(value), stdio: "pipe" });
      return true;
    } catch {
      return false;
    }
  }

  it.each(accepted)("lets pass $name, too", ({ value }) => {
    expect(validates(value)).toBe(true);
  });

  it.each(refused)("refuses $name, too", ({ value }) => {
    expect(validates(value)).toBe(false);
  });
});
