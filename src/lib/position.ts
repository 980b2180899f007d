/** A place in a text, as people count it: both numbers from 1, columns in UTF-16 units. */
export interface Position {
  readonly line: number;
  readonly column: number;
}
