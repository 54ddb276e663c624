/** Queries of the evidence store that are compiled once, because they run with every check. */
import { columnsFrom, prepareFor, type Slots } from '../database/prepared.ts';
import type { Tables } from './tables.ts';

export { columnsFrom, type Slots };

/** Compiles a query of the evidence store once. */
export const prepared = prepareFor<Tables>();
