/** What `npm run validator` says of the ledger: explain, replay, evidence export. */

import { ConfigError } from '#shared/runtime/config.ts';
import { nearestName } from '#shared/runtime/nearest-name.ts';
import type { TrustedHotkey } from '../keys/trusted-hotkeys.ts';
import { type StoreLocation, withStore } from '../store/evidence-store.ts';
import type { EvidenceStore } from '../store/tables.ts';
import { findEpoch, lastEpoch } from './epoch.store.ts';
import { epochIdOf } from './epoch-chain.ts';
import { type ExportOptions, exportEvidence } from './evidence-export.ts';
import { explanationOf, NO_WEIGHTS } from './explain.ts';
import { replayEpoch, weightsUnder } from './replay.ts';
import { readWeightPolicy, type WeightPolicy } from './weight-policy.ts';

export type EvidenceCommandOptions = {
  words: readonly string[];
  store: StoreLocation;
  /** The policy to compute by instead of the stored one. */
  policyFile: string | null;
  /** Whose signatures count. Rejects with ConfigError where that cannot be known. */
  keys(): Promise<readonly TrustedHotkey[]>;
};

/** Where the answer goes: what was asked for, and what is wrong with it. */
export type Output = { print(text: string): void; complain(text: string): void };

/** Whether all is well. Rejects with ConfigError for words that are no command. */
export async function runEvidenceCommand(
  ask: EvidenceCommandOptions,
  output: Output,
): Promise<boolean> {
  const work = commandOf(ask);
  return withStore(ask.store, 'read', (store) => work(store, output));
}

/** Shown of those that a replay found. */
const MAX_PROBLEMS = 100;

type Command = (store: EvidenceStore, output: Output) => Promise<boolean>;

const COMMANDS = ['explain', 'replay', 'evidence'] as const;
const USAGE: Readonly<Record<(typeof COMMANDS)[number], string>> = {
  explain: 'explain takes the id of one EXECUTOR, as the portal and GET /executors show it',
  replay:
    'replay takes one EPOCH, the number of a set of weights, counted from 1; without one it takes the last',
  evidence: 'evidence takes the word export, and the id of one EXECUTOR or none',
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
    throw new ConfigError('--policy goes with replay EPOCH; see --help');
  }
  return command;
}

/** Null for words that do not go with it. */
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
        exportAll(store, { executorId: third ?? null, keys: await ask.keys() }, output);
  }
}

function replayOf(epoch: number | null, { policyFile, keys }: EvidenceCommandOptions): Command {
  if (policyFile === null) {
    return async (store, output) => replay(store, epoch, { keys: await keys(), output });
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
  { keys, output }: { keys: readonly TrustedHotkey[]; output: Output },
): Promise<boolean> {
  const stored = await epochOf(store, number, output);
  if (stored === undefined) return false;
  const { row, documents, forgotten, problems } = await replayEpoch(store, stored, keys);
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
  const kept = forgotten === 0 ? '' : `, ${forgotten} too old to be kept`;
  output.print(
    `epoch ${stored.number}: ${problems.length === 0 ? 'the same, byte for byte' : 'DIFFERS'};` +
      ` ${documents} ${documents === 1 ? 'document' : 'documents'} judged again${kept}\n`,
  );
  return problems.length === 0;
}

/** The one of that number, else the last; says so where there is none. */
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
      'the burn recipient of that policy is not registered: nothing would be posted\n',
    );
    return false;
  }
  output.print(`${lines.join('\n')}\n`);
  return true;
}

async function exportAll(
  store: EvidenceStore,
  wish: ExportOptions,
  output: Output,
): Promise<boolean> {
  const problems = await exportEvidence(store, wish, output.print);
  for (const { executorId, seq, problem } of problems) {
    output.complain(`evidence ${seq === null ? '' : `${seq} `}of ${executorId}: ${problem}\n`);
  }
  return problems.length === 0;
}
