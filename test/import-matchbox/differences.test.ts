import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { boot, good, profile } from "./small-site.ts";
import { imported, type Tree } from "./trees.ts";

const base64 = (text: string | Buffer) => Buffer.from(text).toString("base64");
const script = `#!/bin/sh\ncurl -o /etc/config "http://mb:8080/ignition?os=x" # ${"long enough ".repeat(20)}\n`;
const hidden = [
  ["base64", base64(script)],
  ["base64 of more than one line", base64(script).replaceAll(/.{60}/g, "$&\n     ")],
  ["gzip in base64", base64(gzipSync(script))],
  ["base64 in gzip in base64", base64(gzipSync(`data:;base64,${base64(script)}`))],
  ["percent escapes", encodeURIComponent(script).replaceAll("'", "%27")],
] as const;

describe("what differs from matchbox is told as a warning", () => {
  it.each<{ name: string; tree: Tree; finding: string }>([
    {
      name: "a name that Kubernetes does not allow",
      tree: { ...good, "groups/Rack_4.json": { profile: "worker", selector: { rack: "4" } } },
      finding: 'groups/Rack_4.json:1:1: warning: is named "rack-4": Kubernetes does not allow "Rack_4"',
    },
    {
      name: "an id that is not the file's name",
      tree: { ...good, "groups/g.json": { id: "other", profile: "worker" } },
      finding: 'groups/g.json:2:3: warning: is named by its file, not by its id "other"',
    },
    {
      name: "a field of an older matchbox",
      tree: { ...good, "groups/g.json": { profile: "worker", requirements: { os: "x" } } },
      finding:
        'groups/g.json:3:3: warning: matchbox reads "requirements" only in versions before 0.3.0: name it selector',
    },
    {
      name: "arguments as an older matchbox had them",
      tree: { ...good, "profiles/worker.json": { ...profile, boot: { ...boot, cmdline: { a: "b" } } } },
      finding:
        'profiles/worker.json:12:5: warning: matchbox reads "cmdline" only in versions before 0.7.0: write them into args',
    },
    ...hidden.map(([name, text]) => ({
      name: `a URL of the kind of matchbox's in ${name}`,
      tree: { ...good, "generic/worker.tmpl": `a: b\n  c: ${text}\n` },
      finding: `generic/worker.tmpl:2:6: warning: an encoded part has the URL "http://mb:8080", which the import does not change: if it is that of matchbox, write davit's URL into it`,
    })),
    {
      name: "two groups for the same machines",
      tree: { ...good, "groups/a.json": { profile: "worker" }, "groups/b.json": { profile: "worker" } },
      finding:
        'groups/b.json:1:1: warning: selects the same machines as "groups/a.json": matchbox takes any of the two, and davit answers 503 unless they boot the same',
    },
    {
      name: "a uuid in upper case",
      tree: {
        ...good,
        "groups/g.json": { profile: "worker", selector: { uuid: "A1B2C3D4-0000-4000-8000-00000000ABCD" } },
      },
      finding:
        "groups/g.json:4:5: warning: davit compares uuid in any letter case, matchbox never matched this with what iPXE sends",
    },
    {
      name: "a label that only another boot script sends",
      tree: { ...good, "groups/g.json": { profile: "worker", selector: { arch: "arm64" } } },
      finding:
        "groups/g.json:4:5: warning: machines send arch only after /chain.ipxe, not after /boot.ipxe: let DHCP name /chain.ipxe",
    },
    {
      name: "metadata that templates cannot see",
      tree: { ...good, "groups/g.json": { profile: "worker", metadata: { davit: 1 } } },
      finding: 'groups/g.json:4:5: warning: the name "davit" is davit\'s own in templates: rename it',
    },
    {
      name: "an absent variable that is tested",
      tree: { ...good, "generic/worker.tmpl": "{{if .install}}x{{end}}" },
      finding:
        'generic/worker.tmpl:1:1: warning: "install" of groups/node.json is absent: davit takes it for false, matchbox answers 404',
    },
    {
      name: "an empty object that is tested",
      tree: {
        ...good,
        "groups/node.json": { profile: "worker", metadata: { net: {} } },
        "generic/worker.tmpl": "{{with .net}}x{{end}}",
      },
      finding:
        'generic/worker.tmpl:1:1: warning: "net" of groups/node.json is an empty object: davit takes it for true, matchbox for false',
    },
    {
      name: "an absent label that is tested",
      tree: { ...good, "generic/worker.tmpl": '{{if eq .request.query.os "x"}}x{{end}}' },
      finding:
        'generic/worker.tmpl:1:1: warning: davit takes an absent "request.query.os" for false, matchbox answers 404',
    },
    {
      name: "a list that is printed",
      tree: { ...good, "groups/node.json": { profile: "worker", metadata: { role: ["a"] } } },
      finding:
        'generic/worker.tmpl:1:6: warning: "role" of groups/node.json is a list: matchbox prints it in brackets, davit with commas',
    },
    {
      name: "a large number that is printed",
      tree: { ...good, "groups/node.json": { profile: "worker", metadata: { role: 1_000_000 } } },
      finding:
        'generic/worker.tmpl:1:6: warning: "role" of groups/node.json is a number that matchbox prints with an exponent, davit as plain decimal',
    },
    {
      name: "an absent variable that is printed by index",
      tree: { ...good, "generic/worker.tmpl": '{{index . "x"}}' },
      finding:
        'generic/worker.tmpl:1:1: warning: "x" of groups/node.json is absent: matchbox prints "<no value>", davit nothing',
    },
    {
      name: "an argument that leads to a matchbox",
      tree: {
        ...good,
        "profiles/worker.json": { ...profile, boot: { ...boot, args: ["a=http://mb:8080/ignition?x"] } },
      },
      finding:
        'profiles/worker.json:9:5: warning: boot.args leads to "http://mb:8080": if that is the matchbox, import with --matchbox-url http://mb:8080 or write {{davit.url}} instead',
    },
    {
      name: "a folder of groups",
      tree: { ...good, "groups/set/a.json": { profile: "worker" } },
      finding: "groups/set:1:1: warning: is a directory: matchbox does not read it, and it is not imported",
    },
    {
      name: "a profile with nothing to serve",
      tree: { ...good, "profiles/x.json": { id: "x", boot: { args: ["a"] } } },
      finding: "profiles/x.json:3:3: warning: has no kernel, davit answers 404 for a script",
    },
  ])("$name", ({ tree, finding }) => {
    const { files, findings } = imported(tree);
    expect(findings).toContain(finding);
    expect(files["groups/node.yaml"]).toBeDefined();
  });
});
