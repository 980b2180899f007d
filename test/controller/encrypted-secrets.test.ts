/** How the controller stores texts of Secrets by keys, and what machines get meanwhile: after each change of the store. */

import { afterEach, describe, expect, it } from "vitest";
import type { TemplateSource } from "../../src/model/objects/profile.ts";
import { keyOfSecret } from "../../src/model/objects/secret-texts.ts";
import { storePath } from "../../src/store/core/node.ts";
import { ChangingTexts, textKey } from "../helpers/text-keys.ts";
import { sha256 } from "./around.ts";
import { ControllerUnderTest } from "./controller-under-test.ts";
import { configMapObject, groupObject, profileObject, secretObject } from "./objects.ts";

const text = "join-token-4711";
const machine = { mac: "52:54:00:a1:9c:ae" };
const [first, second] = [1, 2];
const generic: TemplateSource = { kind: "secret", name: "secrets", key: "k", raw: true };

let under: ControllerUnderTest;
afterEach(() => under.stop());

async function start(secretTexts: ChangingTexts): Promise<void> {
  under = await ControllerUnderTest.start({ secretTexts });
  under.source.put(profileObject({ templates: { generic } }), groupObject(), secretObject({ k: text })).tellListed();
  await under.settled();
}

/** The stored texts of Secrets, by path. */
function secrets(): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  const replaced = (documents: Iterable<readonly [path: string, text: string]>) => {
    for (const [path, stored] of documents) found.set(path, stored);
  };
  under.store.follow("/davit/_secrets", { replaced, changed: () => {} })();
  return found;
}

const keysInUse = () => [...secrets().keys()].map(keyOfSecret);
const answer = () => under.config("generic", machine);

/** Everything in the store and its history. */
function everything(): string {
  return JSON.stringify(
    [...under.store.dump()].concat(under.store.events.flatMap(({ node, prevNode }) => [node, prevNode ?? node])),
  );
}

describe("with a key", () => {
  it("the store and its history have the text only encrypted, and machines get the text", async () => {
    await start(new ChangingTexts(first));
    expect(answer()).toBe(text);
    expect(keysInUse()).toEqual([textKey(first).id]);
    expect(everything()).not.toContain(text);
    // Its SHA-256 would let a reader check guesses.
    expect(everything()).not.toContain(sha256(text));
  });

  it("an unchanged text is not written again, and a changed one is", async () => {
    await start(new ChangingTexts(first));
    const { storeIndex } = under.store.indexes;
    const before = secrets();
    await under.lookAgain();
    expect(under.store.indexes.storeIndex).toBe(storeIndex);
    under.source.put(secretObject({ k: "changed" }));
    await under.lookAgain();
    expect(answer()).toBe("changed");
    expect([...secrets().keys()]).not.toEqual([...before.keys()]);
    expect(secrets().size).toBe(1);
  });

  it.each<[name: string, change: (stored: string) => string]>([
    ["was changed", (stored) => `${stored.slice(0, 20)}AAAA${stored.slice(24)}`],
    ["is empty", () => ""],
    ["is in the clear", () => "other text"],
  ])("a stored text that %s is never served, and written again at the next look", async (_, change) => {
    await start(new ChangingTexts(first));
    const [[path, stored] = ["", ""]] = [...secrets()];
    const seen = under.watchConfig("generic", machine);
    await under.store.submit({ kind: "set", path: storePath(path), value: change(stored) });
    expect(answer()).toBe("undecryptable");
    await under.lookAgain();
    expect(answer()).toBe(text);
    expect(seen).toEqual([text, "undecryptable", text]);
  });
});

describe("a change of keys", () => {
  it.each<[name: string, from: readonly number[], to: readonly number[]]>([
    ["from none to one", [], [first]],
    ["from one to a new first one", [first], [second, first]],
    ["from one to another", [first], [second]],
  ])("%s writes the text anew, and machines get the text or wait", async (_, from, to) => {
    const keys = new ChangingTexts(...from);
    await start(keys);
    const seen = under.watchConfig("generic", machine);
    keys.change(...to);
    under.keysChanged();
    await under.lookAgain();
    expect(answer()).toBe(text);
    expect(keysInUse()).toEqual([textKey(to[0] ?? 0).id]);
    expect(seen.filter((each) => each !== text && each !== "undecryptable")).toEqual([]);
    expect(under.statuses.ready("Profile/web")).toBe("Ready");
    // Nothing more to do.
    const { storeIndex } = under.store.indexes;
    await under.lookAgain();
    expect(under.store.indexes.storeIndex).toBe(storeIndex);
  });

  it("encrypts the text of an older version, too, which the source no longer has", async () => {
    const keys = new ChangingTexts();
    await start(keys);
    const broken: TemplateSource = { kind: "configMap", name: "templates", key: "absent", raw: false };
    under.source.put(configMapObject({}), secretObject({ k: "newer" }));
    under.source.put(profileObject({ templates: { generic, ignition: broken } }));
    await under.lookAgain();
    expect(answer()).toBe(text);
    for (const numbers of [[first], [second, first]]) {
      keys.change(...numbers);
      under.keysChanged();
      await under.lookAgain();
      expect([answer(), keysInUse()]).toEqual([text, [textKey(numbers[0] ?? 0).id]]);
    }
    expect([...secrets().values()].join()).not.toContain(text);
  });

  it("keeps the text of an older version whose key is lost, and its machines wait until the Profile is repaired", async () => {
    const keys = new ChangingTexts(first);
    await start(keys);
    const broken: TemplateSource = { kind: "configMap", name: "templates", key: "absent", raw: false };
    under.source.put(profileObject({ templates: { generic, ignition: broken } }), secretObject({ k: "newer" }));
    await under.lookAgain();
    keys.change(second);
    under.keysChanged();
    await under.lookAgain();
    expect([answer(), keysInUse()]).toEqual(["undecryptable", [textKey(first).id]]);
    under.source.put(profileObject({ templates: { generic } }));
    await under.lookAgain();
    expect([answer(), keysInUse()]).toEqual(["newer", [textKey(second).id]]);
  });
});

it("A Profile that goes takes its encrypted texts along", async () => {
  await start(new ChangingTexts(first));
  under.source.drop({ kind: "Profile", namespace: "default", name: "web" });
  await under.lookAgain();
  expect(secrets().size).toBe(0);
});
