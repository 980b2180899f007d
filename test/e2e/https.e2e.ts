/** The chart's `https`: configs by HTTPS alone, for machines and pods, and a certificate that changes meanwhile. */

import { afterAll } from "vitest";
import { httpsSteps } from "./https-steps.ts";
import { imageSteps } from "./install-steps.ts";
import { Stage } from "./stage.ts";

const stage = await Stage.open(process.env);
afterAll(() => stage.close());

imageSteps(stage);
httpsSteps(stage);
