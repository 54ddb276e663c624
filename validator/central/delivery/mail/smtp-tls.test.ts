import { generateKeyPairSync } from 'node:crypto';
import { afterEach, expect, it } from 'vitest';
import { systemClock } from '#shared/runtime/clock.ts';
import { makeCertificate } from '#shared/tls/certificate.ts';
import {
  type SmtpMailbox,
  startSmtpMailbox,
} from '../../../../test/fakes/external/smtp-mailbox.ts';
import { createSmtpMailer } from '../../platform/adapters/smtp-mailer.ts';
import type { Mailer } from '../../platform/ports.ts';

const DAY_MS = 86_400_000;
const { privateKey } = generateKeyPairSync('ed25519');
/** A self-signed certificate. */
const certificate = {
  cert: makeCertificate({
    privateKey,
    name: 'mail.example',
    serial: new Uint8Array(16).fill(1),
    notBeforeMs: systemClock.now() - DAY_MS,
    notAfterMs: systemClock.now() + DAY_MS,
  }),
  key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
};
const MAIL = {
  id: 'a',
  to: 'ada@example.com',
  subject: 'Hello',
  text: 'Text',
  html: '<p>HTML</p>',
};

let mailbox: SmtpMailbox;
let mailer: Mailer;
afterEach(async () => {
  await mailer.close();
  await mailbox.close();
});

async function open(implicit: boolean, query = ''): Promise<void> {
  mailbox = await startSmtpMailbox(null, { ...certificate, implicit });
  mailer = createSmtpMailer({
    url: `${mailbox.url}${query}`,
    from: 'Podwright <no@reply.example>',
  });
}

it.each([
  ['after STARTTLS', false],
  ['from the first byte', true],
])('sends a mail over TLS %s, as text and HTML', async (_, implicit) => {
  await open(implicit, '?tls.rejectUnauthorized=false');
  await mailer.send(MAIL);
  expect(mailbox.received).toMatchObject([{ to: ['ada@example.com'] }]);
  expect(mailbox.received[0]?.raw).toMatch(/text\/plain[\s\S]*Text[\s\S]*text\/html[\s\S]*<p>HTML/);
});

it.each([false, true])(
  'sends nothing to a server with an untrusted certificate (TLS from the first byte: %s)',
  async (implicit) => {
    await open(implicit);
    await expect(mailer.send(MAIL)).rejects.toThrow(/self.signed|certificate/i);
    expect(mailbox.received).toEqual([]);
  },
);
