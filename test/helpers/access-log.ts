import { type AccessLog, type FollowingOptions, requestFollower } from "../../src/http/boot/access-log.ts";
import { type RequestLogOptions, requestLog } from "../../src/http/boot/request-log.ts";

/** An access log as the first thread has it. */
export function accessLog(options: RequestLogOptions & Pick<FollowingOptions, "clock">): AccessLog {
  return requestFollower({ clock: options.clock, follow: requestLog(options) });
}
