/** The condition `AssetsReady` of a Profile. */

import { expect, it } from "vitest";
import type { AssetState, ProfileAsset } from "../../src/model/objects/profile.ts";
import type { ProfileObject } from "../../src/model/objects/source.ts";
import { ControllerUnderTest } from "./controller-under-test.ts";
import { profileObject } from "./objects.ts";

const assets: readonly ProfileAsset[] = ["a", "b"].map((name) => ({
  name,
  url: `http://mirror.example/${name}`,
  sha256: "0f".repeat(32),
}));
const fetched: AssetState = { reason: "Fetched", message: "is there" };

/** A controller over a Profile with two assets, and over their states, which a test may change. */
async function start(states: Map<string, AssetState> | undefined) {
  const stateOf = ({ name }: Pick<ProfileAsset, "name">) => states?.get(name);
  const under = await ControllerUnderTest.start(states === undefined ? {} : { assets: { stateOf } });
  await list(under, profileObject({ assets }));
  return under;
}

async function list(under: ControllerUnderTest, ...profiles: readonly ProfileObject[]) {
  under.source.put(...profiles).tellListed();
  await under.synced;
  await under.settled();
}

const shown = ({ statuses }: ControllerUnderTest) => statuses.conditions("Profile/web").AssetsReady;

it("is absent from a Profile without assets", async () => {
  const under = await ControllerUnderTest.start();
  await list(under, profileObject());
  expect(under.statuses.conditions("Profile/web")).toMatchObject({ Ready: "True Ready" });
  expect(shown(under)).toBeUndefined();
  await under.stop();
});

it("says that there is no assets directory", async () => {
  const under = await start(undefined);
  expect(shown(under)).toBe("False NoAssetsDirectory");
  await under.stop();
});

it("follows the downloads, has the worst reason, names each missing asset, and leaves Ready alone", async () => {
  const states = new Map<string, AssetState>();
  const under = await start(states);
  expect(shown(under)).toBe("False Waiting");
  states.set("a", { reason: "Fetching", message: "is being fetched: 20 %" });
  states.set("b", { reason: "FetchFailed", message: "cannot be fetched" });
  await under.clock.advance(1_000);
  expect(under.statuses.conditions("Profile/web")).toMatchObject({
    AssetsReady: "False FetchFailed",
    Ready: "True Ready",
  });
  const message = '"a" is being fetched: 20 %; "b" cannot be fetched';
  expect(under.statuses.message("Profile/web", "AssetsReady")).toBe(message);
  const { writes } = under.statuses;
  await under.clock.advance(60_000);
  expect(under.statuses.writes).toBe(writes);
  states.set("a", fetched).set("b", fetched);
  await under.clock.advance(1_000);
  expect(shown(under)).toBe("True Fetched");
  await under.stop();
});

it("names the files for which machines wait that want to install, until none waits", async () => {
  const files: string[] = [];
  const missing = {
    of: (profile: string) => (profile === "default/web" ? files : []),
    get profiles() {
      return files.length === 0 ? [] : ["default/web", "default/gone"];
    },
  };
  const under = await ControllerUnderTest.start({ missing });
  await list(under, profileObject());
  expect(shown(under)).toBeUndefined();
  files.push("/assets/linux");
  await under.clock.advance(1_000);
  expect(under.statuses.conditions("Profile/web")).toMatchObject({ AssetsReady: "False Missing", Ready: "True Ready" });
  expect(under.statuses.message("Profile/web", "AssetsReady")).toContain('"/assets/linux"');
  files.pop();
  await under.clock.advance(1_000);
  expect(shown(under)).toBeUndefined();
  await under.stop();
});

it("outside of the admin namespace an asset begins with the namespace, or it is not fetched", async () => {
  const under = await ControllerUnderTest.start({ adminNamespace: "infra" });
  const own = assets.map((asset) => ({ ...asset, name: `default/${asset.name}` }));
  await list(under, profileObject({ assets: own }, "good"), profileObject({ assets: [...own, ...assets] }, "bad"));
  expect(under.stored("/davit/profiles/default/good").join()).toContain('"name":"default/a"');
  expect(under.stored("/davit/profiles/default/bad").join()).not.toContain('"name":"a"');
  expect(under.statuses.conditions("Profile/good")).toMatchObject({ Accepted: "True Valid" });
  expect(under.statuses.conditions("Profile/bad")).toMatchObject({ Accepted: "False NotPermitted" });
  expect(under.statuses.message("Profile/bad")).toContain(
    'spec.assets[a].name: outside of namespace "infra" it begins with "default/": correct it',
  );
  await under.stop();
});
