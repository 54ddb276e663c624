import { afterEach, beforeEach, expect, it } from 'vitest';
import {
  type SmtpMailbox,
  startSilentServer,
  startSmtpMailbox,
} from '../../../../test/fakes/external/smtp-mailbox.ts';
import {
  createTestCentral,
  type TestCentral,
} from '../../../../test/fakes/scenes/central-fixture.ts';
import { createSmtpMailer } from '../../platform/adapters/smtp-mailer.ts';
import { emailChangedMail, verificationMail } from './mail-text.ts';

const BODY = { email: 'ada@example.com', password: 'correct horse', name: 'Ada' };
const FROM = 'Podwright <no-reply@podwright.example>';

let mailbox: SmtpMailbox;
let central: TestCentral;
beforeEach(async () => {
  mailbox = await startSmtpMailbox();
  central = await createTestCentral({
    verifyEmailAtSignup: false,
    mailer: createSmtpMailer({ url: mailbox.url, from: FROM }),
  });
});
afterEach(async () => {
  await central.close();
  await mailbox.close();
});

const signUp = () => central.call('POST', '/users', { body: BODY });
const rows = () => central.ports.db.selectFrom('mails').selectAll().execute();
async function send(): Promise<void> {
  await central.central.settleMailRequests();
  await central.central.sendMails();
}

it('sends the verification mail once over SMTP, as text and HTML', async () => {
  await signUp();
  await send();
  await send();
  expect(mailbox.received).toHaveLength(1);
  const [{ from, to, raw } = { from: '', to: [], raw: '' }] = mailbox.received;
  expect([from, to]).toEqual(['no-reply@podwright.example', ['ada@example.com']]);
  expect(raw).toMatch(/^From: Podwright <no-reply@podwright\.example>\r$/m);
  expect(raw).toMatch(/^To: ada@example\.com\r$/m);
  expect(raw).toMatch(/^Subject: Confirm your e-mail address\r$/m);
  expect(raw).toMatch(/^Message-ID: <[0-9a-f-]{36}@podwright\.example>\r$/im);
  expect(raw).toMatch(/^Auto-Submitted: auto-generated\r$/m);
  expect(raw).toMatch(/^Content-Type: text\/plain; charset=utf-8\r$/m);
  expect(raw).toMatch(/^Content-Type: text\/html; charset=utf-8\r$/m);
  const token = /^([A-Za-z0-9_-]{43})\r$/m.exec(raw)?.[1];
  const verified = await central.call('POST', '/auth/verify-email', { body: { token } });
  expect(verified.status).toBe(200);
});

it('encrypts the tokens of a waiting mail, and deletes them once the mail is sent', async () => {
  await signUp();
  const [waiting] = await rows();
  await send();
  const token = /^([A-Za-z0-9_-]{43})\r$/m.exec(mailbox.received[0]?.raw ?? '')?.[1] ?? '-';
  expect(JSON.stringify(waiting)).not.toContain(token);
  const stored = await central.ports.db.selectFrom('account_tokens').selectAll().execute();
  expect(JSON.stringify(stored)).not.toContain(token);
  expect(await rows()).toMatchObject([{ state: 'sent', sealed: '', attempts: 1 }]);
});

it('retries a mail with growing pauses while the server rejects it temporarily', async () => {
  mailbox.refuse({ code: 451, text: 'later' });
  await signUp();
  await send();
  expect(await rows()).toMatchObject([
    { state: 'waiting', attempts: 1, due_at: central.clock.now() + 5_000 },
  ]);
  await send();
  expect((await rows())[0]?.attempts).toBe(1);
  await central.clock.advance(5_000);
  await send();
  expect(await rows()).toMatchObject([{ attempts: 2, due_at: central.clock.now() + 30_000 }]);
  mailbox.refuse(null);
  await central.clock.advance(30_000);
  await send();
  expect(mailbox.received).toHaveLength(1);
  expect(await rows()).toMatchObject([{ state: 'sent', attempts: 3, last_error: null }]);
});

it('does not send an expired mail', async () => {
  mailbox.refuse({ code: 451, text: 'later' });
  await signUp();
  await send();
  mailbox.refuse(null);
  await central.clock.advance(24 * 3_600_000);
  await send();
  expect(mailbox.received).toEqual([]);
  expect(await rows()).toMatchObject([{ state: 'expired', sealed: '' }]);
});

it('marks a mail as failed at once if the server permanently rejects the address', async () => {
  mailbox.refuse({ code: 550, text: 'no such user' });
  await signUp();
  await send();
  expect(await rows()).toMatchObject([
    { state: 'failed', attempts: 1, sealed: '', last_error: 'refused with 550' },
  ]);
});

it('sends one mail when several passes run at once', async () => {
  await signUp();
  await Promise.all([send(), send(), send()]);
  expect(mailbox.received).toHaveLength(1);
});

it('retries a mail whose process died', async () => {
  await signUp();
  const { db } = central.ports;
  const leaseUntilMs = central.clock.now() + 120_000;
  await db.updateTable('mails').set({ attempts: 1, due_at: leaseUntilMs }).execute();
  await send();
  expect(mailbox.received).toEqual([]);
  await central.clock.advance(120_000);
  await send();
  expect(mailbox.received).toHaveLength(1);
});

it('sends a mail from the background job as soon as the mail is stored', async () => {
  central.central.start();
  await signUp();
  await expect.poll(() => mailbox.received.length).toBe(1);
});

it('accepts a sign-up while the mail server is down, and keeps the mail stored', async () => {
  const silent = await startSilentServer();
  silent.close();
  await central.close();
  const mailer = createSmtpMailer({ url: silent.url, from: FROM });
  central = await createTestCentral({ verifyEmailAtSignup: false, mailer });
  expect((await signUp()).status).toBe(200);
  await send();
  expect(await rows()).toMatchObject([{ state: 'waiting', attempts: 1 }]);
  expect((await rows())[0]?.last_error).toMatch(/ECONNREFUSED/);
});

it('logs in to the mail server; no mail is lost while the password is wrong', async () => {
  const guarded = await startSmtpMailbox({ user: 'podwright', password: 'p@ss/word' });
  try {
    for (const [password, state] of [
      ['wrong', 'waiting'],
      ['p@ss/word', 'sent'],
    ] as const) {
      await central.close();
      const url = `smtp://podwright:${encodeURIComponent(password)}@127.0.0.1:${guarded.port}`;
      const mailer = createSmtpMailer({ url, from: FROM });
      central = await createTestCentral({ verifyEmailAtSignup: false, mailer });
      await signUp();
      await send();
      const [row] = await rows();
      expect([password, row?.state]).toEqual([password, state]);
      expect(row?.last_error ?? '').not.toContain(password);
    }
    expect(guarded.received).toHaveLength(1);
  } finally {
    await central.close();
    await guarded.close();
    central = await createTestCentral();
  }
});

it('answers 404 at the outbox if a mailer is configured', async () => {
  expect((await central.call('GET', '/_local/outbox')).status).toBe(404);
});

it('limits how many mails of one kind an account receives', async () => {
  await signUp();
  for (let more = 0; more < 8; more += 1) {
    const { email } = BODY;
    const answer = await central.call('POST', '/auth/resend-verify-email', { body: { email } });
    expect(answer.status).toBe(200);
  }
  await send();
  expect(mailbox.received).toHaveLength(5);
  await central.clock.advance(3_600_001);
  await central.call('POST', '/auth/resend-verify-email', { body: { email: BODY.email } });
  await send();
  expect(mailbox.received).toHaveLength(6);
});

it('deletes mails after a week', async () => {
  await signUp();
  await send();
  await central.clock.advance(7 * 24 * 3_600_000 - 1);
  await central.central.sweepAccounts();
  expect(await rows()).toHaveLength(1);
  await central.clock.advance(2);
  await central.central.sweepAccounts();
  expect(await rows()).toEqual([]);
});

it('escapes the content of mails, and links to the console if one is configured', () => {
  const { html, text } = emailChangedMail('"<img src=x>\'&"@example.com');
  expect(html).toContain('&quot;&lt;img src=x&gt;&#39;&amp;&quot;@example.com');
  expect(text).toContain('"<img src=x>\'&"@example.com');
  const linked = verificationMail({ consoleUrl: 'https://console.example/' }, 'a&b');
  expect(linked.text).toContain('https://console.example/verify-email?token=a%26b');
  expect(linked.html).toContain('<a href="https://console.example/verify-email?token=a%26b">');
});
