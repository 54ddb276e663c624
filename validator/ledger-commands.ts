/** What `npm run validator` says of the ledger: explain, replay, evidence export. */
import { existsSync } from 'node:fs';
import type { LatestSetWeights } from '#shared/central-api/set-weights.ts';
import { naiveUtc } from '#shared/clock.ts';
import { ConfigError } from '#shared/config.ts';
import { isPostgresAddress } from './database/target.ts';
import { type EvidenceDocument, parseDocument } from './evidence/evidence.document.ts';
import { findEvidence, lastEvidence } from './evidence/evidence.store.ts';
import { exportEvidence } from './evidence/evidence-export.ts';
import type { Ledger } from './ledger/ledger.tables.ts';
import { openLedger } from './ledger/ledger.ts';
import { findEpoch, lastEpoch } from './weights/epoch.store.ts';
import { explainExecutor } from './weights/explain.ts';
import { weightsUnder } from './weights/policy-trial.ts';
import { replayEpoch, storedPolicy, weighStored } from './weights/replay.ts';
import { readWeightPolicy, type WeightPolicy } from './weights/weight-policy.ts';

/** `policyFile`: the policy to compute by instead of the stored one. */
export type LedgerAsk = { words: readonly string[]; ledgerFile: string; policyFile: string | null };

/** Where the answer goes: what was asked for, and what is wrong with it. */
export type Output = { print(text: string): void; complain(text: string): void };

/** Whether all is well. Rejects with ConfigError for words that are no command. */
export async function runLedgerCommand(ask: LedgerAsk, output: Output): Promise<boolean> {
  const work = commandOf(ask);
  return withLedger(ask.ledgerFile, (ledger) => work(ledger, output));
}

/** Rejects with ConfigError where there is none. */
export async function withLedger<T>(
  ledgerFile: string,
  work: (ledger: Ledger) => Promise<T>,
): Promise<T> {
  if (!isPostgresAddress(ledgerFile) && !existsSync(ledgerFile)) {
    throw new ConfigError(`there is no ledger at ${ledgerFile}: name it with --ledger FILE`);
  }
  const ledger = await openLedger(ledgerFile);
  try {
    return await work(ledger);
  } finally {
    await ledger.destroy();
  }
}

/** Shown of those that a replay found. */
const MAX_PROBLEMS = 100;

type Command = (ledger: Ledger, output: Output) => Promise<boolean>;

function commandOf({ words, policyFile }: LedgerAsk): Command {
  const [name, argument, third, ...rest] = words;
  const isEpoch = argument === undefined || (/^\d{1,9}$/.test(argument) && third === undefined);
  const epoch = argument === undefined ? null : Number(argument);
  if (name === 'replay' && isEpoch && policyFile !== null) {
    const policy = readWeightPolicy(policyFile);
    return (ledger, output) => tryPolicy(ledger, epoch, policy, output);
  }
  if (policyFile !== null) throw new ConfigError('--policy goes with replay EPOCH; see --help');
  if (name === 'explain' && argument !== undefined && third === undefined) {
    return (ledger, output) => explain(ledger, argument, output);
  }
  if (name === 'replay' && isEpoch) {
    return (ledger, output) => replay(ledger, epoch, output);
  }
  if (name === 'evidence' && argument === 'export' && rest.length === 0) {
    return (ledger, output) => exportAll(ledger, third ?? null, output);
  }
  throw new ConfigError(`unknown command ${words.join(' ')}; see --help`);
}

async function explain(ledger: Ledger, executorId: string, output: Output): Promise<boolean> {
  const epoch = await lastEpoch(ledger);
  const lines = epoch === undefined ? null : await explainIn(ledger, epoch, executorId);
  const none =
    epoch === undefined
      ? 'no weights were computed yet'
      : `executor ${executorId} was measured in no cycle of epoch ${epoch.number}, the last one`;
  output.print(`${(lines ?? [none]).join('\n')}\n`);
  const last = await lastEvidence(ledger, executorId);
  const evidence = last === undefined ? undefined : await findEvidence(ledger, last.id);
  if (evidence === undefined) {
    output.complain(`no check of ${executorId} is on record: is it the id of an executor?\n`);
    return false;
  }
  output.print(`\n${lastCheck(evidence).join('\n')}\n`);
  return true;
}

type Epoch = NonNullable<Awaited<ReturnType<typeof lastEpoch>>>;

async function explainIn(
  ledger: Ledger,
  epoch: Epoch,
  executorId: string,
): Promise<string[] | null> {
  const policy = storedPolicy(epoch);
  const { head, kept, weigher } = await weighStored(ledger, epoch, policy);
  // Written by us as a payload: its form is known.
  const posted = JSON.parse(epoch.payload_json) as LatestSetWeights;
  const known = { standings: weigher.standings(), cycles: kept.length };
  const lines = explainExecutor(executorId, { head, ...known, policy, posted });
  if (lines === null) return null;
  const title = `Epoch ${epoch.number} of ${naiveUtc(epoch.computed_ms)}Z, ${epoch.state}; policy ${epoch.policy_hash}`;
  return [title, ...lines];
}

function lastCheck(evidence: { id: string; document: string }): string[] {
  const read = parseDocument(evidence);
  if ('problem' in read) return [`Its last check is damaged: ${read.problem}`];
  const { verdict, finished_at: finishedMs, checks } = read.document;
  const failed = checks.filter((check) => !check.passed);
  const [counted, noted] = [true, false].map((isCounted) =>
    failed.filter(({ mode }) => (mode === 'enforce') === isCounted),
  );
  return [
    `Its last check, ${naiveUtc(finishedMs)}Z: ${verdict} (evidence ${evidence.id}); weights have it from its cycle on`,
    ...checkLines('What failed, and counts:', counted ?? []),
    ...checkLines('What failed, and is on record only:', noted ?? []),
  ];
}

function checkLines(title: string, checks: EvidenceDocument['checks']): string[] {
  const lines = checks.flatMap((check) => [
    `  ${check.check_id} ${check.reason_code}: ${check.message}`,
    `    measured ${check.measured}; required ${check.required}`,
    `    ${check.remediation}`,
  ]);
  return lines.length === 0 ? [] : [title, ...lines];
}

async function replay(ledger: Ledger, number: number | null, output: Output): Promise<boolean> {
  const stored = await epochOf(ledger, number, output);
  if (stored === undefined) return false;
  const { row, documents, forgotten, problems } = await replayEpoch(ledger, stored);
  if (row !== null) {
    const { input_hash, policy_hash, result_hash } = row;
    output.print(
      `${row.payload_json}\ninput  ${input_hash}\npolicy ${policy_hash}\nresult ${result_hash}\n`,
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
    const known =
      last === undefined ? 'no weights were computed yet' : `the last is ${last.number}`;
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

async function exportAll(
  ledger: Ledger,
  executorId: string | null,
  output: Output,
): Promise<boolean> {
  const problems = await exportEvidence(ledger, executorId, output.print);
  for (const { executorId: executor, seq, problem } of problems) {
    output.complain(`evidence ${seq} of ${executor}: ${problem}\n`);
  }
  return problems.length === 0;
}
