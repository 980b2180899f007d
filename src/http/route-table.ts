/** Finds the route of a path: most by one look into a map, the few with a variable part by their patterns. */

import { RequestError } from "./errors.ts";

/** `:name` in a URL stands for one name, and a `*` at its end for all the rest. */
export interface Route {
  readonly url: string;
}

export interface RouteMatch<Kind extends Route> {
  readonly route: Kind;
  /** What the variable part stands for. */
  readonly rest: string;
}

export class RouteTable<Kind extends Route> {
  readonly #exact: ReadonlyMap<string, RouteMatch<Kind>>;
  readonly #patterns: readonly (readonly [pattern: RegExp, route: Kind])[];

  /** @param routes the first of several that match a path wins, but an exact one before all others. */
  constructor(routes: readonly Kind[]) {
    const isExact = ({ url }: Kind) => !/[:*]/.test(url);
    this.#exact = new Map(routes.filter(isExact).map((route) => [route.url, { route, rest: "" }]));
    this.#patterns = routes.filter((route) => !isExact(route)).map((route) => [patternOf(route.url), route]);
  }

  /** @param path without escapes. */
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
 * A path without its escapes; a slash stays escaped, so that it never separates names.
 * @throws {RequestError} badRequest for escapes that are none, or not UTF-8.
 */
export function unescapedPath(path: string): string {
  if (!path.includes("%")) return path;
  try {
    return decodeURI(path);
  } catch {
    throw new RequestError("badRequest");
  }
}
