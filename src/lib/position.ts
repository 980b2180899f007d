/** A place in a text. Both numbers begin with 1. A column is a UTF-16 unit. */
export interface Position {
  readonly line: number;
  readonly column: number;
}
