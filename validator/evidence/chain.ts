/** Whether documents or epochs, one after the other, are a chain from where its head says that it begins to where it ends. Pure. */
import type { EvidenceHeadRow } from '../store/tables.ts';

/** What is wrong with a chain, at one document or, where `seq` is null, as a whole. */
export type ChainProblem = { seq: number | null; problem: string };

/** One document; `previous` is undefined where its text cannot be read. */
export type Link = { id: string; seq: number; previous: string | null | undefined };

/** Where a chain begins and ends, by somebody who vouches for it. */
export type Head = Pick<EvidenceHeadRow, 'first_seq' | 'first_previous' | 'last_seq' | 'last_id'>;

type Gap = { from: number; to: number };

/** `head`: as it counted before the documents were read; null where nobody can say whether all of them are there. */
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
      problems.push({ seq, problem: 'it does not follow the one before' });
    }
    if (head?.last_seq === seq && head.last_id !== id) problems.push({ seq, problem: OTHER_END });
    next = { seq: seq + 1, id };
  }

  return {
    /** In the order of their numbers. */
    add(link: Link): void {
      compare(link);
      last = link;
    },

    /** What is wrong; `after`: the head as it counts now, for a validator may have written and forgotten meanwhile. */
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
  'the signed head of its chain is gone or does not count: nothing says whether it is whole';
const OLDER = 'the head of its chain was begun anew after it and does not vouch for it';
const BEYOND = 'it lies behind the end that the head of its chain names';
const OTHER_END = 'the head of its chain names another document in its place';

function problemOf({ from, to }: Gap): ChainProblem {
  const problem = from === to ? 'it is missing' : `all from it to ${to} are missing`;
  return { seq: from, problem };
}
