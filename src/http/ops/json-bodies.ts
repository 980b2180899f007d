/** Bodies of requests to the operations listener. */

import type { FastifyInstance } from "fastify";
import { parseJsonObject } from "../../model/json.ts";
import { RequestError } from "../errors.ts";

/** Admits only JSON objects as bodies: a web page can send only other types without asking davit first. */
export function jsonBodies(app: FastifyInstance, maxBytes: number): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("application/json", { parseAs: "string", bodyLimit: maxBytes }, (_request, body, done) => {
    const value = parseJsonObject(String(body));
    if (value === undefined) done(new RequestError("badBody"));
    else done(null, value);
  });
}
