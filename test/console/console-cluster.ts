/** A cluster with accounts of people, and an account of davit whose writes the API server's audit log has. */

import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isJsonObject, type JsonObject, parseJsonObject } from "../../src/model/json.ts";
import { type Cluster, startCluster } from "../../tools/cluster/cluster.ts";

/** May look, or may also approve, hold and release. */
export type Account = "approver" | "viewer";

const rights = { approver: ["get", "list", "patch"], viewer: ["get", "list"] } as const;

export interface ConsoleCluster {
  readonly cluster: Cluster;
  /** Of davit's own account, which may do everything. */
  readonly kubeconfig: string;
  readonly tokens: Readonly<Record<Account, string>>;
  /** Every write of davit's objects so far, in the order of the audit log. */
  writes(): Promise<readonly AuditedWrite[]>;
  stop(): Promise<void>;
}

export interface AuditedWrite {
  readonly user: string;
  readonly verb: string;
  /** Such as `machines` or `machines/status`. */
  readonly resource: string;
  readonly name: string;
  readonly agent: string;
}

export async function startConsoleCluster(): Promise<ConsoleCluster> {
  const folder = await mkdtemp(join(tmpdir(), "davit-console-"));
  const auditLog = join(folder, "audit.log");
  const policy = join(folder, "policy.json");
  await writeFile(policy, JSON.stringify(auditPolicy));
  const cluster = await startCluster({ flags: [`--audit-policy-file=${policy}`, `--audit-log-path=${auditLog}`] });
  const grant = async (account: string, role: string) => {
    const to = [`--clusterrole=${role}`, `--serviceaccount=default:${account}`];
    await cluster.kubectl(["create", "clusterrolebinding", account, ...to]);
  };
  const person = async (account: Account) => {
    const resources = ["machines", "groups", "profiles"].map((kind) => `${kind}.davit.dev`).join(",");
    const role = [`--verb=${rights[account].join(",")}`, `--resource=${resources}`];
    await cluster.kubectl(["create", "clusterrole", account, ...role]);
    await grant(account, account);
    return await cluster.serviceAccountToken("default", account);
  };
  const kubeconfig = cluster.kubeconfigFor("davit", await cluster.serviceAccountToken("default", "davit"));
  await grant("davit", "cluster-admin");
  return {
    cluster,
    kubeconfig,
    tokens: { approver: await person("approver"), viewer: await person("viewer") },
    writes: async () => (await readFile(auditLog, "utf8")).split("\n").flatMap(writeIn),
    stop: async () => {
      await cluster.stop();
      await rm(folder, { recursive: true });
    },
  };
}

/** Writes of davit's objects, when they are done. */
const auditPolicy = {
  apiVersion: "audit.k8s.io/v1",
  kind: "Policy",
  omitStages: ["RequestReceived"],
  rules: [
    {
      level: "Metadata",
      verbs: ["create", "update", "patch", "delete", "deletecollection"],
      resources: [{ group: "davit.dev" }],
    },
    { level: "None" },
  ],
};

function writeIn(line: string): readonly AuditedWrite[] {
  const event = parseJsonObject(line);
  if (event === undefined) return [];
  const user = partOf(event, "user");
  const object = partOf(event, "objectRef");
  const resource = [object.resource, object.subresource].filter((part) => part !== undefined).join("/");
  return [
    {
      user: String(user.username),
      verb: String(event.verb),
      resource,
      name: String(object.name),
      agent: String(event.userAgent),
    },
  ];
}

function partOf(event: JsonObject, name: string): JsonObject {
  const part = event[name];
  return isJsonObject(part) ? part : {};
}
