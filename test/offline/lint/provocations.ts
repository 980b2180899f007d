/** Inputs for findings that the directory in test/golden/lint does not have, one for each code. */

import { execFile } from "node:child_process";
import { mkdtemp, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type { FindingCode } from "../../../src/model/objects/findings.ts";
import { groupText, profileText, stream } from "../../sources/directory/manifests.ts";

export interface Provocation {
  readonly code: FindingCode;
  readonly what: string;
  readonly input?: string;
  /** Makes a directory to be linted. */
  readonly directory?: () => Promise<string>;
  /** Of the command line. */
  readonly words?: readonly string[];
}

async function directoryOf(fill: (path: string) => Promise<void>): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), "davit-lint-"));
  await fill(path);
  return path;
}

const group = groupText("g", "  selector: {matchLabels: {role: g}}");

const cards = '["52:54:00:00:02:0a", "52:54:00:00:02:0b"]';
const listOfMacs = groupText("g", `  selector: {matchExpressions: [{key: mac, operator: In, values: ${cards}}]}`);

function inline(text: string, part = "generic"): string {
  return stream(profileText("web", `  ${part}: {inline: ${JSON.stringify(text)}}`), group);
}

function inNamespace(text: string, namespace: string): string {
  return text.replace("metadata: {", `metadata: {namespace: ${namespace}, `);
}

const mode = "ignition: {version: 3.4.0}\nstorage: {files: [{path: /a, mode: 0644}]}";

const secretRef = stream(profileText("web", "  generic: {templateFrom: {secretKeyRef: {name: s, key: k}}}"), group);

function withArgument(value: string): string {
  return stream(profileText("web", '  boot: {kernel: k, args: ["{{a}}"]}'), `${group}  metadata: {a: ${value}}\n`);
}

function withKernel(value: string): string {
  return stream(profileText("web", '  boot: {kernel: "/{{a}}"}'), `${group}  metadata: {a: ${value}}\n`);
}

function installer(kernel: string, config: string): string {
  const spec = `effect: Install\n  install: {then: exit, timeout: 1h}\n  boot: {kernel: "${kernel}"}`;
  return profileText("web", `  ${spec}\n  generic: {inline: "${config}"}`);
}

function machine(name: string): string {
  const head = `apiVersion: davit.dev/v1alpha1\nkind: Machine\nmetadata: {name: ${name}}\n`;
  return `${head}spec:\n  identity: {macs: ["52:54:00:a1:9c:ae"]}\n`;
}

function list(item: string): string {
  return `apiVersion: v1\nkind: List\nitems:\n  - ${item}\n`;
}

/** Nine of nine of nine. */
function multiplied(): string {
  const levels = [..."abcdefghi"].map((name, at, all) => {
    const below = at === 0 ? "x" : `*${all[at - 1]}`;
    return `${name}: &${name} [${Array.from({ length: 9 }, () => below).join(", ")}]`;
  });
  return `${levels.join("\n")}\n`;
}

export const provocations: readonly Provocation[] = [
  {
    code: "unmarked-installer",
    what: "an installer's argument in a Profile without effect",
    input: stream(profileText("web", "  boot: {kernel: k, args: [autoinstall]}"), group),
  },
  {
    code: "unmarked-installer",
    what: "an installer's argument that a Group adds",
    input: stream(profileText("web", "  boot: {kernel: k}"), `${group}  args: [autoinstall]\n`),
  },
  {
    code: "install-for-all",
    what: "an installer for all machines",
    input: stream(profileText("web", `  effect: Install\n  boot: {kernel: k}`), groupText("g", "  matchAll: true")),
  },
  {
    code: "install-for-all",
    what: "an installer for nearly all machines",
    input: stream(
      profileText("web", `  effect: Install\n  boot: {kernel: k}`),
      groupText("g", "  selector: {matchExpressions: [{key: mac, operator: Exists}]}"),
    ),
  },
  {
    code: "unreported-install",
    what: "an installer that reports nothing",
    input: stream(installer("k", "no report"), group),
  },
  {
    code: "foreign-install-asset",
    what: "an installer's kernel from elsewhere",
    input: stream(installer("http://192.0.2.7/k", "{{davit.report}}"), group),
  },
  {
    code: "unsent-label",
    what: "a selector by arch",
    input: stream(profileText("web"), group.replace(/matchLabels: \{[^}]*\}/, "matchLabels: {arch: arm64}")),
  },
  {
    code: "foreign-token",
    what: "a token that only iPXE knows",
    input: stream(profileText("web", `  boot: {kernel: "/assets/k", args: ["s=\${next-server}"]}`), group),
  },
  {
    code: "foreign-location",
    what: "a kernel by HTTPS",
    input: stream(profileText("web", "  boot: {kernel: 'https://192.0.2.7/k'}"), group),
  },
  {
    code: "foreign-location",
    what: "a template that yields a location of NFS",
    input: withKernel("'/192.0.2.7/k'").replace("/{{a}}", "{{b}}:{{a}}").replace("{a:", "{b: nfs, a:"),
  },
  {
    code: "foreign-location",
    what: "an initrd of which iPXE makes a file",
    input: stream(profileText("web", "  boot: {kernel: /k, initrd: ['/f /etc/f mode=755']}"), group),
  },
  {
    code: "unmarked-installer",
    what: "an installer's argument in the text of the kernel",
    input: stream(profileText("web", "  boot: {kernel: '/k autoinstall quiet'}"), group),
  },
  {
    code: "emptied-token",
    what: "an argument whose tokens a substitution has taken",
    input: stream(profileText("web", '  boot: {kernel: /k, args: ["c={{davit.url}}/ignition?uuid=&mac="]}'), group),
  },
  {
    code: "emptied-token",
    what: "such an argument of a Group",
    input: stream(profileText("web", "  boot: {kernel: /k}"), `${group}  args: ["c=http://a/ignition?mac= quiet"]\n`),
  },
  {
    code: "emptied-token",
    what: "such a script",
    input: stream(profileText("web", '  boot: {script: "#!ipxe\\nchain http://a/ipxe?serial=&os=x\\n"}'), group),
  },
  {
    code: "emptied-token",
    what: "such a URL in a config",
    input: inline("curl 'http://a/generic?uuid=&mac='"),
  },
  {
    code: "unchecked-digest",
    what: "a digest of a kernel from elsewhere",
    input: stream(profileText("web", `  boot: {kernel: "http://192.0.2.7/k?sha256=${"0".repeat(64)}"}`), group),
  },
  {
    code: "wrong-asset",
    what: "a kernel that is another file",
    input: stream(profileText("web", `  boot: {kernel: "/assets/12/vmlinuz?sha256=${"0".repeat(64)}"}`), group),
    words: ["--assets-dir", join(import.meta.dirname, "../../golden/lint/assets")],
  },
  {
    code: "asleep-grant",
    what: "a grant without a ledger",
    input: stream(installer("k", "{{davit.report}}"), `${group}  install: {generation: 1}\n`),
  },
  {
    code: "separate-cards",
    what: "a list of MAC addresses without a Machine",
    input: stream(installer("k", "{{davit.report}}"), listOfMacs),
  },
  {
    code: "other-ledger",
    what: "grants of two ledgers",
    input: stream(
      installer("k", "{{davit.report}}"),
      `${group}  install: {generation: 1, ledger: "00000000", until: "2099-01-01T00:00:00Z"}\n`,
      `${groupText("h")}  install: {generation: 1, ledger: "11111111", until: "2098-01-01T00:00:00Z"}\n`,
    ),
  },
  {
    code: "useless-grant",
    what: "a grant of a Group whose Profile has no install",
    input: stream(profileText("web"), `${group}  install: {generation: 1}\n`),
  },
  {
    code: "duplicate-identity",
    what: "a mac at two Machines",
    input: stream(machine("a"), machine("b")),
  },
  {
    code: "unselected-label",
    what: "a label of a Machine with another value than Groups ask for",
    input: stream(profileText("web"), group, `${machine("a")}  labels: {role: h}\n`),
  },
  {
    code: "reported-label",
    what: "a selector that asks for a label which machines report",
    input: stream(`${installer("k", "{{davit.report}}")}  reports: {labels: {role: [g]}}\n`, group),
  },
  {
    code: "invalid-url",
    what: "a URL without a host",
    input: stream(profileText("web", "  boot: {kernel: 'http:///vmlinuz'}"), group),
  },
  {
    code: "broad-selector",
    what: "a selector that asks for a label alone",
    input: groupText("g", "  selector: {matchExpressions: [{key: mac, operator: Exists}]}"),
  },
  {
    code: "contradictory-selector",
    what: "a label that an expression rules out",
    input: groupText(
      "g",
      "  selector: {matchLabels: {role: a}, matchExpressions: [{key: role, operator: NotIn, values: [a]}]}",
    ),
  },
  { code: "empty-directory", what: "an empty directory", directory: () => directoryOf(async () => undefined) },
  {
    code: "broken-link",
    what: "a link to nothing",
    directory: () => directoryOf((path) => symlink("nothing", join(path, "a.yaml"))),
  },
  {
    code: "unreadable-file",
    what: "a circle of links",
    directory: () => directoryOf((path) => symlink("a.yaml", join(path, "a.yaml"))),
  },
  {
    code: "unreadable-file",
    what: "a named pipe",
    directory: () => directoryOf(async (path) => void (await promisify(execFile)("mkfifo", [join(path, "a.yaml")]))),
  },
  {
    code: "unreadable-file",
    what: "a link to a device",
    directory: () => directoryOf((path) => symlink("/dev/zero", join(path, "a.yaml"))),
  },
  {
    code: "too-large",
    what: "a file of more than 8 MiB",
    directory: () => directoryOf((path) => writeFile(join(path, "a.yaml"), `# ${"x".repeat(8 * 2 ** 20)}`)),
  },
  {
    code: "unfinished-file",
    what: "a file without its final newline",
    directory: () => directoryOf((path) => writeFile(join(path, "a.yaml"), inline("text").trimEnd())),
  },
  { code: "too-large", what: "a million lines in one document", input: "- a\n".repeat(1_000_000) },
  { code: "too-deep", what: "ten thousand brackets", input: "[".repeat(10_000) },
  { code: "too-deep", what: "a template of 101 blocks in each other", input: inline("{{#if a}}".repeat(101)) },
  { code: "invalid-alias", what: "an alias of what it stands in", input: "a: &a [*a]" },
  { code: "invalid-alias", what: "aliases that multiply", input: multiplied() },
  {
    code: "duplicate-entry",
    what: "two parts of one name",
    input: profileText("web", "  genericParts: [{name: a, inline: x}, {name: a, inline: y}]"),
  },
  {
    code: "oversized-object",
    what: "a metadata text that aliases repeat",
    input: `${group}  metadata: {a: &a ${"x".repeat(100_000)}, b: [${"*a, ".repeat(20)}]}\n`,
  },
  { code: "nested-list", what: "a List in a List", input: list("{apiVersion: v1, kind: List, items: []}") },
  {
    code: "too-long",
    what: "33 initrds",
    input: profileText("web", `  boot: {kernel: k, initrd: [${"i,".repeat(33)}]}`),
  },
  {
    code: "not-permitted",
    what: "a priority outside the admin namespace",
    input: stream(profileText("web"), `${group}  priority: 1\n`),
    words: ["--admin-namespace", "infra"],
  },
  {
    code: "not-permitted",
    what: "an asset outside of its namespace's own names",
    input: profileText(
      "web",
      `  boot: {local: exit}\n  assets: [{name: a, url: "http://a/b", sha256: "${"0f".repeat(32)}"}]`,
    ),
    words: ["--admin-namespace", "infra"],
  },
  {
    code: "broken-rule",
    what: "a digest of an asset with a typo",
    input: profileText(
      "web",
      `  boot: {local: exit}\n  assets: [{name: a, url: "http://a/b", sha256: "${"0f".repeat(31)}"}]`,
    ),
  },
  {
    code: "broken-rule",
    what: "an asset that is a directory",
    input: profileText(
      "web",
      `  boot: {local: exit}\n  assets: [{name: a, url: "http://a/b/", sha256: "${"0f".repeat(32)}"}]`,
    ),
  },
  {
    code: "unreachable-group",
    what: "a copy under another name",
    input: stream(profileText("web"), group, groupText("copy", "  selector: {matchLabels: {role: g}}")),
  },
  {
    code: "selector-tie",
    what: "one selector with two outcomes",
    input: stream(
      profileText("web"),
      group,
      groupText("other", "  selector: {matchLabels: {role: g}}\n  metadata: {a: b}"),
    ),
  },
  {
    code: "selector-tie",
    what: "one selector in two namespaces",
    input: stream(inNamespace(group, "a"), inNamespace(group, "b")),
    words: ["--admin-namespace", "infra"],
  },
  { code: "unknown-name", what: "a helper that does not exist", input: inline("{{shell 'id'}}") },
  {
    code: "unknown-name",
    what: "one in a branch that nobody takes",
    input: inline("{{#if absent}}{{shell 1}}{{/if}}"),
  },
  { code: "template-too-large", what: "10,001 expressions", input: inline("{{a}}".repeat(10_001)) },
  {
    code: "template-too-costly",
    what: "rounds of rounds",
    input: stream(
      profileText("web", "  generic: {inline: '{{#each l}}{{#each @root.l}}{{/each}}{{/each}}'}"),
      `${group}  metadata: {l: [${"1,".repeat(400)}]}\n`,
    ),
  },
  {
    code: "invalid-metadata",
    what: "metadata of 65 levels",
    input: stream(profileText("web"), `${group}  metadata: {a: ${"[".repeat(66)}1${"]".repeat(66)}}\n`),
  },
  { code: "invalid-ignition", what: "JSON without a version", input: inline("{}", "ignition") },
  { code: "unquoted-scalar", what: "a file mode in an Ignition template", input: inline(mode, "ignition") },
  {
    code: "result-too-large",
    what: "a YAML result of more than 1 MiB",
    input: stream(
      profileText("web", "  ignition: {inline: 'a: {{#each l}}{{@root.t}}{{/each}}'}"),
      `${group}  metadata: {t: ${"x".repeat(10_000)}, l: [${"1,".repeat(110)}]}\n`,
    ),
  },
  { code: "control-character", what: "a value in an argument", input: withArgument('"a\\nb"') },
  { code: "unsafe-value", what: "a blank in a kernel's location", input: withKernel("'a b'") },
  {
    code: "invalid-script",
    what: "a script whose first line goes on",
    input: stream(profileText("web", '  boot: {script: "#!ipxe\\n{{~a}}"}'), `${group}  metadata: {a: exit}\n`),
  },
  {
    code: "unused-arguments",
    what: "arguments beside a boot from disk",
    input: stream(profileText("web", "  boot: {local: exit}"), `${group}  args: [quiet]\n`),
  },
  { code: "invalid-template", what: "an argument of a Group", input: `${group}  args: [quiet, "{{a"]\n` },
  { code: "not-in-input", what: "a Secret where none came in", input: secretRef },
  { code: "unused-profile", what: "a Profile alone", input: profileText("web") },
];

/** Lines without their ends. */
export function linesOf(text: string): readonly string[] {
  return text.split("\n").filter((line) => line !== "");
}
