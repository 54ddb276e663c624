/** What `npm run validator` says of the ledger: explain, replay, evidence export. */
import { existsSync } from 'node:fs';
import { ConfigError } from '#shared/runtime/config.ts';
import { nearestName } from '#shared/runtime/nearest-name.ts';
import { isPostgresAddress } from './database/target.ts';
import type { TrustedHotkey } from './keys/trusted-hotkeys.ts';
import type { Ledger } from './store/ledger.tables.ts';
import { besideLedger, type LedgerPlace } from './store/ledger.ts';
import { findEpoch, lastEpoch } from './weights/epoch.store.ts';
import { epochIdOf } from './weights/epoch-signature.ts';
import { type ExportWish, exportEvidence } from './weights/evidence-export.ts';
import { explanationOf, NO_WEIGHTS } from './weights/explanation.ts';
import { weightsUnder } from './weights/policy-trial.ts';
import { replayEpoch } from './weights/replay.ts';
import { readWeightPolicy, type WeightPolicy } from './weights/weight-policy.ts';

export type LedgerAsk = {
  words: readonly string[];
  ledger: LedgerPlace;
  /** The policy to compute by instead of the stored one. */
  policyFile: string | null;
  /** Whose signatures count. Rejects with ConfigError where that cannot be known. */
  keys(): Promise<readonly TrustedHotkey[]>;
};

/** Where the answer goes: what was asked for, and what is wrong with it. */
export type Output = { print(text: string): void; complain(text: string): void };

/** Whether all is well. Rejects with ConfigError for words that are no command. */
export async function runLedgerCommand(ask: LedgerAsk, output: Output): Promise<boolean> {
  const work = commandOf(ask);
  return withLedger(ask.ledger, 'read', (ledger) => work(ledger, output));
}

/** As `besideLedger` does, with the names of the usual places where there is none. */
export async function withLedger<T>(
  place: LedgerPlace,
  use: 'read' | 'write',
  work: (ledger: Ledger) => Promise<T>,
): Promise<T> {
  const { address } = place;
  if (!isPostgresAddress(address) && !existsSync(address)) {
    throw new ConfigError(
      `there is no ledger at ${address}: name it with --ledger FILE; that of npm start is validator.db in its home`,
    );
  }
  return besideLedger(place, use, work);
}

/** Shown of those that a replay found. */
const MAX_PROBLEMS = 100;

type Command = (ledger: Ledger, output: Output) => Promise<boolean>;

const COMMANDS = ['explain', 'replay', 'evidence'] as const;
const USAGE: Readonly<Record<(typeof COMMANDS)[number], string>> = {
  explain: 'explain takes the id of one EXECUTOR, as the portal and GET /executors show it',
  replay:
    'replay takes one EPOCH, the number of a set of weights, counted from 1; without one it takes the last',
  evidence: 'evidence takes the word export, and the id of one EXECUTOR or none',
};

function commandOf(ask: LedgerAsk): Command {
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
function commandIn(name: keyof typeof USAGE, ask: LedgerAsk): Command | null {
  const [, argument, third, ...rest] = ask.words;
  if (rest.length > 0 || (third !== undefined && name !== 'evidence')) return null;
  switch (name) {
    case 'explain':
      if (argument === undefined) return null;
      return async (ledger, output) => explain(ledger, { executorId: argument, ask }, output);
    case 'replay':
      if (argument !== undefined && !/^\d{1,9}$/.test(argument)) return null;
      return replayOf(argument === undefined ? null : Number(argument), ask);
    case 'evidence':
      if (argument !== 'export') return null;
      return async (ledger, output) =>
        exportAll(ledger, { executorId: third ?? null, keys: await ask.keys() }, output);
  }
}

function replayOf(epoch: number | null, { policyFile, keys }: LedgerAsk): Command {
  if (policyFile === null) {
    return async (ledger, output) => replay(ledger, epoch, { keys: await keys(), output });
  }
  const policy = readWeightPolicy(policyFile);
  return (ledger, output) => tryPolicy(ledger, epoch, policy, output);
}

async function explain(
  ledger: Ledger,
  { executorId, ask }: { executorId: string; ask: LedgerAsk },
  output: Output,
): Promise<boolean> {
  const { lines, problems } = await explanationOf(ledger, executorId, await ask.keys());
  output.print(`${lines.join('\n')}\n`);
  for (const problem of problems) output.complain(`${problem}\n`);
  return problems.length === 0;
}

type Epoch = NonNullable<Awaited<ReturnType<typeof lastEpoch>>>;

async function replay(
  ledger: Ledger,
  number: number | null,
  { keys, output }: { keys: readonly TrustedHotkey[]; output: Output },
): Promise<boolean> {
  const stored = await epochOf(ledger, number, output);
  if (stored === undefined) return false;
  const { row, documents, forgotten, problems } = await replayEpoch(ledger, stored, keys);
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
  ledger: Ledger,
  number: number | null,
  output: Output,
): Promise<Epoch | undefined> {
  const last = await lastEpoch(ledger);
  const found = number === null ? last : await findEpoch(ledger, number);
  if (found === undefined) {
    const known = last === undefined ? NO_WEIGHTS : `the last is ${last.number}`;
    output.complain(number === null ? `${known}\n` : `there is no epoch ${number}: ${known}\n`);
  }
  return found;
}

async function tryPolicy(
  ledger: Ledger,
  number: number | null,
  policy: WeightPolicy,
  output: Output,
): Promise<boolean> {
  const stored = await epochOf(ledger, number, output);
  if (stored === undefined) return false;
  const lines = await weightsUnder(ledger, stored, policy);
  if (lines === null) {
    output.complain(
      'the burn recipient of that policy is not registered: nothing would be posted\n',
    );
    return false;
  }
  output.print(`${lines.join('\n')}\n`);
  return true;
}

async function exportAll(ledger: Ledger, wish: ExportWish, output: Output): Promise<boolean> {
  const problems = await exportEvidence(ledger, wish, output.print);
  for (const { executorId, seq, problem } of problems) {
    output.complain(`evidence ${seq === null ? '' : `${seq} `}of ${executorId}: ${problem}\n`);
  }
  return problems.length === 0;
}
