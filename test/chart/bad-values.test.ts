/** Wrong values are refused before anything reaches the cluster, by a sentence with the value and the cure. */

import { describe, expect, it } from "vitest";
import { chartDirectory } from "../../tools/generate/chart-files.ts";
import { missing } from "../helpers/requirements.ts";
import { runTool, template } from "./helm.ts";

interface BadValues {
  /** As `--set` has them. */
  readonly set: string;
  /** What helm says. */
  readonly told: string;
}

// What the schema says of a value for itself.
const bySchema: readonly BadValues[] = [
  { set: "replicaCount=0", told: "at '/replicaCount': minimum: got 0, want 1" },
  {
    set: "store.etcd.endpoints={etcd:2379}",
    told: "at '/store/etcd/endpoints/0': 'etcd:2379' does not match pattern '^https?://",
  },
  { set: "store.etcd.lease=0s", told: "at '/store/etcd/lease': '0s' does not match pattern" },
  { set: "colour=red", told: "additional properties 'colour' not allowed" },
  {
    set: "store.certificate.certManager.issuer=x",
    told: "at '/store/certificate/certManager': additional properties 'issuer' not allowed",
  },
  { set: "scope=everything", told: "at '/scope': value must be one of 'release', 'cluster'" },
  {
    set: "service.type=External",
    told: "at '/service/type': value must be one of 'ClusterIP', 'NodePort', 'LoadBalancer'",
  },
  { set: "service.port=70000", told: "at '/service/port': maximum: got 70,000, want 65,535" },
  { set: "service.clusterIP=any", told: "at '/service/clusterIP': 'any' does not match pattern" },
  { set: "podManagementPolicy=Any", told: "at '/podManagementPolicy': value must be one of" },
  { set: "signing.keyKey=", told: "at '/signing/keyKey': minLength: got 0, want 1" },
  { set: "logLevel=loud", told: "at '/logLevel': value must be one of 'debug'" },
  { set: "tombstoneTtl=60", told: "at '/tombstoneTtl': got number, want string" },
  { set: "sourceGrace=1d", told: "at '/sourceGrace': '1d' does not match pattern" },
  { set: "boot.replicas=300", told: "at '/boot/replicas': maximum: got 300, want 256" },
  {
    set: "persistence.accessModes={ReadOnlyMany}",
    told: "value must be one of 'ReadWriteOnce', 'ReadWriteOncePod', 'ReadWriteMany'",
  },
  { set: "watchNamespaces={Team_A}", told: "at '/watchNamespaces/0': 'Team_A' does not match pattern" },
  {
    set: "store.authentication.serviceAccounts={pipeline}",
    told: "at '/store/authentication/serviceAccounts/0': 'pipeline' does not match pattern",
  },
  {
    set: "assets.download[0].url=https://a.example/x,assets.download[0].path=x",
    told: "at '/assets/download/0': missing property 'sha256'",
  },
  {
    set: "extraArgs={log-level=debug}",
    told: "at '/extraArgs/0': 'log-level=debug' does not match pattern '^--[a-z]'",
  },
];

// What does not fit together, or is worth a sentence of its own.
const byTemplate: readonly BadValues[] = [
  { set: "maxStaleness=90s", told: "maxStaleness is a former value: write installMaxSourceAge" },
  {
    set: "fullnameOverride=Netboot_1",
    told: 'fullnameOverride is "Netboot_1": write 1 to 45 lower-case letters, digits and hyphens, a letter first',
  },
  { set: `fullnameOverride=${"a".repeat(60)}`, told: `fullnameOverride is "${"a".repeat(60)}": write 1 to 45` },
  { set: "image.tag=1.0@sha256:12,image.digest=sha256:12", told: 'image.tag is "1.0@sha256:12", which no tag can be' },
  {
    set: "image.tag=1.0@sha256:12,image.digest=sha256:12",
    told: 'image.digest is "sha256:12": write sha256: and 64 hexadecimal digits',
  },
  {
    set: "image.registry=registry.example/",
    told: 'image.registry is "registry.example/": leave out the slash at its end',
  },
  { set: "serviceAccount.create=false", told: "serviceAccount.name is empty: name the account to use" },
  {
    set: "boot.replicas=1,boot.serviceAccount.create=false",
    told: "boot.serviceAccount.name is empty: name the account to use",
  },
  {
    set: "scope=cluster,watchNamespaces={a,b}",
    told: "watchNamespaces is a, b and scope is cluster, which reads every namespace: give one of them",
  },
  {
    set: "adminNamespace=infra,watchNamespaces={a,b}",
    told: 'adminNamespace is "infra", which is not read: add it to watchNamespaces, or take one of a, b',
  },
  {
    set: "adminNamespace=infra",
    told: 'adminNamespace is "infra", which is not read: add it to watchNamespaces, or take one of netboot',
  },
  {
    set: "rbac.secrets.names={other/tokens}",
    told: 'rbac.secrets.names has "other/tokens", and the namespace other is not read: add it to watchNamespaces',
  },
  {
    set: "admissionPolicy.enabled=true",
    told: "admissionPolicy.enabled is true, and there is one namespace, in which everything counts",
  },
  {
    set: "advertiseAddress=192.0.2.10",
    told: 'advertiseAddress is "192.0.2.10": write HOST:PORT, such as 192.0.2.10:8080',
  },
  {
    set: "advertiseAddress=192.0.2.10:99999",
    told: 'advertiseAddress is "192.0.2.10:99999": write HOST:PORT',
  },
  {
    set: "boot.serviceAccount.name=davit",
    told: 'boot.serviceAccount.name is "davit", which is the account with the rights of davit serve: name another',
  },
  { set: "tombstoneTtl=0s", told: "tombstoneTtl" },
  {
    set: "advertiseAddress=http://192.0.2.10:8080",
    told: 'advertiseAddress is "http://192.0.2.10:8080": write HOST:PORT',
  },
  {
    set: "service.nodePort=30080",
    told: "service.nodePort is 30080, and service.type is ClusterIP: set service.type to NodePort or LoadBalancer",
  },
  {
    set: "service.externalTrafficPolicy=Local",
    told: "service.externalTrafficPolicy is Local, and service.type is ClusterIP",
  },
  {
    set: "service.clusterIP=None,service.type=NodePort",
    told: "service.clusterIP is None, and service.type is NodePort, which needs an address: leave service.clusterIP empty",
  },
  {
    set: "service.clusterIP=None,service.externalIPs={192.0.2.10}",
    told: "service.clusterIP is None, and with service.externalIPs there has to be an address",
  },
  {
    set: "service.clusterIP=None,service.port=80",
    told: "service.port is 80, and service.clusterIP is None, with which clients reach the pods' own port, 8080",
  },
  {
    set: "service.clusterIP=2001:db8::1,service.ipFamilies={IPv4}",
    told: "service.clusterIP is 2001:db8::1, and service.ipFamilies begins with IPv4: give the family of the address first",
  },
  {
    set: "service.ipFamilies={IPv4,IPv6}",
    told: "service.ipFamilies has two families, and service.ipFamilyPolicy is empty, which means SingleStack: set",
  },
  {
    set: "service.ipFamilies={IPv4,IPv6},service.ipFamilyPolicy=SingleStack",
    told: "service.ipFamilies has two families, and service.ipFamilyPolicy is SingleStack: set service.ipFamilyPolicy to",
  },
  {
    set: "service.type=NodePort,service.loadBalancerClass=x",
    told: "service.loadBalancerClass is set, and service.type is NodePort: set service.type to LoadBalancer",
  },
  {
    set: "resources.limits.memory=1Gi",
    told: "resources.limits.memory is 1Gi, which leaves -81 MiB for the heap beside assets.cacheBytes and jobs, and store.quotaBytes needs 512 MiB: raise the limit",
  },
  {
    set: "store.quotaBytes=1073741824",
    told: "resources.limits.memory is 1792Mi, which leaves 591 MiB for the heap beside assets.cacheBytes and jobs, and store.quotaBytes needs 6272 MiB",
  },
  {
    set: "bootThreads=2",
    told: "resources.limits.memory is 1792Mi, which leaves 259 MiB for the heap of each of 2 bootThreads beside assets.cacheBytes and jobs, and store.quotaBytes needs 512 MiB",
  },
  {
    set: "boot.replicas=1,boot.resources.limits.memory=600Mi",
    told: "boot.resources.limits.memory is 600Mi, which leaves -88 MiB for the heap",
  },
  {
    set: "assets.existingClaim=a,assets.image.reference=b",
    told: 'assets.existingClaim is "a" and assets.image.reference is "b": give one of them',
  },
  {
    set: "signing.enabled=true",
    told: "signing.existingSecret is empty: name the Secret with the OpenPGP private key",
  },
  {
    set: "signing.enabled=true,signing.existingSecret=key,signing.grubPassphraseKey=phrase",
    told: 'signing.grubPassphraseKey is "phrase", and there is no key for it: set signing.grubKeyKey',
  },
  {
    set: "signing.existingSecret=key",
    told: 'signing.existingSecret is "key", and nothing is signed: set signing.enabled to true',
  },
  { set: "store.certificate.existingSecret=a,store.certificate.certManager.enabled=true", told: "give one of them" },
  {
    set: "store.certificate.certManager.enabled=true",
    told: "store.certificate.certManager.issuerRef.name is empty: name the Issuer",
  },
  {
    set: "store.certificate.own=false",
    told: "the store listens (store.expose, boot.replicas, boot.prepared) and has no certificate: set store.certificate.own, .existingSecret or .certManager.enabled",
  },
  {
    set: "store.expose=true",
    told: "store.expose is true and nobody may come in: set store.authentication.serviceAccounts, .tokens.existingSecret or .clientCa.existingSecret",
  },
  {
    set: "boot.replicas=1,store.authentication.clientCa.existingSecret=ca",
    told: "and followers have no certificate to show: set boot.clientCertificate.existingSecret",
  },
  {
    set: "store.authentication.serviceAccounts={ci/pipeline}",
    told: "store.authentication.serviceAccounts is set, and store.expose is false, with which nobody but followers comes in: set store.expose to true",
  },
  {
    set: "store.authentication.tokens.existingSecret=t",
    told: "store.authentication.tokens.existingSecret is set, and store.expose is false",
  },
  {
    set: "replicaCount=3",
    told: "replicaCount is 3, and store.etcd.endpoints is empty, with which the store is on one volume, and one volume has one writer: set store.etcd.endpoints, or leave replicaCount at 1 and set boot.replicas for more boot services",
  },
  {
    set: "store.etcd.endpoints={https://etcd:2379}",
    told: "store.etcd.endpoints is set, and davit would make its own certificate (store.certificate.own), each member by another authority: set store.certificate.existingSecret or .certManager.enabled",
  },
  {
    set: "store.etcd.endpoints={https://etcd:2379},store.certificate.own=false",
    told: "has no certificate: set store.certificate.existingSecret or .certManager.enabled",
  },
  {
    set: "store.etcd.prefix=/rack/",
    told: 'store.etcd.prefix is "/rack/", and store.etcd.endpoints is empty, with which the store is on the volume: set store.etcd.endpoints',
  },
  { set: "store.etcd.tls.existingSecret=t", told: 'store.etcd.tls.existingSecret is "t", and store.etcd.endpoints is' },
  { set: "store.etcd.auth.existingSecret=u", told: 'store.etcd.auth.existingSecret is "u", and store.etcd.endpoints' },
  {
    set: "replicaCount=3,store.etcd.endpoints={https://etcd:2379},boot.prepared=false,backup.every=24h",
    told: "backup.every is 24h, and backup.accessModes lets one node write, while replicaCount is 3: set backup.accessModes to [ReadWriteMany] with a storage class that has it, or leave backup.every empty",
  },
  {
    set: "persistence.enabled=false,persistence.existingClaim=old",
    told: 'persistence.existingClaim is "old", and persistence.enabled is false, with which the store is in the pod: set persistence.enabled to true, or leave persistence.existingClaim empty',
  },
  {
    set: "backup.existingClaim=old",
    told: 'backup.existingClaim is "old", and backup.every is empty, with which no backup is taken: set backup.every, such as 24h',
  },
  {
    set: "boot.autoscaling.enabled=true,boot.autoscaling.minReplicas=9",
    told: "boot.autoscaling.minReplicas is 9 and boot.autoscaling.maxReplicas is 8: raise the second, or lower the first",
  },
  {
    set: "prometheusRule.disabled={DavitNothing}",
    told: 'prometheusRule.disabled has "DavitNothing", and there is no such alert: take one of Davit',
  },
  { set: "ingress.enabled=true", told: "ingress.hosts is empty: name the hosts by which machines come" },
  { set: "httpRoute.enabled=true", told: "httpRoute.parentRefs is empty: name the Gateway" },
  {
    set: "serviceMonitor.enabled=true,podMonitor.enabled=true",
    told: "so that every metric would be there twice: turn one of them off",
  },
  { set: "dnsmasq.enabled=true", told: "dnsmasq.subnet is empty: write the machines' network, such as 192.0.2.0" },
  { set: "dnsmasq.enabled=true", told: "dnsmasq.nodeSelector is empty: choose the nodes" },
  {
    set: "dnsmasq.enabled=true,dnsmasq.subnet=192.0.2.0,dnsmasq.ranges={192.0.2.1\\,192.0.2.9}",
    told: "dnsmasq.subnet and dnsmasq.ranges are set: clear subnet",
  },
  {
    set: "dnsmasq.enabled=true,dnsmasq.router=192.0.2.1",
    told: "and dnsmasq.ranges is empty: set ranges, or clear router",
  },
  { set: "dnsmasq.enabled=true", told: "advertiseAddress is empty: dnsmasq sends machines there" },
];

describe.skipIf(missing("helm"))("helm", () => {
  it.each([...bySchema, ...byTemplate])("refuses $set", async ({ set, told }) => {
    const { code, stdout, stderr } = await template({ args: ["--set", set] });
    expect(stderr).toContain(told);
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  });

  it("refuses two members on one volume also where nobody asks the schema", async () => {
    const { stderr } = await template({ args: ["--skip-schema-validation", "--set", "replicaCount=2"] });
    expect(stderr).toContain("replicaCount is 2, and store.etcd.endpoints is empty");
  });

  it.each(["a".repeat(60), "1st"])("refuses the release name %s", async (name) => {
    const { code, stderr } = await runTool("helm", ["template", name, chartDirectory, "-n", "netboot"]);
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /length must not be longer than 53|names of Services begin with a letter: choose another, or set fullnameOverride/,
    );
  });

  it("tells everything that does not fit together at once", async () => {
    const { stderr } = await template({ args: ["--set", "signing.enabled=true,ingress.enabled=true"] });
    expect(stderr).toContain("signing.existingSecret is empty");
    expect(stderr).toContain("ingress.hosts is empty");
  });
});
