/** A shell script named nvidia-smi in a temporary folder, to be put on PATH. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FIELD_LIST } from '../../fixtures/nvidia-smi.ts';

export type FakeNvidiaSmi = {
  /** PATH with the folder of the fake first. */
  env: { PATH: string };
  /**
   * Replaces the script. The script can read each text in `printed` from the file "$HERE/<name>", and a list of the
   * fields that a row of the fixtures has from "$HERE/help".
   */
  become(script: string, printed?: Record<string, string>): void;
  remove(): void;
};

/** Creates the folder. The script does not exist until `become` is called. */
export function createFakeNvidiaSmi(): FakeNvidiaSmi {
  const folder = mkdtempSync(join(tmpdir(), 'podwright-smi-'));
  return {
    env: { PATH: `${folder}:/usr/bin:/bin` },
    become(script, printed = {}) {
      const files = { help: FIELD_LIST, ...printed };
      for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
      const lines = ['#!/bin/sh', `HERE='${folder}'`, script, ''];
      writeFileSync(join(folder, 'nvidia-smi'), lines.join('\n'), { mode: 0o755 });
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}
