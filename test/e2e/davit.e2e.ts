/**
 * davit on a real cluster, from the image to the end of its chart. The steps build on each other; each file has a part of
 * the story.
 *
 * Not in it: a node whose clock steps. All of a node's containers have the same clock, and it may be this computer's, too.
 * test/integration/wall-clock.test.ts steps that of one process of davit.
 */

import { afterAll } from "vitest";
import { bootSteps } from "./boot-steps.ts";
import { faultSteps } from "./fault-steps.ts";
import { followerSteps } from "./follower-steps.ts";
import { imageSteps, installSteps } from "./install-steps.ts";
import { keepSteps } from "./keep-steps.ts";
import { pageSteps } from "./page-steps.ts";
import { Stage } from "./stage.ts";

const stage = await Stage.open(process.env);
afterAll(() => stage.close());

imageSteps(stage);
installSteps(stage);
bootSteps(stage);
followerSteps(stage);
faultSteps(stage);
keepSteps(stage);
pageSteps(stage);
