/**
 * The DaemonSet of dnsmasq on a node: machines of all firmware in the node's network boot from it and davit alone, beside
 * a DHCP server and without one.
 */

import { afterAll, describe, it } from "vitest";
import { dnsmasqSteps } from "./dnsmasq-steps.ts";
import { imageSteps } from "./install-steps.ts";
import { readSettings } from "./settings.ts";
import { Stage } from "./stage.ts";

const { enterNode } = readSettings(process.env);
if (enterNode === undefined) {
  describe("dnsmasq", () => it.skip("needs the network of a node: E2E_ENTER_NODE is not set", () => {}));
} else {
  const stage = await Stage.open(process.env);
  afterAll(() => stage.close());
  imageSteps(stage);
  dnsmasqSteps(stage, enterNode);
}
