/**
 * Questions between two parts of davit in different threads or processes. A table has what is asked and the answer, by
 * the name of the question. Both sides are compiled against the table.
 */

/** The functions that answer the questions of a table. */
export type Answers<Table extends QuestionTable<Table>> = {
  readonly [Name in keyof Table]: (asked: Table[Name]["asked"]) => Promise<Table[Name]["answer"]>;
};

type QuestionTable<Table> = { readonly [Name in keyof Table]: { readonly asked: unknown; readonly answer: unknown } };
