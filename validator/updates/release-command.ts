/** `npm run validator -- release …`: what agents are to run, shown and changed in the ledger, beside a running validator or not. */
import { naiveUtc, systemClock } from '#shared/runtime/clock.ts';
import { ConfigError } from '#shared/runtime/config.ts';
import { Permille, VersionText } from '#shared/updates/update-manifest.ts';
import { withStore } from '../store/evidence-store.ts';
import type { AgentReleaseRow, EvidenceStore } from '../store/tables.ts';
import type { EvidenceCommandOptions, Output } from '../weights/evidence-commands.ts';
import { rollbackOf, targetOf } from './release.state.ts';
import { addRelease, listReleases, newestRelease, setRelease } from './release.store.ts';

const SHOWN = 10;
const MAX_TEXT_CHARS = 2_000;

/** Whether there is something to show. Rejects with ConfigError for what is no command or no value of it. */
export async function runReleaseCommand(
  { words, store: place }: Pick<EvidenceCommandOptions, 'words' | 'store'>,
  output: Output,
): Promise<boolean> {
  const work = commandOf(words.slice(1));
  return withStore(place, words[1] === 'show' ? 'read' : 'write', async (store) => {
    await work(store);
    const rows = await listReleases(store, SHOWN);
    if (rows.length === 0) output.complain('nothing was released yet\n');
    for (const row of rows) output.print(lineOf(row));
    return rows.length > 0;
  });
}

function commandOf([name, value, ...rest]: readonly string[]): (
  store: EvidenceStore,
) => Promise<void> {
  if (rest.length > 0) throw new ConfigError('one value at most, in quotes; see --help');
  switch (name) {
    case 'show':
      if (value === undefined) return async () => undefined;
      break;
    case 'rollout': {
      const isPermille = Permille.safeParse(Number(value)).success;
      const sinceMs = systemClock.now();
      return change({ rollout_permille: wholeNumber(value, isPermille), since_ms: sinceMs });
    }
    case 'min-sequence':
      return change({ min_sequence: wholeNumber(value, true) });
    case 'min-agent':
      if (!VersionText.safeParse(value).success) throw new ConfigError(`${value} is no version`);
      return change({ min_agent: value ?? '' });
    case 'notes':
      return change({ notes: plainText(value) });
    case 'rollback':
      return goBack(plainText(value));
  }
  throw new ConfigError(
    'release show, rollout, rollback, min-sequence, min-agent, notes; see --help',
  );
}

function change(values: Parameters<typeof setRelease>[2]): (store: EvidenceStore) => Promise<void> {
  return async (store) => {
    const newest = await newestRelease(store);
    if (newest !== undefined) await setRelease(store, newest.sequence, values);
  };
}

function goBack(reason: string): (store: EvidenceStore) => Promise<void> {
  return (store) =>
    store.transaction().execute(async (tx) => {
      const newest = await newestRelease(tx);
      if (newest === undefined) return;
      const next = rollbackOf(newest, { reason, nowMs: systemClock.now() });
      if (next === null) throw new ConfigError('there is nothing to go back to');
      await addRelease(tx, next);
    });
}

function wholeNumber(text: string | undefined, isFitting: boolean): number {
  if (isFitting && /^\d{1,9}$/.test(text ?? '')) return Number(text);
  throw new ConfigError(`${text ?? 'nothing'} is not a number that fits; see --help`);
}

/** What a manifest may hold. */
function plainText(text: string | undefined): string {
  if (text !== undefined && text.length <= MAX_TEXT_CHARS && /^[\x20-\x7e]+$/.test(text))
    return text;
  throw new ConfigError('a text of plain ASCII is missing; see --help');
}

function lineOf(row: AgentReleaseRow): string {
  const back =
    row.rollback_digest === null ? '' : ` instead of ${row.digest}: ${row.rollback_reason}`;
  const share = `${row.rollout_permille}/1000`;
  const least = `min-sequence ${row.min_sequence}, min-agent ${row.min_agent}`;
  return `${row.sequence}  ${naiveUtc(row.since_ms)}Z  ${targetOf(row)}  ${share}  ${least}${back}\n`;
}
