/** The agent's doctor as a process, with an empty home and a replacement for nvidia-smi. */
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import { z } from 'zod';
import { Finding } from '#shared/check/doctor.ts';
import { agentArguments, COMPILE_CACHE } from '#shared/runtime/node-process.ts';
import { createFakeNvidiaSmi } from './fake-nvidia-smi.ts';

/** A valid value of AGENT_TRUSTED_KEYS. */
export const TRUSTED_KEY = '5GrwvaEF5zXb26Fz9rcQpDWS57CtERHpNehXCPcNoHGKutQY=validator-control';
const Report = z.array(Finding);

type Run = { status: number | null; out: string; error: string };

/** The caller must call `close()`. */
export function createAgentDoctor() {
  const folder = mkdtempSync(join(tmpdir(), 'podwright-doctor-'));
  const smi = createFakeNvidiaSmi();

  /** Runs the doctor and returns its output and exit status. */
  function run(environment: Record<string, string>, ...args: string[]): Promise<Run> {
    return new Promise((resolve, reject) => {
      const env = {
        PATH: process.env['PATH'] ?? '',
        NODE_COMPILE_CACHE: COMPILE_CACHE,
        AGENT_HOME: join(folder, 'home'),
        ...environment,
      };
      const child = spawn(process.execPath, agentArguments('doctor', ...args), { env });
      let [out, error] = ['', ''];
      child.stdout.on('data', (chunk) => {
        out += chunk;
      });
      child.stderr.on('data', (chunk) => {
        error += chunk;
      });
      child.on('error', reject);
      child.on('close', (status) => resolve({ status, out, error }));
    });
  }

  return {
    folder,
    smi,
    run,
    /** Runs the doctor, checks its exit status against its report and returns a function that finds one finding. */
    async findings(environment: Record<string, string>, ...args: string[]) {
      const { out, status } = await run(environment, '--json', ...args);
      const list = Report.parse(JSON.parse(out));
      const ids = list.map(({ id }) => id);
      expect(new Set(ids).size).toBe(ids.length);
      const isFailed = list.some((each) => each.status === 'fail');
      expect(status).toBe(isFailed ? 1 : list.some(({ timed_out }) => timed_out) ? 3 : 0);
      const needy = list.filter((each) => ['warn', 'fail'].includes(each.status));
      expect(needy.filter(({ remedy }) => remedy === null)).toEqual([]);
      return (id: string) => {
        const found = list.find((each) => each.id === id);
        if (found === undefined) throw new Error(`no finding ${id} in ${out}`);
        return found;
      };
    },
    close(): void {
      rmSync(folder, { recursive: true });
      smi.remove();
    },
  };
}
