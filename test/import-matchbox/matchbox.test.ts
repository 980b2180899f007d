import { describe, expect, it } from "vitest";
import { boot, good, profile } from "./small-site.ts";
import { imported, type Tree } from "./trees.ts";

function numbered(count: number): Record<string, string> {
  return Object.fromEntries(Array.from({ length: count }, (_, at) => [`a${at}`, "1"]));
}

describe("an import", () => {
  it("makes an object of each file, and nothing to tell of a good directory", () => {
    const { files, findings } = imported(good);
    expect(findings).toEqual([]);
    expect(files).toEqual({
      "groups/node.yaml": `# From "groups/node.json"
apiVersion: davit.dev/v1alpha1
kind: Group
metadata:
  name: node
spec:
  profileRef:
    name: worker
  selector:
    matchLabels:
      mac: 52:54:00:a1:9c:ae
  metadata:
    role: db
`,
      "profiles/worker.yaml": `# From "profiles/worker.json", "generic/worker.tmpl"
apiVersion: davit.dev/v1alpha1
kind: Profile
metadata:
  name: worker
spec:
  displayName: Worker
  boot:
    kernel: /assets/vmlinuz
    initrd:
      - /assets/initrd
    args:
      - console=ttyS0
  generic:
    inline: |
      role={{role}}
`,
    });
  });

  it("yields the same bytes whatever the order of the files", () => {
    const reversed = Object.fromEntries(Object.entries(good).toReversed());
    expect(imported(reversed)).toEqual(imported(good));
  });

  it("makes matchAll of an empty or absent selector", () => {
    for (const selector of [{}, null, undefined]) {
      const { files } = imported({ ...good, "groups/node.json": { profile: "worker", selector } });
      expect(files["groups/node.yaml"]).toContain("matchAll: true");
    }
  });

  it("takes field names in any letter case, as Go does", () => {
    const { files, findings } = imported({
      ...good,
      "groups/node.json": { ID: "node", Profile: "worker", Selector: { os: "x" } },
    });
    expect(files["groups/node.yaml"]).toContain("os: x");
    expect(findings).toEqual([]);
  });

  it("puts a long config into a ConfigMap beside the Profile", () => {
    const { files, findings } = imported({ ...good, "generic/worker.tmpl": "x".repeat(200_000) });
    expect(files["profiles/worker.yaml"]).toContain("kind: ConfigMap\nmetadata:\n  name: worker-generic\n");
    expect(findings).toEqual([]);
  });

  it("takes words behind a kernel for arguments", () => {
    const kernel = "--name k /assets/vmlinuz  auto=true --- quiet ";
    const { files, findings } = imported({
      ...good,
      "profiles/worker.json": { ...profile, boot: { ...boot, kernel } },
    });
    const text =
      "kernel: --name k /assets/vmlinuz\n    initrd:\n      - /assets/initrd\n    args:\n      - auto=true --- quiet\n";
    expect(files["profiles/worker.yaml"]).toContain(text);
    expect(findings).toEqual([expect.stringContaining("no profile that was imported uses it")]);
  });

  it("leaves braces of boot arguments as they are", () => {
    const args = ["a={{b}}", "uuid=\u0024{uuid}"];
    const { files } = imported({ ...good, "profiles/worker.json": { ...profile, boot: { ...boot, args } } });
    expect(files["profiles/worker.yaml"]).toContain("- a=\\{{b}}\n      - uuid=\u0024{uuid}\n");
  });

  it("serves a finished Ignition config as it is", () => {
    const text = '{"ignition": {"version": "3.4.0"}, "a": "{{b}}"}';
    const { files, findings } = imported({
      ...good,
      "profiles/worker.json": { ...profile, ignition_id: "w.ign" },
      "ignition/w.ign": text,
    });
    expect(files["profiles/worker.yaml"]).toContain(`  ignition:\n    inline: '${text}'\n    raw: true\n`);
    expect(findings).toEqual([
      "generic/worker.tmpl:1:1: warning: no profile that was imported uses it: it is not imported",
    ]);
  });

  it("keeps a Butane config as a template", () => {
    const text = "variant: fcos\nversion: 1.5.0\nsystemd: {units: [{name: '{{.unit}}', enabled: true}]}\n";
    const { files } = imported({
      ...good,
      "profiles/worker.json": { ...profile, ignition_id: "w.yaml" },
      "ignition/w.yaml": text,
    });
    const written = text.trimEnd().replace("{{.unit}}", "{{unit}}").replaceAll("\n", "\n      ");
    expect(files["profiles/worker.yaml"]).toContain(`  ignition:\n    inline: |\n      ${written}\n`);
  });

  it("puts davit's URL in the place of matchbox's, in arguments, templates and finished configs", () => {
    const url = "http://boot.example:8080";
    const tree: Tree = {
      "profiles/worker.json": {
        ...profile,
        boot: { ...boot, args: [`a=${url}/ignition`, `b=${url}0/x`] },
        generic_id: "t",
        ignition_id: "w.ign",
      },
      "generic/t": `{{range .list}}${url}/assets {{.}}{{end}}${url}`,
      "ignition/w.ign": `{"ignition": {"version": "3.4.0", "x": "${url}/y"}}`,
    };
    const text = imported(tree, url).files["profiles/worker.yaml"];
    expect(text).toContain("- a={{davit.url}}/ignition\n      - b=http://boot.example:80800/x\n");
    expect(text).toContain('"{{#each list}}{{@root.davit.url}}/assets {{this}}{{/each}}{{davit.url}}"');
    expect(text).toContain('"x": "{{davit.url}}/y"}}');
  });
});

describe("what cannot be carried over is told, and cannot boot something else", () => {
  it.each<{ name: string; tree: Tree; finding: string; file?: string; has?: string }>([
    {
      name: "a template with a function of Go's",
      tree: { ...good, "generic/worker.tmpl": "a\n{{urlquery .role}}" },
      finding:
        'generic/worker.tmpl:2:1: error: "urlquery" is not translated: put the value into the metadata as it stands in a URL',
      file: "profiles/worker.yaml",
      has: "generic:\n    inline: |-\n      a\n      {{notImported}}\n",
    },
    {
      name: "a template that is none of Go's",
      tree: { ...good, "generic/worker.tmpl": "a\n{{if .role}}" },
      finding: "generic/worker.tmpl:2:1: error: not a Go template, matchbox answers 404: a block is not closed",
      file: "profiles/worker.yaml",
      has: "generic:\n    templateFrom:\n      configMapKeyRef:\n        name: worker-not-imported\n        key: generic\n",
    },
    {
      name: "a field that no version of matchbox has",
      tree: { ...good, "groups/g.json": { profile: "worker", selectors: { os: "x" } } },
      finding: 'groups/g.json:3:3: error: no version of matchbox has a field "selectors": correct or remove it',
      file: "groups/g.yaml",
      has: "matchAll: true\n",
    },
    {
      name: "such a field of a boot section",
      tree: { "profiles/worker.json": { ...profile, boot: { ...boot, initrds: ["/i"] } } },
      finding: 'profiles/worker.json:12:5: error: no version of matchbox has a field "initrds": correct or remove it',
      file: "profiles/worker.yaml",
      has: "kernel: /assets/vmlinuz\n",
    },
    {
      name: "a Butane config that cannot be translated",
      tree: {
        "profiles/worker.json": { ...profile, ignition_id: "w.yaml" },
        "ignition/w.yaml": "variant: fcos\nversion: 1.5.0\nstorage: {trees: [{local: t}]}\n",
      },
      finding:
        "ignition/w.yaml:3:11: error: davit answers 500: Read Butane result: trees need a directory, which davit does not have: list each file in storage.files",
      file: "profiles/worker.yaml",
      has: "ignition:\n    templateFrom:\n      configMapKeyRef:\n        name: worker-not-imported\n",
    },
    {
      name: "a Container Linux Config with variables",
      tree: { "profiles/worker.json": { ...profile, ignition_id: "w.yaml" }, "ignition/w.yaml": "passwd: {{.a}}\n" },
      finding:
        "ignition/w.yaml:1:1: error: a Container Linux Config is not converted: write it anew for Butane (https://coreos.github.io/butane/), and put the result into the Profile",
      file: "profiles/worker.yaml",
      has: "name: worker-not-imported\n",
    },
    {
      name: "a finished Ignition config that is none",
      tree: { "profiles/worker.json": { ...profile, ignition_id: "w.ign" }, "ignition/w.ign": '{"a":\n b}' },
      finding:
        "ignition/w.ign:2:2: error: davit answers 500: Read raw Ignition document: not JSON (line 2, column 2 of the result)",
      file: "profiles/worker.yaml",
      has: "name: worker-not-imported\n",
    },
    {
      name: "a config file that is not there",
      tree: { "profiles/worker.json": { ...profile, cloud_id: "gone" } },
      finding:
        'profiles/worker.json:13:3: error: no file "cloud/gone", matchbox answers 404 and davit 500: write it, or remove the field',
      file: "profiles/worker.yaml",
      has: "cloudConfig:\n    templateFrom:\n",
    },
    {
      name: "a boot argument with a line break",
      tree: { "profiles/worker.json": { ...profile, boot: { ...boot, args: ["a\nb"] } } },
      finding:
        'profiles/worker.json:4:3: error: davit does not take "spec.boot.args.0": has a control character, such as a line break: remove it',
      file: "profiles/worker.yaml",
      has: 'boot:\n    kernel: "{{notImported}}"\n',
    },
    {
      name: "a group whose profile is not there",
      tree: { "groups/g.json": { profile: "gone", selector: { os: "x" } } },
      finding:
        'groups/g.json:2:3: error: no usable file "profiles/gone.json", its machines are answered 404: write it, or name another profile',
      file: "groups/g.yaml",
      has: "profileRef:\n    name: gone\n",
    },
    {
      name: "a group that names no profile",
      tree: { ...good, "groups/g.json": { selector: { os: "x" } } },
      finding: "groups/g.json:1:1: error: names no profile, its machines are answered 404: name one",
      file: "groups/g.yaml",
      has: "profileRef:\n    name: no-profile\n",
    },
    {
      name: "an empty label beside another one",
      tree: { ...good, "groups/g.json": { profile: "worker", selector: { os: "x", flag: "" } } },
      finding:
        'groups/g.json:5:5: error: the label "flag" is not taken: it has no value, by which matchbox means machines that do not send it: write one, or remove it',
      file: "groups/g.yaml",
      has: "matchLabels:\n      os: x\n  hold: true\n",
    },
    {
      name: "a label in upper case alone",
      tree: { ...good, "groups/g.json": { profile: "worker", selector: { UUID: "a" } } },
      finding:
        'groups/g.json:4:5: error: the label "UUID" is not taken: write uuid, mac, hostname, serial, domain and arch in lower case',
      file: "groups/g.yaml",
      has: "UUID: a\n",
    },
    {
      name: "metadata that are nested too deeply",
      tree: {
        ...good,
        "groups/g.json": `{"profile": "worker", "metadata": {"a": ${"[".repeat(5_000)}${"]".repeat(5_000)}}}`,
      },
      finding: "error: the metadata are not taken: they are nested deeper than 90 levels: write them flatter",
      file: "groups/g.yaml",
      has: "hold: true",
    },
    {
      name: "metadata of too many names",
      tree: { ...good, "groups/g.json": { profile: "worker", metadata: numbered(300) } },
      finding: "groups/g.json:3:3: error: the metadata are not taken: has more than 256 names: remove some",
      file: "groups/g.yaml",
      has: "hold: true",
    },
    {
      name: "more labels than davit takes",
      tree: { ...good, "groups/g.json": { profile: "worker", selector: numbered(20) } },
      finding: "groups/g.json:3:3: error: the selector is not taken: it has more than 16 labels",
      file: "groups/g.yaml",
      has: "matchLabels:",
    },
    {
      name: "a MAC address that is none",
      tree: { ...good, "groups/g.json": { profile: "worker", selector: { mac: "5254", os: "x" } } },
      finding: 'groups/g.json:4:5: error: "selector.mac" is no MAC address, matchbox does not load the file: mend it',
    },
    {
      name: "a number that JavaScript cannot hold",
      tree: { ...good, "groups/g.json": '{"profile": "worker", "metadata": {"a": [12345678901234567890]}}' },
      finding:
        "groups/g.json:1:23: error: the metadata are not taken: they have a number beyond 2^53, which loses digits: quote it",
      file: "groups/g.yaml",
      has: "matchAll: true\n  hold: true\n",
    },
    {
      name: "a group that is no JSON",
      tree: { ...good, "groups/g.json": '{"profile": "worker",\n  "selector": }' },
      finding: "groups/g.json:2:15: error: is not JSON, matchbox does not load it: mend it here",
    },
    {
      name: "a group that is a list",
      tree: { ...good, "groups/g.json": "[]" },
      finding: "groups/g.json:1:1: error: must be a JSON object, matchbox does not load it",
    },
    {
      name: "a label that is a number",
      tree: { ...good, "groups/g.json": { profile: "worker", selector: { rack: 4 } } },
      finding:
        'groups/g.json:4:5: error: "selector.rack" must be text, matchbox does not load the file: write it in quotes',
    },
    {
      name: "metadata that are a list",
      tree: { ...good, "groups/g.json": { profile: "worker", metadata: [] } },
      finding: 'groups/g.json:3:3: error: "metadata" must be an object, matchbox does not load the file',
    },
    {
      name: "a profile without an id",
      tree: { ...good, "profiles/x.json": { boot } },
      finding: 'profiles/x.json:1:1: error: "id" is missing, matchbox does not use the profile: write it',
    },
    {
      name: "arguments that are a text",
      tree: { ...good, "profiles/x.json": { id: "x", boot: { args: "a b" } } },
      finding: 'profiles/x.json:4:5: error: "boot.args" must be a list of texts, matchbox does not load the file',
    },
  ])("$name", ({ tree, finding, file, has }) => {
    const { files, findings } = imported(tree);
    expect(findings).toContainEqual(expect.stringContaining(finding));
    if (file !== undefined) {
      expect(files[file]).toContain(has);
      expect(files[file]).toContain("# Not imported: ");
    } else expect(Object.keys(files)).not.toContain("groups/g.yaml");
  });

  it.each<{ name: string; tree: Tree; finding: string }>([
    {
      name: "two profiles that come to one name",
      tree: { ...good, "profiles/Worker.json": { ...profile, id: "Worker" } },
      finding:
        'profiles/worker.json:1:1: error: no name for an object: "Worker" comes to "worker", too: rename the file, and where it is named',
    },
    {
      name: "a missing profile that would come to another one",
      tree: { ...good, "groups/g.json": { profile: "WORKER" } },
      finding:
        'profiles/worker.json:1:1: error: no name for an object: "WORKER" comes to "worker", too: rename the file, and where it is named',
    },
    {
      name: "two groups that come to one name",
      tree: { ...good, "groups/no_de.json": { profile: "worker" }, "groups/no-de.json": { profile: "worker" } },
      finding:
        'groups/no_de.json:1:1: error: no name for an object: "no-de" comes to "no-de", too: rename the file, and where it is named',
    },
    {
      name: "a name of which nothing is left",
      tree: { ...good, "groups/___.json": { profile: "worker" } },
      finding:
        "groups/___.json:1:1: error: no name for an object: nothing can be made of it: rename the file, and where it is named",
    },
  ])("nothing is imported from $name", ({ tree, finding }) => {
    const { files, findings } = imported(tree);
    expect(findings).toContain(finding);
    expect(files).toEqual({});
  });
});
