import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { systemClock } from "../../src/lib/clock.ts";
import { quickstartMachine } from "../../tools/firmware/machine.ts";
import { type Certificate, makeAuthority } from "../helpers/certificates.ts";
import { type Answer, curl } from "./curl.ts";
import { Release } from "./release.ts";
import { attempt } from "./run.ts";
import type { Stage } from "./stage.ts";

const repository = join(import.meta.dirname, "../..");
const secret = "boot-tls";
const mac = quickstartMachine.mac.replaceAll(":", "-");
const config = `/ignition?mac=${mac}`;
const script = `/ipxe?mac=${mac}`;
const elsewhere = "DNS:elsewhere.example";
const stepLimitMs = 600_000;
// A kubelet writes a changed Secret into its pods within two minutes.
const kubeletMs = 240_000;
// The exit code of curl for a certificate of an authority that it does not trust.
const untrusted = 60;

/** From a Secret with the user's own certificate to configs that machines get by HTTPS only. */
export function httpsSteps(stage: Stage): void {
  const { settings, host, authority, folder } = stage;
  const nodePort = settings.nodePort + 1;
  const secure = `${host}:${nodePort}`;
  const { namespace } = stage.release;
  const https = { enabled: true, existingSecret: secret, advertiseAddress: secure, nodePort };
  const release = new Release({ helm: settings.helm, namespace, values: { ...stage.values, https } });
  const service = `${release.name}.${namespace}.svc`;
  const authorities = { first: makeAuthority(folder, "first"), second: makeAuthority(folder, "second") };
  type Trusted = keyof typeof authorities;
  let container: string;

  describe("the chart with https", () => {
    it("comes up with the certificate of a Secret", { timeout: stepLimitMs }, async () => {
      await release.createNamespace();
      await giveCertificate("first", `IP:${host},DNS:${service}`);
      await release.install();
      await release.kubectl(["apply", `--filename=${join(repository, "manifests/quickstart")}`]);
      await expect.poll(() => stage.script()).toContain("kernel ");
      container = await release.containerOf("davit-0");
    });

    it("answers clients that trust its authority, on the node's port", async ({ annotate }) => {
      const answer = await ask("first", config);
      await annotate(`$ curl --cacert ca.pem https://${secure}${config}\n${answer.status} ${answer.body}`);
      expect(answer).toMatchObject({ status: 200, body: expect.stringContaining('"ignition"') });
      expect((await ask("first", script)).body).toContain(`davit.url=https://${secure} `);
      expect((await askInsecurely(script)).body).toContain(`davit.url=http://${authority} `);
      const stranger = await attempt(["curl", "--cacert", authorities.second.certFile, `https://${secure}${config}`]);
      expect(stranger.code, stranger.stderr).toBe(untrusted);
    });

    it("answers a pod by the name of its Service", async ({ annotate }) => {
      const url = `https://${service}:8443${config}`;
      const said = await askInPod(url, authorities.first.cert);
      await annotate(`${url}\n${said}`);
      expect(said).toMatch(/^200 /);
      expect(said).toContain('"ignition"');
    });
  });

  describe("a Profile with requireTls", () => {
    it("gives configs by HTTPS only", async ({ annotate }) => {
      const patch = JSON.stringify({ spec: { requireTls: true } });
      await release.kubectl(["patch", "profiles.davit.dev", "quickstart", "--type=merge", `--patch=${patch}`]);
      await expect.poll(async () => (await askInsecurely(config)).status).toBe(403);
      for (const path of ["ignition", "cloud", "generic", "metadata"].map((name) => `/${name}?mac=${mac}`)) {
        const [refused, given] = [await askInsecurely(path), await ask("first", path)];
        await annotate(`${path}: by HTTP ${refused.status} ${refused.body}; by HTTPS ${given.status}`);
        expect(refused).toMatchObject({ status: 403, body: expect.stringContaining("only by HTTPS") });
        expect(given.status).toBe(200);
      }
      const plain = await askInsecurely(script);
      expect(plain).toMatchObject({ status: 200, body: expect.stringContaining(`davit.url=https://${secure} `) });
    });
  });

  describe("a new certificate in the Secret", () => {
    it("of another host is not served", { timeout: stepLimitMs }, async ({ annotate }) => {
      const answers = await whileAsking(async () => {
        await giveCertificate("second", elsewhere);
        const complaint = () => stage.logs.lines("davit-0").find(({ problem }) => String(problem).includes(elsewhere));
        await expect.poll(complaint, { timeout: kubeletMs }).toBeDefined();
        await annotate(JSON.stringify(complaint()));
      });
      expect(answers).toEqual(new Set([403]));
      expect(await ask("first", config)).toMatchObject({ status: 200 });
    });

    it("is served, and no pod restarts", { timeout: stepLimitMs }, async ({ annotate }) => {
      const answers = await whileAsking(async () => {
        await giveCertificate("second", `IP:${host},DNS:${service}`);
        const served = () => ask("second", config).catch(() => undefined);
        await expect.poll(served, { timeout: kubeletMs }).toMatchObject({ status: 200 });
      });
      await annotate(`by HTTP meanwhile: ${[...answers].join(", ")}`);
      expect(answers).toEqual(new Set([403]));
      const former = await attempt(["curl", "--cacert", authorities.first.certFile, `https://${secure}${config}`]);
      expect(former.code, former.stderr).toBe(untrusted);
      expect(await release.containerOf("davit-0")).toBe(container);
      expect(await release.look("pod/davit-0", "{.status.containerStatuses[0].restartCount}")).toBe("0");
    });
  });

  /** Puts it into the Secret, in the place of the one before. */
  async function giveCertificate(by: Trusted, hosts: string): Promise<void> {
    const { certFile, keyFile }: Certificate = authorities[by].issue("boot", { hosts });
    const files = [`--cert=${certFile}`, `--key=${keyFile}`];
    const made = await release.kubectl(["create", "secret", "tls", secret, ...files, "--dry-run=client", "-o=json"]);
    await release.kubectl(["apply", "--filename=-"], { input: made });
  }

  async function ask(trusted: Trusted, path: string): Promise<Answer> {
    return await curl(["--cacert", authorities[trusted].certFile, `https://${secure}${path}`]);
  }

  async function askInsecurely(path: string): Promise<Answer> {
    return await curl([`http://${authority}${path}`]);
  }

  /** @returns every status that the config had by HTTP meanwhile. */
  async function whileAsking(work: () => Promise<void>): Promise<ReadonlySet<number>> {
    const statuses = new Set<number>();
    const ended = new AbortController();
    const asking = (async () => {
      do {
        statuses.add((await askInsecurely(config)).status);
        await systemClock.sleep(200, ended.signal);
      } while (!ended.signal.aborted);
    })();
    await work().finally(() => ended.abort());
    await asking;
    return statuses;
  }

  /** What Node gets in a pod of davit's image. */
  async function askInPod(url: string, ca: string): Promise<string> {
    const name = "client";
    const program = `require("node:https").get(process.env.URL, { ca: process.env.CA }, async (answer) =>
      console.log(answer.statusCode, (await answer.toArray()).join("")))`;
    const own = {
      name,
      image: stage.imageName,
      command: ["/nodejs/bin/node", "--eval", program],
      env: Object.entries({ URL: url, CA: ca }).map(([key, value]) => ({ name: key, value })),
      securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ["ALL"] } },
    };
    const securityContext = { runAsNonRoot: true, seccompProfile: { type: "RuntimeDefault" } };
    const spec = { restartPolicy: "Never", automountServiceAccountToken: false, securityContext, containers: [own] };
    const pod = { apiVersion: "v1", kind: "Pod", metadata: { name }, spec };
    await release.kubectl(["apply", "--filename=-"], { input: JSON.stringify(pod) });
    await expect.poll(() => release.look(`pod/${name}`, "{.status.phase}")).toMatch(/^(Succeeded|Failed)$/);
    return await release.kubectl(["logs", name]);
  }
}
