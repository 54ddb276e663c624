/** Verifies that documents or epochs form an unbroken chain between the ends that a signed head states. Pure. */
import type { EvidenceHeadRow } from '../store/tables.ts';

/** Problem at one document, or of the whole chain if `seq` is null. */
export type ChainProblem = { seq: number | null; problem: string };

/** One document; `previous` is undefined if its text cannot be read. */
export type Link = { id: string; seq: number; previous: string | null | undefined };

/** First and last document of a chain, as signed. */
export type Head = Pick<EvidenceHeadRow, 'first_seq' | 'first_previous' | 'last_seq' | 'last_id'>;

type Gap = { from: number; to: number };

/** `head` is the trusted head before the documents were read; null if there is none. */
export function createChainCheck(head: Head | null) {
  const problems: ChainProblem[] = [];
  const gaps: Gap[] = [];
  let next = head === null ? null : { seq: head.first_seq, id: head.first_previous };
  let last: Link | null = null;

  function compare(link: Link): void {
    const { seq, id, previous } = link;
    if (head !== null && seq < head.first_seq) {
      problems.push({ seq, problem: OLDER });
      return;
    }
    if (next !== null && seq > next.seq) gaps.push({ from: next.seq, to: seq - 1 });
    else if (next !== null && previous !== undefined && previous !== next.id) {
      problems.push({ seq, problem: 'it does not follow the previous one' });
    }
    if (head?.last_seq === seq && head.last_id !== id) problems.push({ seq, problem: OTHER_END });
    next = { seq: seq + 1, id };
  }

  return {
    /** Call in the order of `seq`. */
    add(link: Link): void {
      compare(link);
      last = link;
    },

    /** All problems. `after` is the trusted head now: a running validator may have written and pruned meanwhile. */
    end(after: Head | null): ChainProblem[] {
      if (head === null || after === null) return [...problems, { seq: null, problem: HEADLESS }];
      const follows = next?.seq ?? head.first_seq;
      if (follows <= head.last_seq) gaps.push({ from: follows, to: head.last_seq });
      if (last !== null && last.seq > after.last_seq) {
        problems.push({ seq: last.seq, problem: BEYOND });
      }
      const missing = gaps.filter(({ to }) => to >= after.first_seq).map(problemOf);
      return [...problems, ...missing];
    },
  };
}

const HEADLESS =
  'the signed head of its chain is missing or not trusted: the chain may be incomplete';
const OLDER = 'the head of its chain was created again later and does not cover it';
const BEYOND = 'it is newer than the last document that the head of its chain names';
const OTHER_END = 'the head of its chain names another document in its place';

function problemOf({ from, to }: Gap): ChainProblem {
  const problem = from === to ? 'it is missing' : `all up to ${to} are missing`;
  return { seq: from, problem };
}
