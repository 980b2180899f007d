import { describe, expect, it } from "vitest";
import type { BootsSeen } from "./boots.ts";
import { editProfile } from "./edit-profile.ts";
import { expectChecked, timesBegun } from "./screen.ts";
import { type Stage, userAccount } from "./stage.ts";
import { StoreDoor } from "./store-door.ts";
import { watchPod } from "./watch-pod.ts";

/** What a user writes, to be found again after an uninstall. */
export const userKey = { path: "/v2/keys/racks/7", value: "row-4" } as const;

const audience = "--audience=davit";

/** Boots in other pods, whatever becomes of the one that reads the cluster. */
export function followerSteps(stage: Stage): void {
  const { release, authority } = stage;

  describe("followers", () => {
    it("come beside the StatefulSet's pod, which goes on, without a failed boot", async ({ annotate }) => {
      const container = await release.containerOf("davit-0");
      const boots = stage.startBoots();
      await release.upgrade({ boot: { replicas: 1 } });
      await expectNoFailure(await boots.stop(), annotate);
      expect(await release.containerOf("davit-0")).toBe(container);
      expect(await addresses()).toHaveLength(2);
      await annotate(await release.test());
    });

    it("become three and one again without a failed boot", async ({ annotate }) => {
      const boots = stage.startBoots();
      await release.upgrade({ boot: { replicas: 3 } });
      expect(await readyFollowers()).toBe("3");
      await release.upgrade({ boot: { replicas: 1 } });
      await expect.poll(readyFollowers).toBe("1");
      await expectNoFailure(await boots.stop(), annotate);
    });

    it("boot machines all through a `helm upgrade` that restarts every pod", async ({ annotate }) => {
      await release.upgrade({ boot: { replicas: 2 } });
      const boots = stage.startBoots();
      const upgraded = await watchPod(release, "davit-0");
      const [screen] = await Promise.all([
        stage.boot(),
        release.upgrade({ logLevel: "debug", boot: { podAnnotations: { "e2e/turn": "2" } } }),
      ]);
      await upgraded();
      await expectNoFailure(await boots.stop(), annotate);
      expectChecked(screen, authority, "e2e=edited");
      expect(timesBegun(screen)).toBe(1);
      await release.upgrade({ logLevel: "info" });
    });

    it("are alone without a failed boot", async ({ annotate }) => {
      const serving = await release.look("pod/davit-0", "{.status.podIP}");
      const boots = stage.startBoots();
      await release.upgrade({ boot: { alone: true } });
      await expect.poll(addresses).not.toContain(serving);
      expect(await addresses()).toHaveLength(2);
      await expectNoFailure(await boots.stop(), annotate);
    });

    it("answer alone while davit-0 is killed, and follow the new one", async ({ annotate }) => {
      const boots = stage.startBoots();
      const replaced = await watchPod(release, "davit-0");
      await release.kubectl(["delete", "pod", "davit-0", "--grace-period=0", "--force"]);
      await replaced();
      await editProfile(stage, ["e2e=replaced"]);
      await expectNoFailure(await boots.stop(), annotate);
    });

    it("go, and come anew, without a failed boot", async ({ annotate }) => {
      const container = await release.containerOf("davit-0");
      const boots = stage.startBoots();
      // An earlier chart, which takes these values later on, does not know this one.
      await release.upgrade({ boot: { replicas: 0, alone: null } });
      await expect.poll(followers).toEqual([]);
      await release.upgrade({ boot: { replicas: 2 } });
      await expectNoFailure(await boots.stop(), annotate);
      expect(await release.containerOf("davit-0")).toBe(container);
    });
  });

  describe("the store's door", () => {
    it("opens to the follower's token for reading, and to none and a wrong one not", async ({ annotate }) => {
      const door = await StoreDoor.open(release);
      try {
        const follower = (await release.kubectl(["create", "token", "davit-boot", audience])).trim();
        const forTheCluster = (await release.kubectl(["create", "token", "davit-boot"])).trim();
        const stranger = (await release.kubectl(["create", "token", "default", audience])).trim();
        const cases = [
          { who: "no token", token: undefined, status: 401 },
          { who: "a wrong one", token: "wrong", status: 401 },
          { who: "the follower's, for the API server", token: forTheCluster, status: 401 },
          { who: "another ServiceAccount's, for davit", token: stranger, status: 401 },
          { who: "the follower's", token: follower, status: 200 },
        ] as const;
        for (const { who, token, status } of cases) {
          const answer = await door.ask("/v2/keys/", token);
          const header = token === undefined ? "" : ' -H "Authorization: Bearer ..."';
          await annotate(`$ curl${header} ${door.url("/v2/keys/")}   # ${who}\n${answer.status} ${answer.body}`);
          expect({ who, status: answer.status }).toEqual({ who, status });
        }
        const written = await door.ask(userKey.path, follower, ["--request", "PUT", "--data-urlencode", "value=x"]);
        const url = door.url(userKey.path);
        await annotate(
          `$ curl -X PUT -d value=x -H "Authorization: Bearer ..." ${url}   # the follower's\n${written.status} ${written.body}`,
        );
        expect(written).toMatchObject({ status: 403, body: expect.stringContaining("may only read") });
      } finally {
        await door.close();
      }
    });

    it("lets a user in who was named, to write keys beside davit's own", async () => {
      const door = await StoreDoor.open(release);
      try {
        const token = (await release.kubectl(["create", "token", userAccount, audience])).trim();
        const put = (path: string) =>
          door.ask(path, token, ["--request", "PUT", "--data-urlencode", `value=${userKey.value}`]);
        expect(await put(userKey.path)).toMatchObject({ status: 201 });
        expect(await put("/v2/keys/davit/profiles/x")).toMatchObject({ status: 403 });
      } finally {
        await door.close();
      }
    });
  });

  /** Of the pods that the boot Service sends machines to. */
  async function addresses(): Promise<readonly string[]> {
    const words = ["--selector=kubernetes.io/service-name=davit", `--output=jsonpath=${readyAddresses}`];
    return listed(await release.kubectl(["get", "endpointslices", ...words]));
  }

  async function followers(): Promise<readonly string[]> {
    const words = ["--selector=app.kubernetes.io/component=boot", "--output=jsonpath={.items[*].metadata.name}"];
    return listed(await release.kubectl(["get", "pods", ...words]));
  }

  async function readyFollowers(): Promise<string> {
    return await release.look("deployment/davit-boot", "{.status.readyReplicas}");
  }
}

const readyAddresses = "{.items[*].endpoints[?(@.conditions.ready==true)].addresses[0]}";

function listed(words: string): readonly string[] {
  return words.split(" ").filter((word) => word !== "");
}

type Annotate = (message: string) => Promise<unknown>;

export async function expectNoFailure(seen: BootsSeen, annotate: Annotate): Promise<void> {
  await annotate(told(seen));
  expect(seen.failures).toEqual([]);
  expect(seen.boots).toBeGreaterThan(10);
}

/** What became of the boots, in a line. */
export function told({ boots, waits, reconnects, restarts, longestMs, longestGapMs, failures }: BootsSeen): string {
  const kinds = [...new Set(failures)].slice(0, maxKinds).join(", ");
  const failed = failures.length === 0 ? "none failed" : `${failures.length} failed (${kinds})`;
  const again = restarts === 0 ? "" : `, began ${restarts} times again`;
  const waited = `told to wait ${waits} times, connected again ${reconnects} times${again}`;
  return `${boots} boots, ${failed}; ${waited}; longest ${longestMs} ms, longest time without one ${longestGapMs} ms`;
}

const maxKinds = 5;
