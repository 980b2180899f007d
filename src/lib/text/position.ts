/** A place in a text. Both numbers begin with 1. Columns count UTF-16 units. */
export interface Position {
  readonly line: number;
  readonly column: number;
}
