import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import {
  createTestCentral,
  type TestCentral,
} from '../../../../test/fakes/scenes/central-fixture.ts';
import { openCentralDatabase } from '../../platform/database/database.ts';
import { auditLedger } from './audit.service.ts';
import { auditInThread } from './ledger-audit.ts';

let folder: string;
let central: TestCentral;
const file = () => join(folder, 'central.db');
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'podwright-audit-'));
  central = await createTestCentral({ db: await openCentralDatabase(file()) });
});
afterEach(async () => {
  await central.close();
  rmSync(folder, { recursive: true, force: true });
});

const audit = (signal = new AbortController().signal) =>
  auditInThread({ address: file(), variable: 'CENTRAL_DATABASE' }, signal);

it('audits the ledger of a running central API in a thread, with the same result as the command', async () => {
  await central.signUp();
  const result = await audit();
  expect(result).toEqual(await auditLedger(central.ports.db));
  expect([result.transfers, result.findings]).toEqual([1, []]);
});

it('rejects if the database does not exist, and when the audit is aborted', async () => {
  const missing = { address: join(folder, 'none.db'), variable: 'CENTRAL_DATABASE' };
  await expect(auditInThread(missing, new AbortController().signal)).rejects.toThrow(
    'there is no database of a central API',
  );
  const controller = new AbortController();
  const running = audit(controller.signal);
  controller.abort();
  await expect(running).rejects.toThrow('the thread ended');
});
