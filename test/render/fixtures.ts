import { createHash } from "node:crypto";
import type { JsonObject, JsonValue } from "../../src/model/json.ts";
import { type Group, toGroup } from "../../src/model/objects/group.ts";
import { RenderError } from "../../src/render/core/render-error.ts";
import { compileTemplate, type Variables } from "../../src/render/template/template.ts";

export const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");

export const compile = (text: string) => compileTemplate(text, { sha256 });

export function render(text: string, variables: Variables = {}): string {
  return compile(text).render(variables);
}

export function group({
  metadata = {},
  selector = {},
}: {
  readonly metadata?: JsonObject;
  readonly selector?: Readonly<Record<string, string>>;
}): Group {
  return toGroup("default", "web", {
    profile: "linux",
    selector,
    matchAll: false,
    priority: 0,
    hold: false,
    metadata,
  });
}

/** The RenderError that an action ends in. */
export function renderErrorOf(action: () => unknown): RenderError {
  try {
    action();
  } catch (error) {
    if (error instanceof RenderError) return error;
    throw error;
  }
  throw new Error("The action ended without an error");
}

/** A value with its lists and objects made by JSON.parse, as metadata arrives. */
export function parsed(text: string): JsonValue {
  const value: JsonValue = JSON.parse(text);
  return value;
}
