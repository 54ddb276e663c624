/** Describes lines of the journal. Pure. */
import type { LedgerLine, LedgerPage, User } from '../api/api.gen.ts';

/** Causes whose id begins with the id of a pod. */
const POD_CAUSES = [
  'usage',
  'pod-hold',
  'pod-hold-settled',
  'pod-hold-void',
  'provider-fault',
  'operator-refund',
];

const TITLES: Record<string, string> = {
  'signup-credit': 'Credit for the sign-up',
  'top-up': 'Payment',
  'top-up-refund': 'Payment returned',
  'top-up-dispute': 'Payment disputed',
  transfer: 'Transfer',
  'pod-hold': 'Reserved for a new pod',
  'pod-hold-settled': 'First charge of a pod',
  'pod-hold-void': 'Reservation released',
  usage: 'Use of a pod',
  'provider-fault': 'Refund: fault of the provider',
  'renter-report': 'Refund: confirmed report',
  'operator-refund': 'Refund by the operator',
  referral: 'Share of a referral',
};

/** Returns a title; causes that this version does not know keep their name. */
export function titleOf({ cause_type: type }: Pick<LedgerLine, 'cause_type'>): string {
  return TITLES[type] ?? type;
}

/** Returns the id of the pod that caused a line; null for other causes. */
export function podOf({
  cause_type: type,
  cause_id: id,
}: Pick<LedgerLine, 'cause_type' | 'cause_id'>) {
  return POD_CAUSES.includes(type) ? (id.split(':', 1)[0] ?? null) : null;
}

const MICRO_PER_USD = 1_000_000;

/** Micro-dollars that the journal of an account has at the time of its answer; null without a valid answer. */
export function postedMicro(user: Pick<User, 'balance' | 'unposted'> | undefined): number | null {
  return user === undefined ? null : microOf(user.balance + user.unposted);
}

/** Micro-dollars after the newest line of the newest page; null without lines. */
export function newestMicro(page: LedgerPage | string | undefined): number | null {
  // A malformed answer is shown by its panel.
  const lines = typeof page === 'object' && Array.isArray(page.lines) ? page.lines : [];
  const [newest] = lines;
  return newest === undefined ? null : microOf(newest.balance_usd);
}

function microOf(usd: number): number | null {
  const micro = Math.round(usd * MICRO_PER_USD);
  return Number.isNaN(micro) ? null : micro;
}

export const CSV_LINES = 1_000;
/** Limits an export to 200,000 lines, which a browser can hold. */
const MAX_PAGES = 200;

export type JournalCsv = { text: string; lines: number; isComplete: boolean };

/**
 * Reads the whole journal as CSV, oldest line first. `read` returns a page of at most `CSV_LINES` lines with a higher
 * number than `after`, below a line with the names of the columns; the first column is the number.
 */
export async function readJournalCsv(
  read: (after: number) => Promise<string>,
): Promise<JournalCsv> {
  const parts: string[] = [];
  let after = 0;
  let lines = 0;
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const text = await read(after);
    const rows = text.split('\r\n').slice(1, -1);
    const headEnd = text.indexOf('\r\n') + 2;
    parts.push(page === 0 ? text : text.slice(headEnd));
    lines += rows.length;
    if (rows.length < CSV_LINES) return { text: parts.join(''), lines, isComplete: true };
    after = Number(rows.at(-1)?.split(',', 1)[0]);
  }
  return { text: parts.join(''), lines, isComplete: false };
}
