/** What the columns of many tables have in common. */

/** A truth value: neither engine's own type, for SQLite has none. */
export type Flag = 0 | 1;

/** Milliseconds UTC. */
export type Stamped = { created_at: number; updated_at: number };
