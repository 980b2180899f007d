/** A matchbox data directory as a site has it: every construct that davit translates, and machines of several kinds. */

import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { quickstartMachine } from "../../tools/firmware/machine.ts";
import { type Tree, textOf } from "./trees.ts";

/** The URL that the site's matchbox has, for `--matchbox-url`. */
export const siteUrl = "http://boot.site.example:8080";

const worker = `#cloud-config
{{/* Workers and what they keep. */ -}}
hostname: {{.hostname}}
{{ if eq .role "db" }}
# a database
{{ else if .spare }}
# a spare
{{ end }}
disks:
{{- range $index, $disk := .disks}}
  - {device: {{$disk.path}}, number: {{$index}}, of: {{$.hostname}}}
{{- else}} []
{{- end}}
{{with .net}}dns: {{.dns}}
gateway: {{index . "gateway"}}
{{end -}}
{{if and .on (not .off) (ne .role "web")}}on: true{{end}}
`;

const labels = `uuid={{index .request.query "uuid"}}
mac={{.request.query.mac}}
os={{if eq (index .request.query "os") "installed"}}installed{{else}}none{{end}}
query={{.request.raw_query}}
role={{.role}} selected={{.mac}}
literal={{"{{"}}x{{"}}"}} path=C:\\dir json={ "a": "{{.role}}"}
`;

const boot = {
  kernel: "/assets/quickstart/vmlinuz",
  initrd: ["/assets/quickstart/initrd.gz"],
  args: ["console=ttyS0", "uuid=\u0024{uuid}", 'opt="two words"', "raw={{.x}}"],
};

export const site: Tree = {
  "groups/node.json": {
    id: "node",
    name: "Node 1",
    profile: "worker",
    selector: { mac: quickstartMachine.mac.toUpperCase() },
    metadata: {
      hostname: "node1",
      role: "db",
      spare: false,
      on: true,
      off: "",
      disks: [{ path: "/dev/sda" }, { path: "/dev/sdb" }],
      net: { dns: "192.0.2.53", gateway: "192.0.2.1" },
      count: 3,
    },
  },
  "groups/node-installed.json": {
    profile: "installed",
    selector: { mac: quickstartMachine.mac, os: "installed" },
    metadata: { hostname: "node1" },
  },
  "groups/web.json": {
    profile: "worker",
    selector: { rack: "4", role: "web" },
    metadata: { hostname: "web", spare: true, on: true, off: 0, disks: [], net: null, Key: "Value" },
  },
  "groups/broken.json": { profile: "worker", selector: { rack: "5" }, metadata: { role: "x" } },
  "groups/lost.json": { profile: "gone", selector: { rack: "6" }, metadata: { a: "b" } },
  "groups/everything.json": { profile: "inventory" },
  "profiles/worker.json": { id: "worker", name: "Worker", boot, cloud_id: "worker.yaml", generic_id: "labels.txt" },
  "profiles/installed.json": {
    id: "installed",
    boot: { kernel: "/assets/quickstart/vmlinuz" },
    ignition_id: "installed.ign",
  },
  "profiles/inventory.json": { id: "inventory", generic_id: "empty" },
  "cloud/worker.yaml": worker,
  "generic/labels.txt": labels,
  "generic/empty": "",
  "ignition/installed.ign": '{"ignition": {"version": "3.4.0"}, "systemd": {"units": [{"name": "{{a}}.service"}]}}\n',
};

/** What machines of the site ask, without the URL. */
export const siteQuestions: readonly string[] = [
  `ipxe?mac=${quickstartMachine.mac.replaceAll(":", "-")}&uuid=${quickstartMachine.uuid}`,
  `cloud?mac=${quickstartMachine.mac}`,
  `generic?uuid=${quickstartMachine.uuid}&mac=${quickstartMachine.mac.replaceAll(":", "-")}`,
  `generic?mac=${quickstartMachine.mac}&os=other&x=%7B%7B.role%7D%7D`,
  `metadata?mac=${quickstartMachine.mac}&serial=a`,
  `ipxe?mac=${quickstartMachine.mac}&os=installed`,
  `ignition?mac=${quickstartMachine.mac}&os=installed`,
  `cloud?mac=${quickstartMachine.mac}&os=installed`,
  "cloud?rack=4&role=web",
  "metadata?rack=4&role=web",
  "generic?rack=4&role=web",
  "cloud?rack=5",
  "ipxe?rack=5",
  "ipxe?rack=6",
  "metadata?rack=6",
  "ipxe?rack=7",
  "generic?rack=7",
  "metadata",
];

/** Writes a tree to the disk. */
export function writeTree(directory: string, tree: Tree): void {
  for (const [path, content] of Object.entries(tree)) {
    mkdirSync(dirname(join(directory, path)), { recursive: true });
    writeFileSync(join(directory, path), textOf(content));
  }
}
