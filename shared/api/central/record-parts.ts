/** Members that records of validators share: limits, hashes, times and page parameters. */
import { z } from 'zod';
import { described } from '../described.ts';
import { queryNumber } from '../query-number.ts';

export const MAX_NUMBER = 1_000_000_000;
export const MAX_PAGE = 100;
export const MAX_VERDICTS = 1_000;
export const MAX_WEIGHTS = 1_000;
export const DEFAULT_PAGE = 20;
export const DEFAULT_ROWS = 100;

export const Sha256 = z.string().regex(/^[0-9a-f]{64}$/);
export const Signature = z.string().max(130);
/** UTC without offset, as `naiveUtc` formats it. */
export const Time = z.string().max(32);
export const Verdict = z.enum(['ok', 'failed', 'withheld']);
export const Share = z.number().min(0).max(1);
/** Text of a validator about a fact: bounded, so that a faulty one cannot fill a page. */
export const Text = z.string().max(2_000);

export const VERDICT = '`ok`, `failed`, or `withheld` if the checks could not be completed.';
export const NEXT = 'for the next page; null on the last page.';

export const olderThan = (what: string) =>
  described(
    {
      before: queryNumber(z.int().min(1).max(MAX_NUMBER)).optional(),
      limit: queryNumber(z.int().min(1).max(MAX_PAGE).default(DEFAULT_PAGE)),
    },
    {
      before: `Only ${what} with a lower number; absent for the newest.`,
      limit: 'Maximum number of entries, 1 to 100; 20 by default.',
    },
  );

export const NumberParams = z.object({ number: queryNumber(z.int().min(1).max(MAX_NUMBER)) });
export const ExecutorParams = z.object({ id: z.uuid().toLowerCase() });

export const SIGNED_TEXT =
  'Text before the signed one: the signature is sr25519 over both, as UTF-8. It ends with a line break.';
