/**
 * Parses a request's target as it was sent. URL libraries resolve `..`, `%2e` and `//` silently. The protocol answers
 * them with a redirect, so this reads the raw text.
 */

import { type StorePath, storePath } from "../../store/core/node.ts";
import { pathEnd } from "../exchange.ts";
import { decodeEscapes, hasBadEscape } from "./form.ts";

type Target =
  /** `path` is decoded and clean. */
  | { readonly kind: "path"; readonly path: string; readonly query: string }
  | { readonly kind: "redirect"; readonly location: string }
  | { readonly kind: "malformed" };

const keysPrefix = "/v2/keys";

// Matches nearly every target: it has no escapes, no empty names, and no name `.` or `..`.
const plainTarget = /^(?:\/(?!\.{1,2}(?:[/?]|$))[\w.~!$'()*,:@+=&-]+)+(?:\?[\x21-\x7e]*)?$/;

/** Parses a target in origin or absolute form. Bytes above ASCII must be escaped. */
export function parseTarget(raw: string): Target {
  if (plainTarget.test(raw)) {
    const end = pathEnd(raw);
    return { kind: "path", path: raw.slice(0, end), query: raw.slice(end + 1) };
  }
  const target = raw.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/?]*/i, "");
  const end = pathEnd(target);
  const rawPath = target.slice(0, end);
  if (!/^[\x21-\x7e]*$/.test(target) || hasBadEscape(rawPath)) return { kind: "malformed" };
  const path = decodeEscapes(rawPath);
  const clean = cleanPath(path);
  const query = target.slice(end + 1);
  if (clean === path) return { kind: "path", path, query };
  return { kind: "redirect", location: encodePath(clean) + (query === "" ? "" : `?${query}`) };
}

/** Returns the key that a path names; undefined for a path outside `/v2/keys`. */
export function keyOf(path: string): StorePath | undefined {
  if (path !== keysPrefix && !path.startsWith(`${keysPrefix}/`)) return undefined;
  const key = path.slice(keysPrefix.length);
  return storePath(key.replace(/\/$/, "") || "/");
}

// Cleans a path like Go's net/http (cleanPath of ServeMux): resolves `.` and `..`, and removes empty names. One
// trailing slash stays.
function cleanPath(path: string): string {
  const segments: string[] = [];
  for (const segment of path.split("/")) {
    if (segment === "..") segments.pop();
    else if (segment !== "" && segment !== ".") segments.push(segment);
  }
  const clean = `/${segments.join("/")}`;
  return path.endsWith("/") && clean !== "/" ? `${clean}/` : clean;
}

// Escapes a path like Go's net/url, which escapes fewer characters than encodeURIComponent, and also `!*'()`.
function encodePath(path: string): string {
  return encodeURIComponent(path)
    .replaceAll(/[!*'()]/g, (mark) => `%${mark.charCodeAt(0).toString(16).toUpperCase()}`)
    .replaceAll(/%(?:24|26|2B|2C|2F|3A|3B|3D|40)/g, (found) =>
      String.fromCharCode(Number.parseInt(found.slice(1), 16)),
    );
}
