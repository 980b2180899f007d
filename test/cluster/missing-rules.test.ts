/** With one rule of RBAC less, davit names exactly this rule, where an operator looks, until its Role has the rule. */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { isJsonObject, type JsonObject } from "../../src/model/json.ts";
import { type Cluster, startCluster } from "../../tools/cluster/cluster.ts";
import { type DavitProcess, startDavit } from "../../tools/davit-process.ts";
import { ledgerId } from "../helpers/install-world.ts";
import { missing } from "../helpers/requirements.ts";
import { Poll } from "./poll.ts";

const soon = { timeout: 60_000, interval: 100 };
const page = "upgrade the chart, or see docs/internals/controller.md#rbac";
/** A ConfigMap without a mark yet, and one that is not there. */
const [emptyMark, newMark] = ["empty-ledger", "new-ledger"];

/** `GROUP RESOURCE VERB`, with `core` for the group without a name. */
const needed = [
  ...["profiles", "groups", "machines"].flatMap((resource) => [
    ...["get", "list", "watch"].map((verb) => `davit.dev ${resource} ${verb}`),
    `davit.dev ${resource}/status patch`,
  ]),
  ...["create", "delete"].map((verb) => `davit.dev machines ${verb}`),
  ...["get", "list", "watch", "create", "patch"].map((verb) => `core configmaps ${verb}`),
  ...["get", "list", "watch"].map((verb) => `core secrets ${verb}`),
  ...["create", "patch"].map((verb) => `events.k8s.io events ${verb}`),
];

const objects = `
apiVersion: v1
kind: Secret
metadata: {name: tokens, labels: {davit.dev/allow-template: "true"}}
stringData: {text: token}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: texts}
data: {text: "#cloud-config"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: ${emptyMark}}
---
apiVersion: davit.dev/v1alpha1
kind: Profile
metadata: {name: work}
spec: {boot: {kernel: /assets/linux}, cloudConfig: {templateFrom: {configMapKeyRef: {name: texts, key: text}}}}
---
apiVersion: davit.dev/v1alpha1
kind: Profile
metadata: {name: secret}
spec: {boot: {kernel: /assets/linux}, generic: {templateFrom: {secretKeyRef: {name: tokens, key: text}}}}
---
apiVersion: davit.dev/v1alpha1
kind: Group
metadata: {name: rack}
spec: {profileRef: {name: work}, selector: {matchLabels: {role: rack}}, enroll: true}
---
apiVersion: davit.dev/v1alpha1
kind: Profile
metadata: {name: wipe}
spec: {effect: Install, boot: {kernel: /assets/wipe}}
---
apiVersion: davit.dev/v1alpha1
kind: Group
metadata: {name: wiped}
spec: {profileRef: {name: wipe}, selector: {matchLabels: {mac: "52:54:00:00:00:02"}}}
---
apiVersion: davit.dev/v1alpha1
kind: Machine
metadata: {name: node}
spec: {identity: {macs: ["52:54:00:00:00:01"]}}
`;

describe.skipIf(missing("kube-apiserver", "kubectl"))("davit without the right", { timeout: 240_000 }, () => {
  let cluster: Cluster;
  let folder: string;
  let davit: DavitProcess | undefined;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "davit-rules-"));
    cluster = await startCluster();
    await cluster.apply(objects);
    // With an earlier state, davit answers machines although it cannot read everything.
    await start(cluster.kubeconfig);
    await vi.waitFor(async () => expect(await ledgerId(running())).toMatch(/^[0-9a-f]{8}$/), soon);
    await end();
  }, 240_000);
  afterEach(end);
  afterAll(async () => {
    await cluster?.stop();
    await rm(folder, { recursive: true });
  });

  const running = () => davit as DavitProcess;

  async function end(): Promise<void> {
    await davit?.stop();
    davit = undefined;
  }

  async function start(kubeconfig: string, args: readonly string[] = []): Promise<void> {
    const brief = ["--limit", "source-grace=1s", "--tombstone-ttl", "60s"];
    davit = await startDavit({ kubeconfig, dataDir: join(folder, "data"), args: [...brief, ...args] });
  }

  /** Gives an account of its own all rights but one. @returns its kubeconfig, and what adds the right. */
  async function accountWithout(right: string, kind: "Role" | "ClusterRole" = "Role", suffix = kind.toLowerCase()) {
    const name = `lacks-${right.replaceAll(/[^a-z]+/g, "-")}-${suffix}`;
    const grant = (rights: readonly string[]) => cluster.apply(roleOf(kind, name, rights));
    await grant(needed.filter((each) => each !== right));
    const kubeconfig = cluster.kubeconfigFor(name, await cluster.serviceAccountToken("default", name));
    return { kubeconfig, mend: () => grant(needed) };
  }

  const readiness = async () => (await fetch(`${running().opsUrl}/readyz?verbose`)).text();
  const logged = () => running().log.map((line) => JSON.stringify(line).replaceAll(String.raw`\"`, '"'));
  const unknownMachine = () => fetch(`${running().bootUrl}/ipxe?role=rack&mac=52:54:00:00:00:99`);

  const lists = ["profiles", "groups", "machines"].map((resource) => [
    `davit.dev ${resource} list`,
    `davit may not list ${resource}.davit.dev in namespace "default" (403): its Role lacks the rule {apiGroups: [davit.dev], resources: [${resource}], verbs: [list]}: ${page}`,
  ]);
  const patches = ["profiles", "groups", "machines"].map((resource) => [
    `davit.dev ${resource}/status patch`,
    `davit may not patch ${resource}/status in namespace "default" (403): its Role lacks the rule {apiGroups: [davit.dev], resources: [${resource}/status], verbs: [patch]}: ${page}`,
  ]);

  it.each([
    ...lists,
    ...patches,
    [
      "davit.dev machines watch",
      `davit may not watch machines.davit.dev in namespace "default" (403): its Role lacks the rule {apiGroups: [davit.dev], resources: [machines], verbs: [watch]}: ${page}`,
    ],
    [
      "core configmaps list",
      `davit may not list configmaps in namespace "default" (403): its Role lacks the rule {apiGroups: [""], resources: [configmaps], verbs: [list]}: ${page}`,
    ],
    [
      "core configmaps patch",
      `davit may not patch configmaps "${emptyMark}" in namespace "default" (403): its Role lacks the rule {apiGroups: [""], resources: [configmaps], resourceNames: [${emptyMark}], verbs: [patch]}: ${page}`,
      ["--ledger-mark-configmap", emptyMark],
    ],
    [
      "core configmaps create",
      `davit may not create configmaps in namespace "default" (403): its Role lacks the rule {apiGroups: [""], resources: [configmaps], verbs: [create]}: ${page}`,
      ["--ledger-mark-configmap", newMark],
    ],
    [
      "davit.dev machines create",
      `davit may not create machines.davit.dev in namespace "default" (403): its Role lacks the rule {apiGroups: [davit.dev], resources: [machines], verbs: [create]}: ${page}`,
    ],
  ] as readonly [string, string, string[]?][])(
    "%s: log and readiness have the rule",
    async (right, text, args = []) => {
      const { kubeconfig, mend } = await accountWithout(right);
      await forgetStatuses();
      await start(kubeconfig, args);
      await unknownMachine();
      await expect.poll(readiness, soon).toContain(text);
      await expect.poll(() => logged().some((line) => line.includes(text)), soon).toBe(true);
      await mend();
      // A machine that asks again is enrolled.
      const mended = async () => {
        await unknownMachine();
        return await readiness();
      };
      await expect.poll(mended, soon).not.toContain("may not");
      await cluster.kubectl(["delete", "machines.davit.dev", "mac-525400000099", "--ignore-not-found"]);
    },
  );

  it("to read Machines: what was known is answered as before, but nothing installs until davit has the right", async () => {
    const { kubeconfig, mend } = await accountWithout("davit.dev machines list", "Role", "unread");
    await start(kubeconfig);
    const install = async () => (await fetch(`${running().bootUrl}/ipxe?mac=52:54:00:00:00:02`)).status;
    const poll = Poll.of(install);
    expect((await fetch(`${running().bootUrl}/ipxe?role=rack&mac=52:54:00:00:00:03`)).status).toBe(200);
    await expect.poll(readiness, soon).toContain("davit may not list machines.davit.dev");
    await poll.stop();
    expect(poll.answers()).toEqual(new Set([503]));
    await mend();
    await expect.poll(install, soon).toBe(200);
  });

  it("to read a namespace's objects in all namespaces: it is a rule of a ClusterRole", async () => {
    const { kubeconfig } = await accountWithout("davit.dev groups list", "ClusterRole");
    await start(kubeconfig, ["--all-namespaces"]);
    await expect
      .poll(readiness, soon)
      .toContain(
        `davit may not list groups.davit.dev in all namespaces (403): its ClusterRole lacks the rule {apiGroups: [davit.dev], resources: [groups], verbs: [list]}: ${page}`,
      );
  });

  it("to read a Secret: the Profile's condition has the rule", async () => {
    const { kubeconfig, mend } = await accountWithout("core secrets list");
    await start(kubeconfig);
    const rule = `{apiGroups: [""], resources: [secrets], resourceNames: [tokens], verbs: [get, list, watch]}`;
    await expect.poll(() => messages("profiles", "secret"), soon).toContain(rule);
    await mend();
    await expect.poll(() => messages("profiles", "secret"), soon).not.toContain(rule);
  });

  it("to mark its ledger: the Group's condition has the rule", async () => {
    const { kubeconfig, mend } = await accountWithout("core configmaps create");
    await start(kubeconfig, ["--ledger-mark-configmap", "other-ledger"]);
    await cluster.kubectl(["patch", "groups.davit.dev", "rack", "--type=merge", "-p", JSON.stringify(grant)]);
    const rule = `{apiGroups: [""], resources: [configmaps], verbs: [create]}`;
    await expect.poll(() => messages("groups", "rack"), soon).toContain(rule);
    await mend();
    await expect.poll(() => messages("groups", "rack"), soon).not.toContain(rule);
  });

  const grant = { spec: { install: { generation: 1, ledger: "00000000", until: "2020-01-01T00:00:00Z" } } };

  /** Otherwise davit has nothing to write. */
  async function forgetStatuses(): Promise<void> {
    for (const [plural, name] of [
      ["profiles", "work"],
      ["groups", "rack"],
      ["machines", "node"],
    ]) {
      const path = `/apis/davit.dev/v1alpha1/namespaces/default/${plural}/${name}/status`;
      const contentType = "application/merge-patch+json";
      await cluster.ask({ method: "PATCH", path, body: { status: { conditions: null } }, contentType });
    }
  }

  /** The messages of an object's conditions. */
  async function messages(plural: string, name: string): Promise<string> {
    const { body } = await cluster.ask({ path: `/apis/davit.dev/v1alpha1/namespaces/default/${plural}/${name}` });
    const status: JsonObject = isJsonObject(body.status) ? body.status : {};
    const conditions: readonly unknown[] = Array.isArray(status.conditions) ? status.conditions : [];
    return conditions.map((each) => (isJsonObject(each) ? String(each.message) : "")).join("\n");
  }
});

/** A Role or ClusterRole with these rights, bound to the account of its name in the namespace `default`. */
function roleOf(kind: "Role" | "ClusterRole", name: string, rights: readonly string[]): string {
  const apiVersion = "rbac.authorization.k8s.io/v1";
  const metadata = { name, ...(kind === "Role" && { namespace: "default" }) };
  const rules = rights.map((right) => {
    const [group = "", resource = "", verb = ""] = right.split(" ");
    return { apiGroups: [group === "core" ? "" : group], resources: [resource], verbs: [verb] };
  });
  const subjects = [{ kind: "ServiceAccount", name, namespace: "default" }];
  const roleRef = { apiGroup: "rbac.authorization.k8s.io", kind, name };
  return [
    { apiVersion, kind, metadata, rules },
    { apiVersion, kind: `${kind}Binding`, metadata, roleRef, subjects },
  ]
    .map((object) => JSON.stringify(object))
    .join("\n---\n");
}
