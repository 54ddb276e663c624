/** The commands explain, replay and evidence export of `npm run validator`, which read the evidence store. */
import { ConfigError } from '#shared/runtime/config.ts';
import { nearestName } from '#shared/runtime/nearest-name.ts';
import type { TrustedHotkey } from '../keys/trusted-hotkeys.ts';
import { type StoreLocation, withStore } from '../store/evidence-store.ts';
import type { EvidenceStore } from '../store/tables.ts';
import { findEpoch, lastEpoch } from './epoch.store.ts';
import { epochIdOf } from './epoch-chain.ts';
import { type ExportOptions, exportEvidence } from './evidence-export.ts';
import { explanationOf, NO_WEIGHTS } from './explain.ts';
import { type PublishedWeights, truncationProblems } from './published-weights.ts';
import { type Replay, replayEpoch, weightsUnder } from './replay.ts';
import { readWeightPolicy, type WeightPolicy } from './weight-policy.ts';

export type EvidenceCommandOptions = {
  words: readonly string[];
  store: StoreLocation;
  /** Policy to use instead of the stored one. */
  policyFile: string | null;
  /** Trusted signers. Rejects with ConfigError if they cannot be determined. */
  keys(): Promise<readonly TrustedHotkey[]>;
  /** Weights that the central API has acknowledged; null if no central API is known. */
  published: PublishedWeights | null;
};

/** Standard output and standard error of a command. */
export type Output = { print(text: string): void; complain(text: string): void };

/** Resolves with false if a problem was found. Rejects with ConfigError for invalid arguments. */
export async function runEvidenceCommand(
  ask: EvidenceCommandOptions,
  output: Output,
): Promise<boolean> {
  const work = commandOf(ask);
  return withStore(ask.store, 'read', (store) => work(store, output));
}

/** Maximum number of problems printed per replay. */
const MAX_PROBLEMS = 100;

type Command = (store: EvidenceStore, output: Output) => Promise<boolean>;

const COMMANDS = ['explain', 'replay', 'evidence'] as const;
const USAGE: Readonly<Record<(typeof COMMANDS)[number], string>> = {
  explain: 'explain takes the id of one EXECUTOR, as the portal and GET /executors show it',
  replay: 'replay takes one EPOCH, a number from 1; the last epoch by default',
  evidence: 'evidence takes export and optionally the id of one EXECUTOR',
};

function commandOf(ask: EvidenceCommandOptions): Command {
  const { words, policyFile } = ask;
  const name = COMMANDS.find((each) => each === words[0]);
  if (name === undefined) {
    const nearest = nearestName(words[0] ?? '', COMMANDS);
    const hint = nearest === null ? '' : `did you mean ${nearest}? `;
    throw new ConfigError(`unknown command ${words.join(' ')}; ${hint}see --help`);
  }
  const command = commandIn(name, ask);
  if (command === null) throw new ConfigError(`${USAGE[name]}; see --help`);
  if (policyFile !== null && name !== 'replay') {
    throw new ConfigError('--policy requires replay EPOCH; see --help');
  }
  return command;
}

/** Parses the arguments of a command; null if the command does not accept them. */
function commandIn(name: keyof typeof USAGE, ask: EvidenceCommandOptions): Command | null {
  const [, argument, third, ...rest] = ask.words;
  if (rest.length > 0 || (third !== undefined && name !== 'evidence')) return null;
  switch (name) {
    case 'explain':
      if (argument === undefined) return null;
      return async (store, output) => explain(store, { executorId: argument, ask }, output);
    case 'replay':
      if (argument !== undefined && !/^\d{1,9}$/.test(argument)) return null;
      return replayOf(argument === undefined ? null : Number(argument), ask);
    case 'evidence':
      if (argument !== 'export') return null;
      return async (store, output) =>
        exportAll(
          store,
          { executorId: third ?? null, keys: await ask.keys() },
          ask.published,
          output,
        );
  }
}

function replayOf(epoch: number | null, ask: EvidenceCommandOptions): Command {
  const { policyFile, keys, published } = ask;
  if (policyFile === null) {
    return async (store, output) => replay(store, epoch, { keys: await keys(), published, output });
  }
  const policy = readWeightPolicy(policyFile);
  return (store, output) => tryPolicy(store, epoch, policy, output);
}

async function explain(
  store: EvidenceStore,
  { executorId, ask }: { executorId: string; ask: EvidenceCommandOptions },
  output: Output,
): Promise<boolean> {
  const { lines, problems } = await explanationOf(store, executorId, await ask.keys());
  output.print(`${lines.join('\n')}\n`);
  for (const problem of problems) output.complain(`${problem}\n`);
  return problems.length === 0;
}

type Epoch = NonNullable<Awaited<ReturnType<typeof lastEpoch>>>;

async function replay(
  store: EvidenceStore,
  number: number | null,
  { keys, published, output }: Audit,
): Promise<boolean> {
  const isTruncated = await complainOfTruncation(store, { keys, published, output });
  const stored = await epochOf(store, number, output);
  if (stored === undefined) return false;
  const replayed = await replayEpoch(store, stored, keys);
  const { row, documents, dropped, forgotten, problems } = replayed;
  if (row !== null) {
    const { input_hash, policy_hash, result_hash } = row;
    output.print(
      `${row.payload_json}\ninput  ${input_hash}\npolicy ${policy_hash}\nresult ${result_hash}\n` +
        `epoch  ${epochIdOf(row)}\n`,
    );
  }
  for (const problem of problems.slice(0, MAX_PROBLEMS)) output.complain(`${problem}\n`);
  const more = problems.length - MAX_PROBLEMS;
  if (more > 0) output.complain(`and ${more} more\n`);
  const absent =
    (dropped === 0 ? '' : `, ${dropped} dropped`) +
    (forgotten === 0 ? '' : `, ${forgotten} pruned`);
  output.print(
    `epoch ${stored.number}: ${resultOf(replayed)};` +
      ` ${documents} ${documents === 1 ? 'document' : 'documents'} judged again${absent}\n`,
  );
  return problems.length === 0 && !isTruncated;
}

type Audit = Pick<EvidenceCommandOptions, 'published'> & {
  keys: readonly TrustedHotkey[];
  output: Output;
};

/** Resolves with true if the newest epochs are missing, or if the central API does not answer. */
async function complainOfTruncation(
  store: EvidenceStore,
  { keys, published, output }: Audit,
): Promise<boolean> {
  if (published === null) return false;
  const problems = await truncationProblems(store, keys, published);
  for (const problem of problems) output.complain(`${problem}\n`);
  return problems.length > 0;
}

function resultOf({ problems, isOnlyUntrusted }: Replay): string {
  if (problems.length === 0) return 'identical, byte for byte';
  return isOnlyUntrusted ? 'recomputed identical, but its signer is not trusted' : 'DIFFERS';
}

/** Returns the epoch of that number, or the last epoch if the number is null. Reports on `output` if there is none. */
async function epochOf(
  store: EvidenceStore,
  number: number | null,
  output: Output,
): Promise<Epoch | undefined> {
  const last = await lastEpoch(store);
  const found = number === null ? last : await findEpoch(store, number);
  if (found === undefined) {
    const known = last === undefined ? NO_WEIGHTS : `the last is ${last.number}`;
    output.complain(number === null ? `${known}\n` : `there is no epoch ${number}: ${known}\n`);
  }
  return found;
}

async function tryPolicy(
  store: EvidenceStore,
  number: number | null,
  policy: WeightPolicy,
  output: Output,
): Promise<boolean> {
  const stored = await epochOf(store, number, output);
  if (stored === undefined) return false;
  const lines = await weightsUnder(store, stored, policy);
  if (lines === null) {
    output.complain(
      'the burn recipient of that policy is not registered: no weights would be posted\n',
    );
    return false;
  }
  output.print(`${lines.join('\n')}\n`);
  return true;
}

async function exportAll(
  store: EvidenceStore,
  options: ExportOptions,
  published: PublishedWeights | null,
  output: Output,
): Promise<boolean> {
  const { keys } = options;
  const problems = await exportEvidence(store, options, output.print);
  for (const { executorId, seq, problem } of problems) {
    output.complain(`evidence ${seq === null ? '' : `${seq} `}of ${executorId}: ${problem}\n`);
  }
  const isTruncated = await complainOfTruncation(store, { keys, published, output });
  return problems.length === 0 && !isTruncated;
}
