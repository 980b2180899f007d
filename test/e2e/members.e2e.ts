/**
 * Several members of davit and of etcd on a real cluster, by the commands of docs/operate/several-members.md, and the
 * faults that they are for: while machines boot, and while clients count in the store.
 */

import { afterAll, describe, it } from "vitest";
import { imageSteps } from "./install-steps.ts";
import { memberSteps } from "./member-steps.ts";
import { readSettings } from "./settings.ts";
import { pageNamespace, Stage } from "./stage.ts";

const { etcdImage } = readSettings(process.env);
if (etcdImage === undefined) {
  describe("several members", () => it.skip("need an image of etcd: E2E_ETCD_IMAGE is not set", () => {}));
} else {
  const stage = await Stage.open(process.env, pageNamespace);
  afterAll(() => stage.close());
  imageSteps(stage);
  memberSteps(stage, etcdImage);
}
