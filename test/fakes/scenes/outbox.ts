/** Reads mails that a central API without SMTP has stored in its outbox. */
import type { OutboxMail } from '../../../validator/central/delivery/mail/mail.service.ts';
import type { TestCentral } from './central-fixture.ts';

/** Returns the mails to one recipient, newest first. */
export async function mailsTo(central: TestCentral, address: string): Promise<OutboxMail[]> {
  await central.central.settleMailRequests();
  const { status, body } = await central.call('GET', '/_local/outbox');
  if (status !== 200) throw new Error(JSON.stringify(body));
  return body.filter((mail: OutboxMail) => mail.to === address);
}

/** Returns the token in the newest mail of this kind; throws if there is none. */
export async function mailedToken(
  central: TestCentral,
  address: string,
  kind: string,
): Promise<string> {
  const mail = (await mailsTo(central, address)).find((candidate) => candidate.kind === kind);
  const token = /^[A-Za-z0-9_-]{43}$/m.exec(mail?.text ?? '')?.[0];
  if (token === undefined) throw new Error(`no ${kind} mail for ${address}`);
  return token;
}
