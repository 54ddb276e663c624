/**
 * The validator's doctor as a process, with a valid configuration, a central API as a process and a stand-in gateway.
 */
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import { z } from 'zod';
import { Finding } from '#shared/check/doctor.ts';
import { COMPILE_CACHE } from '#shared/runtime/node-process.ts';
import { runCommand } from '#shared/runtime/run-command.ts';
import { createSigner } from '#shared/signing/sr25519.ts';
import { openEvidenceStore } from '../../../validator/store/evidence-store.ts';
import { freePorts } from '../free-ports.ts';
import { startCentralProcess } from './central-process.ts';

const MAIN = new URL('../../../validator/main.ts', import.meta.url).pathname;
const LIMITS = { timeoutMs: 60_000, maxOutputBytes: 1_000_000 };
const Report = z.array(Finding);

export type ValidatorDoctor = Awaited<ReturnType<typeof createValidatorDoctor>>;

/** The caller must call `close()`. */
export async function createValidatorDoctor() {
  const folder = mkdtempSync(join(tmpdir(), 'podwright-validator-doctor-'));
  const at = (name: string) => join(folder, name);
  const seed = '07'.repeat(32);
  const { hotkey } = createSigner(new Uint8Array(32).fill(7));
  const { first: port } = await freePorts(1);
  const central = await startCentralProcess({
    CENTRAL_HOME: at('central'),
    CENTRAL_GATEWAY_URL: 'http://127.0.0.1:1',
    CENTRAL_GATEWAY_HOTKEY: hotkey,
  });
  const gateway = createServer((_, response) => response.end(JSON.stringify({ hotkey })));
  await new Promise<void>((resolve) => gateway.listen(port, '127.0.0.1', resolve));
  chmodSync(folder, 0o700);
  writeFileSync(at('hotkey.seed'), seed, { mode: 0o600 });
  writeFileSync(
    at('metagraph.json'),
    JSON.stringify({ block: null, neurons: [{ uid: 0, hotkey }] }),
  );
  await (await openEvidenceStore(at('ledger.db'))).destroy();

  /** Runs the validator's program. */
  const run = (args: readonly string[], environment: Record<string, string>) => {
    const { PATH = '' } = process.env;
    const env = { PATH, NODE_COMPILE_CACHE: COMPILE_CACHE, ...environment };
    return runCommand(process.execPath, [MAIN, ...args], { ...LIMITS, env });
  };

  return {
    /** Returns the path of a file in the home. */
    at,
    seed,
    hotkey,
    central,
    /** Variables of a valid configuration. */
    right: {
      VALIDATOR_HOME: folder,
      VALIDATOR_PORT: String(port),
      VALIDATOR_CENTRAL_URL: `${central.origin}/api`,
      VALIDATOR_CENTRAL_HOTKEY: String((await central.call('GET', '/version')).body['hotkey']),
      VALIDATOR_METAGRAPH: at('metagraph.json'),
    },
    run,
    /** Runs the doctor, checks its exit status against its report and returns status and text of each finding. */
    async findings(environment: Record<string, string>): Promise<Record<string, string>> {
      const { exitCode, stdout, stderr } = await run(['doctor', '--json'], environment);
      expect(stderr).toBe('');
      const list = Report.parse(JSON.parse(stdout));
      const isFailed = list.some(({ status }) => status === 'fail');
      expect(exitCode).toBe(isFailed ? 1 : list.some(({ timed_out }) => timed_out) ? 3 : 0);
      const needy = list.filter(({ status }) => status === 'warn' || status === 'fail');
      expect(needy.filter(({ remedy }) => remedy === null)).toEqual([]);
      return Object.fromEntries(
        list.map(({ id, status, finding }) => [id, `${status}: ${finding}`]),
      );
    },
    async close(): Promise<void> {
      await central.end();
      gateway.close();
      rmSync(folder, { recursive: true });
    },
  };
}
