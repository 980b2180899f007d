import { expect, it } from "vitest";
import { lint } from "../../../src/offline/lint/lint.ts";
import { loadManifests } from "../../../src/offline/load/load-manifests.ts";
import { silentLog } from "../../helpers/test-store.ts";
import { groupText, profileText, stream } from "../../sources/directory/manifests.ts";

it("what the input has of a kind is looked at once, however many objects there are", async () => {
  const profiles = Array.from({ length: 50 }, (_, at) =>
    profileText(`p${at}`, `  generic: {templateFrom: {configMapKeyRef: {name: absent-${at}, key: a}}}`),
  );
  const input = Buffer.from(stream(...profiles, groupText("a")));
  const manifests = await loadManifests({ directories: [], input, log: silentLog });
  let looks = 0;
  const view: typeof manifests.view = Object.create(manifests.view, {
    all: {
      value: (kind: Parameters<typeof manifests.view.all>[0]) => {
        if (kind === "ConfigMap") looks++;
        return manifests.view.all(kind);
      },
    },
    get: { value: manifests.view.get.bind(manifests.view) },
    complete: { value: manifests.view.complete },
    problems: { value: manifests.view.problems },
  });
  const options = { directories: [], readsInput: true, lookAt: undefined, nowMs: 0, progress: () => undefined };
  const findings = await lint({ ...manifests, view }, options);
  expect(findings.filter(({ code }) => code === "not-in-input")).toHaveLength(50);
  expect(looks).toBe(1);
});
