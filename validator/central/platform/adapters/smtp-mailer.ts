/** Sends mails over SMTP. nodemailer is loaded at the first mail. */
import type { Transporter } from 'nodemailer';
import { type Mailer, MailRefused } from '../ports.ts';

const CONNECT_TIMEOUT_MS = 10_000;
const SILENCE_TIMEOUT_MS = 20_000;
/** Lowest SMTP code of permanent failures. */
const PERMANENT = 500;
/** nodemailer's codes for a rejected recipient or content, as opposed to a rejected login or sender. */
const CODES_OF_THE_MAIL: readonly unknown[] = ['EENVELOPE', 'EMESSAGE'];

export type SmtpOptions = {
  /** `smtp://user:password@host:587`; `smtps://` for TLS from the first byte. */
  url: string;
  /** Sender: `Name <address>`, or only an address. */
  from: string;
};

/** Verifies certificates unless the URL contains `?tls.rejectUnauthorized=false`. */
export function createSmtpMailer({ url, from }: SmtpOptions): Mailer {
  let transport: Promise<Transporter> | null = null;
  const domain = /@([^>\s]+)/.exec(from)?.[1] ?? 'localhost';

  async function open(): Promise<Transporter> {
    const { createTransport } = await import('nodemailer');
    return createTransport({
      url,
      pool: true,
      maxConnections: 1,
      connectionTimeout: CONNECT_TIMEOUT_MS,
      greetingTimeout: CONNECT_TIMEOUT_MS,
      socketTimeout: SILENCE_TIMEOUT_MS,
      disableFileAccess: true,
      disableUrlAccess: true,
    });
  }

  return {
    async send({ id, to, subject, text, html }) {
      transport ??= open();
      try {
        await (await transport).sendMail({
          from,
          // An object, because nodemailer parses a string as a list of addresses.
          to: { name: '', address: to },
          subject,
          text,
          html,
          messageId: `<${id}@${domain}>`,
          headers: { 'Auto-Submitted': 'auto-generated' },
        });
      } catch (error) {
        const { code, responseCode } = error as { code?: unknown; responseCode?: unknown };
        const isFinal = typeof responseCode === 'number' && responseCode >= PERMANENT;
        if (isFinal && CODES_OF_THE_MAIL.includes(code)) {
          throw new MailRefused(`refused with ${responseCode}`, { cause: error });
        }
        throw error;
      }
    },

    async close() {
      (await transport?.catch(() => null))?.close();
      transport = null;
    },
  };
}
