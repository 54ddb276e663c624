/**
 * `npm run validator -- release …`: shows and changes agent releases in the evidence store, whether or not a validator
 * runs.
 */
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

/** Returns false if there is no release. Rejects with ConfigError for an unknown command or an invalid value. */
export async function runReleaseCommand(
  { words, store: place }: Pick<EvidenceCommandOptions, 'words' | 'store'>,
  output: Output,
): Promise<boolean> {
  const work = commandOf(words.slice(1));
  return withStore(place, words[1] === 'show' ? 'read' : 'write', async (store) => {
    await work(store);
    const rows = await listReleases(store, SHOWN);
    if (rows.length === 0) output.complain('there is no release yet\n');
    for (const row of rows) output.print(lineOf(row));
    return rows.length > 0;
  });
}

function commandOf([name, value, ...rest]: readonly string[]): (
  store: EvidenceStore,
) => Promise<void> {
  if (rest.length > 0) throw new ConfigError('at most one value, in quotes; see --help');
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
      if (!VersionText.safeParse(value).success) throw new ConfigError(`${value} is not a version`);
      return change({ min_agent: value ?? '' });
    case 'notes':
      return change({ notes: plainText(value) });
    case 'rollback':
      return rollBack(plainText(value));
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

function rollBack(reason: string): (store: EvidenceStore) => Promise<void> {
  return (store) =>
    store.transaction().execute(async (tx) => {
      const newest = await newestRelease(tx);
      if (newest === undefined) return;
      const next = rollbackOf(newest, { reason, nowMs: systemClock.now() });
      if (next === null) throw new ConfigError('there is no release to return to');
      await addRelease(tx, next);
    });
}

function wholeNumber(text: string | undefined, isValid: boolean): number {
  if (isValid && /^\d{1,9}$/.test(text ?? '')) return Number(text);
  throw new ConfigError(`${text ?? 'nothing'} is not a valid number; see --help`);
}

/** Returns the text if a manifest may contain it. */
function plainText(text: string | undefined): string {
  if (text !== undefined && text.length <= MAX_TEXT_CHARS && /^[\x20-\x7e]+$/.test(text))
    return text;
  throw new ConfigError('a text in ASCII is required; see --help');
}

function lineOf(row: AgentReleaseRow): string {
  const back =
    row.rollback_digest === null ? '' : ` instead of ${row.digest}: ${row.rollback_reason}`;
  const share = `${row.rollout_permille}/1000`;
  const least = `min-sequence ${row.min_sequence}, min-agent ${row.min_agent}`;
  return `${row.sequence}  ${naiveUtc(row.since_ms)}Z  ${targetOf(row)}  ${share}  ${least}${back}\n`;
}
