import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { startFakeGateway } from '../../../../test/fakes/agents/fake-gateway.ts';
import { eventually } from '../../../../test/fakes/eventually.ts';
import { startSmtpMailbox } from '../../../../test/fakes/external/smtp-mailbox.ts';
import { writeCentralKeys } from '../../../../test/fakes/scenes/central-fixture.ts';
import { startCentralProcess } from '../../../../test/fakes/scenes/central-process.ts';
import { testSigner } from '../../../../test/fakes/scenes/market-fixture.ts';
import { startProgram } from '../../../../test/fakes/scenes/program-process.ts';
import { openCentralDatabase } from '../../platform/database/database.ts';

it('mails a notice once when the process is killed between the notice and its mail', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'podwright-notice-'));
  const file = join(folder, 'central.db');
  const [gateway, mailbox] = [await startFakeGateway(), await startSmtpMailbox()];
  const stops = [gateway.close, mailbox.close];
  try {
    const writer = await startProgram('test/fakes/faults/notice-writer.ts', ']\n', {
      NOTICE_FILE: file,
    });
    await writer.end('SIGKILL');
    const [rented, announced, email] = JSON.parse(writer.output());
    expect([rented, announced]).toEqual([200, 200]);
    writeCentralKeys(folder);
    const central = await startCentralProcess({
      CENTRAL_DATABASE: file,
      CENTRAL_HOME: folder,
      CENTRAL_SMTP_URL: mailbox.url,
      CENTRAL_GATEWAY_URL: gateway.url,
      CENTRAL_GATEWAY_HOTKEY: testSigner(1).hotkey,
    });
    stops.unshift(async () => void (await central.end('SIGKILL')));
    const db = await openCentralDatabase(file);
    stops.unshift(() => db.destroy());
    const mails = () =>
      db.selectFrom('mails').select('state').where('kind', '=', 'notice-period').execute();
    await eventually('the mail is sent', async () => (await mails())[0]?.state === 'sent');
    expect(await mails()).toHaveLength(1);
    const received = mailbox.received.filter(({ to }) => to.includes(email));
    expect(received.filter(({ raw }) => raw.includes('maintenance'))).toHaveLength(1);
    const events = await db
      .selectFrom('events')
      .select('id')
      .where('event_type', '=', 'notice')
      .execute();
    expect(events).toHaveLength(1);
  } finally {
    for (const stop of stops) await stop();
    rmSync(folder, { recursive: true, force: true });
  }
});
