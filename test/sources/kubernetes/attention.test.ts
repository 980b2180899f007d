/** What `/readyz?verbose` tells of the way to the cluster. */

import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { makeAuthority } from "../../helpers/certificates.ts";
import { missing } from "../../helpers/requirements.ts";
import { until } from "./client-under-test.ts";
import { answers } from "./fake-api-server.ts";
import { useFakeServer } from "./fake-server-suite.ts";
import { groupOf, profileOf, SourceUnderTest } from "./source-under-test.ts";

const suite = useFakeServer();

function sourceOf(at: { readonly url: string } = suite.server): SourceUnderTest {
  return suite.stopsLater(new SourceUnderTest(at));
}

const waiting = "cluster: waiting for the first list of everything";

async function attentionAfter(under: SourceUnderTest, lineCount: number): Promise<readonly string[]> {
  await under.start();
  await until(() => under.source.attention.length >= lineCount);
  return under.source.attention;
}

describe("while the first list is not in, it is told", () => {
  it("that it is waited for", async () => {
    suite.server.once("list", () => undefined, /groups/);
    expect(await attentionAfter(sourceOf(), 1)).toEqual([waiting]);
  });

  it("which CRDs the cluster does not have, in the log as well", async () => {
    suite.server.always(/davit\.dev/, answers(404));
    const under = sourceOf();
    const install = "(404): install the CRDs, kubectl apply -f crds/";
    expect((await attentionAfter(under, 3)).toSorted()).toEqual([
      `cluster: The cluster does not know groups.davit.dev ${install}`,
      `cluster: The cluster does not know profiles.davit.dev ${install}`,
      waiting,
    ]);
    const told = under.bed.told("not following the cluster, what is known stays");
    expect(told.map(({ problem }) => problem)).toContain(`The cluster does not know groups.davit.dev ${install}`);
  });

  it("which right is missing", async () => {
    suite.server.always(/groups/, answers(403));
    const [, line] = await attentionAfter(sourceOf(), 2);
    expect(line).toContain('davit may not list groups.davit.dev in namespace "default" (403)');
  });

  it("that nobody knows who davit is, once for everything", async () => {
    suite.server.always(/./, answers(401));
    const under = sourceOf();
    await attentionAfter(under, 2);
    await until(() => under.bed.told("not following the cluster, what is known stays").length === 3);
    expect(under.source.attention).toEqual([waiting, expect.stringContaining("does not know who davit is (401)")]);
  });

  it("that nothing listens", async () => {
    const { url } = suite.server;
    const under = sourceOf({ url });
    await suite.server.stop();
    const [, line] = await attentionAfter(under, 2);
    expect(line).toMatch(/Nothing listens where the API server should be.*\(ECONNREFUSED\)$/);
  });

  it("that it does not answer in time", async () => {
    suite.server.always(/./, () => undefined);
    const under = sourceOf();
    await under.start();
    await until(() => suite.server.seen("list").length === 4);
    await under.bed.clock.advance(30_000);
    await until(() => under.source.attention.length > 1);
    expect(under.source.attention[1]).toContain("does not answer in time");
  });

  it.skipIf(missing("openssl"))("that its certificate is of another authority", async () => {
    const folder = await mkdtemp(join(tmpdir(), "davit-attention-"));
    const { key, cert } = makeAuthority(folder).issue("server");
    const server = createServer({ key, cert });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    const [, line] = await attentionAfter(sourceOf({ url: `https://127.0.0.1:${port}` }), 2);
    await new Promise((resolve) => server.close(resolve));
    await rm(folder, { recursive: true });
    expect(line).toMatch(/not signed by the authority in the kubeconfig: look at certificate-authority \([A-Z_]+\)$/);
  });
});

describe("afterwards it is told", () => {
  it("nothing while all is well", async () => {
    suite.server.put(profileOf("web", {}));
    suite.server.put(groupOf("a"));
    const under = sourceOf();
    await under.list();
    await until(() => under.source.isFollowed && suite.server.openWatches === 4);
    await until(() => under.source.attention.length === 0);
    expect(under.source.attention).toEqual([]);
  });

  it("since when it is away, and why, until it is back", async () => {
    suite.server.put(groupOf("a"));
    const under = sourceOf();
    await under.list();
    await until(() => suite.server.openWatches === 4);
    const off = suite.server.always(/groups/, answers(403));
    suite.server.cut(/groups/);
    await until(() => under.source.attention.length === 2);
    await under.bed.clock.advance(800);
    await until(() => under.source.attention[1]?.includes("(403)") === true);
    expect(under.source.attention).toEqual([
      expect.stringMatching(/^cluster: not followed now, heard \d+ s ago: what is known stays$/),
      expect.stringContaining('davit may not list groups.davit.dev in namespace "default" (403)'),
    ]);
    off();
    await under.bed.clock.advance(10_000);
    await until(() => under.source.attention.length === 0);
    expect(under.source.isFollowed).toBe(true);
  });

  it("which ConfigMaps may not be read", async () => {
    suite.server.always(/configmaps/, answers(403));
    suite.server.put(groupOf("a"));
    const under = sourceOf();
    await under.list();
    await until(() => under.source.isFollowed && under.source.attention.length === 1);
    expect(under.source.attention[0]).toContain('davit may not list configmaps in namespace "default" (403)');
  });
});
