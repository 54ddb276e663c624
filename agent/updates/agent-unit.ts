/** The agent's service, as systemd knows it: what the switcher of a tree stops, starts and looks at. */
import { messageOf } from '#shared/runtime/errors.ts';
import type { RunCommand } from '#shared/runtime/run-command.ts';

const UNIT = 'podwright-agent.service';
/** Longer than its TimeoutStopSec=. */
const BOUNDS = { timeoutMs: 60_000, maxOutputBytes: 64 * 1024 };
const WORDS_LINES = '10';
const MAX_WORDS_CHARS = 2_000;

export type AgentUnit = ReturnType<typeof createAgentUnit>;

export function createAgentUnit(runCommand: RunCommand) {
  async function systemctl(...args: readonly string[]): Promise<string> {
    const { exitCode, stdout, stderr } = await runCommand('systemctl', [...args, UNIT], BOUNDS);
    if (exitCode !== 0) throw new Error(`systemctl ${args.join(' ')}: ${stderr.trim()}`);
    return stdout;
  }

  return {
    /** It has ended when this resolves; one that does not run is success. */
    async stop(): Promise<void> {
      await systemctl('stop');
    },
    /** It is being started when this resolves; one that runs is left alone. */
    async start(): Promise<void> {
      await systemctl('start', '--no-block');
    },
    /** It was started and has not ended since: one that systemd has started again has ended. */
    async isAlive(): Promise<boolean> {
      const names = 'ActiveState,SubState,NRestarts,Job';
      const shown = await systemctl('show', `--property=${names}`);
      const { ActiveState, SubState, NRestarts, Job } = Object.fromEntries(
        shown.split('\n').map((line) => line.split('=', 2)),
      );
      if (NRestarts !== '0' || SubState === 'auto-restart') return false;
      // A start that has not begun yet.
      const isDue = Job !== undefined && Job !== '0';
      return isDue || ['active', 'activating', 'reloading'].includes(ActiveState);
    },
    /** Its last lines in the journal. */
    async lastWords(): Promise<string> {
      const args = ['--unit', UNIT, '--lines', WORDS_LINES, '--output', 'cat', '--no-pager'];
      const words = await runCommand('journalctl', args, BOUNDS).then(
        ({ stdout }) => stdout,
        (error: unknown) => messageOf(error),
      );
      return words.slice(-MAX_WORDS_CHARS);
    },
  };
}
