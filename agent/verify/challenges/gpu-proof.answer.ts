/** What the program in `agent/gpu-proof` says: JSON line by line, believed only in this form. */
import { z } from 'zod';
import {
  CARD_FAULTS,
  type CardCommitment,
  MAX_OPENED_ROWS,
  OpenedRow,
  Product,
  Walked,
} from '#shared/api/agent/challenges.ts';

/** A row of the largest product is 88 KiB of base64, its path one more. */
const MAX_LINE_CHARS = 100_000;
/** Of one run; more is no answer. */
export const MAX_ANSWER_CHARS = MAX_OPENED_ROWS * MAX_LINE_CHARS;

const Fault = z.object({ fault: z.string(), detail: z.string().max(1_000) });
const Committed = z.object({
  roots: Product.shape.roots,
  product_ms: Product.shape.ms,
  memory: Walked.nullable(),
});

type CardFault = NonNullable<CardCommitment['fault']>;

/** What a run came to: what its card says of itself, or why there is nothing. */
export type Answer<T> = { done: T } | { fault: CardFault };

/** Of `commit`: one line. */
export function readCommitted(text: string): Answer<Pick<CardCommitment, 'product' | 'memory'>> {
  const line = jsonLines(text)?.[0];
  const committed = Committed.safeParse(line);
  if (!committed.success) return { fault: faultIn(line) };
  const { roots, product_ms: ms, memory } = committed.data;
  return { done: { product: { roots, ms }, memory } };
}

/** Of `open`: a line for each row. */
export function readOpened(text: string): Answer<OpenedRow[]> {
  const lines = jsonLines(text);
  const rows = z.array(OpenedRow).max(MAX_OPENED_ROWS).safeParse(lines);
  return rows.success ? { done: rows.data } : { fault: faultIn(lines?.at(-1)) };
}

/** A fault of ours to tell where nothing better is known. */
export function failedWith(detail: string): CardFault {
  return { code: 'GPU_PROOF_FAILED', detail: detail.slice(0, 1_000) };
}

function faultIn(line: unknown): CardFault {
  const said = Fault.safeParse(line);
  if (!said.success) return failedWith('The program gave no answer that is understood');
  const { fault, detail } = said.data;
  const code = CARD_FAULTS.find((known) => known === fault);
  return code === undefined ? failedWith(detail) : { code, detail };
}

function jsonLines(text: string): unknown[] | null {
  try {
    const lines = text.split('\n').filter((line) => line !== '');
    return lines.map((line): unknown => JSON.parse(line));
  } catch {
    return null;
  }
}
