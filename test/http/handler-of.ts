/** The boot listener's handler with routes of a test alone. */

import { BootError } from "../../src/boot/core/boot-error.ts";
import type { AccessLog } from "../../src/http/boot/access-log.ts";
import { type BootRoute, bootHandler } from "../../src/http/boot/routes.ts";

export function handlerOf(routes: readonly BootRoute[], accessLog?: AccessLog) {
  const render = () => {
    throw new BootError("noMatch");
  };
  return bootHandler({ configs: { render }, routes, ...(accessLog && { accessLog }) });
}
