/** Finds the route of a path. Most routes are found in a map; the few with a variable part are tried one by one. */

import { RequestError } from "./errors.ts";

/** In a URL, `:name` matches one name, and a `*` at the end matches the rest of the path. */
export interface Route {
  readonly url: string;
}

export interface RouteMatch<Kind extends Route> {
  readonly route: Kind;
  /** The text that the variable part matched; empty for a route without one. */
  readonly rest: string;
}

export class RouteTable<Kind extends Route> {
  readonly #exact: ReadonlyMap<string, RouteMatch<Kind>>;
  readonly #patterns: readonly (readonly [pattern: RegExp, route: Kind])[];

  /**
   * @param routes if several match a path, the first one wins. A route without a variable part wins over all others.
   */
  constructor(routes: readonly Kind[]) {
    const isExact = ({ url }: Kind) => !/[:*]/.test(url);
    this.#exact = new Map(routes.filter(isExact).map((route) => [route.url, { route, rest: "" }]));
    this.#patterns = routes.filter((route) => !isExact(route)).map((route) => [patternOf(route.url), route]);
  }

  /** @param path with its escapes decoded, as by `unescapedPath`. */
  find(path: string): RouteMatch<Kind> | undefined {
    return this.#exact.get(path) ?? this.#match(path);
  }

  #match(path: string): RouteMatch<Kind> | undefined {
    for (const [pattern, route] of this.#patterns) {
      const rest = pattern.exec(path)?.[1];
      if (rest !== undefined) return { route, rest };
    }
    return undefined;
  }
}

function patternOf(url: string): RegExp {
  const text = url
    .replaceAll(".", "\\.")
    .replace(/:[a-z]+/, "([^/]+?)")
    .replace(/\*$/, "([^]*)");
  return new RegExp(`^${text}$`);
}

/**
 * Decodes the escapes of a path. An escaped slash stays escaped, so a name that contains it remains one name.
 * @throws {RequestError} badRequest for a malformed escape, or for bytes that are not UTF-8.
 */
export function unescapedPath(path: string): string {
  if (!path.includes("%")) return path;
  try {
    return decodeURI(path);
  } catch {
    throw new RequestError("badRequest");
  }
}
