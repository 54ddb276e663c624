/**
 * A real SMTP server on loopback. It stores received mails, or refuses them as a test sets.
 */
import { createServer, type Server } from 'node:net';
import { SMTPServer } from 'smtp-server';

export type ReceivedMail = { from: string; to: string[]; raw: string };

export type SmtpMailbox = Awaited<ReturnType<typeof startSmtpMailbox>>;

type Login = { user: string; password: string } | null;
type Refusal = { code: number; text: string } | null;

/**
 * Certificate and key in PEM. `implicit`: TLS from the first byte; otherwise the server requires STARTTLS before it
 * accepts a mail.
 */
type Tls = { cert: string; key: string; implicit: boolean } | null;

/**
 * Starts the server. It accepts mails without login and without TLS, unless `login` or `tls` is set. The caller must
 * call `close()`.
 */
export async function startSmtpMailbox(login: Login = null, tls: Tls = null) {
  const received: ReceivedMail[] = [];
  let refusal: Refusal = null;
  const server = new SMTPServer({
    disabledCommands: [
      ...(login === null ? ['AUTH'] : []),
      ...(tls === null || tls.implicit ? ['STARTTLS'] : []),
    ],
    ...(tls === null ? {} : { cert: tls.cert, key: tls.key, secure: tls.implicit }),
    onMailFrom(_address, { secure }, done) {
      done(tls === null || secure ? null : refusedWith({ code: 530, text: 'STARTTLS first' }));
    },
    authOptional: login === null,
    allowInsecureAuth: true,
    onAuth({ username, password }, _session, done) {
      const isKnown = login !== null && username === login.user && password === login.password;
      done(isKnown ? null : refusedWith({ code: 535, text: 'unknown user name or password' }), {
        user: username,
      });
    },
    logger: false,
    onRcptTo(_address, _session, done) {
      done(refusal === null ? null : refusedWith(refusal));
    },
    onData(stream, session, done) {
      const chunks: Buffer[] = [];
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      stream.on('end', () => {
        const { mailFrom, rcptTo } = session.envelope;
        received.push({
          from: mailFrom === false ? '' : mailFrom.address,
          to: rcptTo.map(({ address }) => address),
          raw: Buffer.concat(chunks).toString('utf8'),
        });
        done();
      });
    },
  });
  // Emitted for a client that rejected the certificate and disconnected.
  server.on('error', () => undefined);
  const port = await listening(server.server as unknown as Server, () =>
    server.listen(0, '127.0.0.1'),
  );
  return {
    url: `${tls?.implicit ? 'smtps' : 'smtp'}://127.0.0.1:${port}`,
    port,
    received,
    /** Refuses later mails with this reply; null: accepts them again. */
    refuse(next: Refusal): void {
      refusal = next;
    },
    close: () => new Promise<void>((resolve) => server.close(() => resolve())),
  };
}

/** Starts a server that accepts connections and never sends a byte; returns its address. */
export async function startSilentServer() {
  const server = createServer(() => undefined);
  const port = await listening(server, () => server.listen(0, '127.0.0.1'));
  return { url: `smtp://127.0.0.1:${port}`, close: () => void server.close() };
}

async function listening(server: Server, listen: () => unknown): Promise<number> {
  await new Promise<void>((resolve) => {
    server.once('listening', resolve);
    listen();
  });
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}

function refusedWith({ code, text }: NonNullable<Refusal>): Error {
  return Object.assign(new Error(text), { responseCode: code });
}
