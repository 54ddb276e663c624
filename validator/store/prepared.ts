/** Queries of the evidence store that are compiled once, because they run with every check. */
import { columnsFrom, idsJson, isListed, prepareFor, type Slots } from '../database/prepared.ts';
import type { Tables } from './tables.ts';

export { columnsFrom, idsJson, isListed, type Slots };

/** Compiles a query of the evidence store once. */
export const prepared = prepareFor<Tables>();
