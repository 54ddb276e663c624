/** The mail about a low balance. Pure. */
import { composed, type MailContent, paragraph } from '../mail/mail.text.ts';

/** `left` in dollars, `runway` as `3 h 12 min left` or null while nothing runs. */
export function lowBalanceMail({
  left,
  runway,
}: {
  left: string;
  runway: string | null;
}): MailContent {
  return composed(`Your balance is low: ${runway ?? left}`, [
    paragraph(`Your account at Podwright has ${left} left.`),
    ...(runway === null ? [] : [paragraph(`At what your pods cost now: ${runway}.`)]),
    paragraph('When nothing is left, pods are stopped. Top up, or delete what you do not need.'),
    paragraph(
      'You get this once, and again only after the balance was topped up or well above the threshold. ' +
        'Set the threshold with PUT /users/me/low-balance-threshold, switch these mails off with PUT /users/me/notification.',
    ),
  ]);
}
