/** Runs `npm run validator -- ledger …` in this process, beside the central API. */
import { systemClock } from '#shared/runtime/clock.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { createAccountPods } from '../../validator/central/market/cut-off/cut-off.ts';
import { runMoneyLedgerCommand } from '../../validator/central/money/ledger-command.ts';

/**
 * Runs the command with `words`, the arguments after `ledger`. A command that cannot use the database fails, as the
 * program does.
 */
export async function ledgerCommand(
  database: string,
  words: readonly string[],
): Promise<{ isOk: boolean; output: string }> {
  const ports = { clock: systemClock, random: systemRandom };
  const deps = { ...ports, pods: createAccountPods(ports) };
  const command = { words: [...words], databaseFile: null, usualDatabase: database, format: null };
  let output = '';
  const add = (text: string) => {
    output += text;
  };
  try {
    const isOk = await runMoneyLedgerCommand(command, deps, { print: add, complain: add });
    return { isOk, output };
  } catch (error) {
    return { isOk: false, output: messageOf(error) };
  }
}
