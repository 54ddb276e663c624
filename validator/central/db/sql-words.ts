/** The few words in which the schemas of the two engines differ; migrations are written with these. */

export type SqlWords = {
  /** A 64 bit integer column. */
  int: string;
  /** A double precision column. */
  real: string;
  /** The type and constraint of an ever-growing integer key. */
  serial: string;
  /** Stands after a table's closing bracket. */
  tableEnd: string;
};

/** STRICT: a wrong type is refused instead of stored. */
export const SQLITE_WORDS: SqlWords = {
  int: 'integer',
  real: 'real',
  serial: 'integer primary key autoincrement',
  tableEnd: 'strict',
};
