import { expect, it } from 'vitest';
import { parsePublicKey } from './public-key.ts';

/** Made by ssh-keygen; the fingerprints are what `ssh-keygen -l` says. */
const KEYS = {
  'ssh-ed25519': [
    'AAAAC3NzaC1lZDI1NTE5AAAAIDRKgu/qxYhH5a4JzthEsnCwLpUH5FQQijuGcrzMZPkc',
    'SHA256:+XS/8LwGsVS8iuRQDhMhDcauK+iEuCE+MRYXpASlVdg',
  ],
  'ssh-rsa': [
    'AAAAB3NzaC1yc2EAAAADAQABAAABAQDs8a2eUCDZRfZ/b4B9OSVrO9DOWIYlW7teRUpY6llV43OfKGDAoSisdVyBS9fVTI95jqNQiHYlFZb6UYykc/YWiOK96J2hLs40JS5vO7AuOjHmFb+iyiwK8YmNr+v6390+MFPG5UHPHF2fBE63fd4YnW5f0wa9r5bXViWZH1vwpHPJPVpRY3NGtmHuG09/xyLeute9WMmAMMJuZDty6T63sfy471sXxBU62DwxANVt3Yi0D2cMeDNZv9qGVv9DEL/4w6mJ+wYBe6xCSGmbuVVvlKOPsAz+eHeHuQdb8rZ0amSdlR8fX/a6gP0Nl+gs1qs22gTHqJeiWtf/cAWOsg1D',
    'SHA256:r7fO8Qpf/ShzjrbB6+1lcUEDEBTNZXKMdK3IVv8wkew',
  ],
  'ecdsa-sha2-nistp256': [
    'AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBNDERroVjJsC/g9rPbo7wjXMbU4W01yPnSamtt1aDnK5zcW4dlSQaHYsSVPKAxuyLe1mJxoE9mgL4wBB3Obyzaw=',
    'SHA256:L81BU5QzL9kpWZrG2MocJH31ThJld/pbEP3cOsQFoI4',
  ],
  'ecdsa-sha2-nistp384': [
    'AAAAE2VjZHNhLXNoYTItbmlzdHAzODQAAAAIbmlzdHAzODQAAABhBOlMgTqCC/7EzHr+vbV4TW8BpVQRg3TvGkjRg/CEE+ySGD96eE1kwY6U11juuBVULcwrYn8WYr6Ctk9L5QpAETdQ2HeZ0upqV8AKOcVZ/kttXIz+qj3Os9t4gnp1tmt7Bw==',
    'SHA256:M6Rqgm97Rbuf4LUclwlqve/AB2pyla5m6pX/u1qVsfI',
  ],
  'ecdsa-sha2-nistp521': [
    'AAAAE2VjZHNhLXNoYTItbmlzdHA1MjEAAAAIbmlzdHA1MjEAAACFBAFMe9qObXerBczjQh1AwZ4jdQ96SxpGgXF/UEVrph9lcuh7gGKIpq9QK1SuOutcUqp2PhvfDBeVOsZcmnysYm1v5QC2q+I3gOzYoIqYhdJ1kOKcMEng6pWVQhrUyBxr5hBVVXgGDoa/mKd1HrbEi8okERIykQwlxYewLY1kO2omn+7mUw==',
    'SHA256:CG2WsIKNu/PxHPOh/HGtu2Qwus6XC3wY9YENzDXEhj8',
  ],
} satisfies Record<string, [blob: string, fingerprint: string]>;

it.each(Object.entries(KEYS))('reads a key of type %s', (type, [blob, fingerprint]) => {
  const text = `${type} ${blob} me@host`;
  expect(parsePublicKey(text)).toEqual({ key: { text, fingerprint } });
});

it('keeps one form: the fingerprint tells keys apart, not blanks and comments', () => {
  const [blob, fingerprint] = KEYS['ssh-ed25519'];
  const read = (text: string) => parsePublicKey(text);
  const bare = { key: { text: `ssh-ed25519 ${blob}`, fingerprint } };
  expect(read(`ssh-ed25519 ${blob}`)).toEqual(bare);
  expect(read(`\n  ssh-ed25519\t ${blob}  \r\n`)).toEqual(bare);
  expect(read(`ssh-ed25519 ${blob}  a   b `)).toEqual({
    key: { text: `ssh-ed25519 ${blob} a b`, fingerprint },
  });
});

/** A blob from parts, each with its length before it. */
function blobOf(...parts: (string | Uint8Array)[]): string {
  const pieces = parts.flatMap((part) => {
    const bytes = Buffer.from(part as string);
    const length = Buffer.alloc(4);
    length.writeUInt32BE(bytes.length);
    return [length, bytes];
  });
  return Buffer.concat(pieces).toString('base64');
}

it('reads keys that live on a security token', () => {
  const ed = blobOf('sk-ssh-ed25519@openssh.com', Buffer.alloc(32, 1), 'ssh:');
  expect(parsePublicKey(`sk-ssh-ed25519@openssh.com ${ed}`)).toHaveProperty('key');
  const point = Buffer.concat([Buffer.of(4), Buffer.alloc(64, 1)]);
  const type = 'sk-ecdsa-sha2-nistp256@openssh.com';
  expect(parsePublicKey(`${type} ${blobOf(type, 'nistp256', point, 'ssh:')}`)).toHaveProperty(
    'key',
  );
});

const ED = KEYS['ssh-ed25519'][0];
const RSA = KEYS['ssh-rsa'][0];

it.each([
  ['nothing', ''],
  ['a word', 'hello'],
  ['a type alone', 'ssh-ed25519'],
  ['a blob alone', ED],
  ['options before the type', `command="rm -rf /" ssh-ed25519 ${ED}`],
  ['two lines', `ssh-ed25519 ${ED}\nssh-ed25519 ${ED}`],
  ['a line smuggled into the comment', `ssh-ed25519 ${ED} x\r\nssh-rsa ${RSA}`],
  ['a line separator', `ssh-ed25519 ${ED} x\u2028y`],
  ['a NUL', `ssh-ed25519 ${ED} \0`],
  ['a comment without end', `ssh-ed25519 ${ED} ${'x'.repeat(256)}`],
  ['a type that is not the one inside', `ssh-rsa ${ED}`],
  ['a retired type', `ssh-dss ${blobOf('ssh-dss', 'a')}`],
  ['a property of every object', `constructor ${blobOf('constructor', 'a')}`],
  [
    'a certificate',
    `ssh-ed25519-cert-v01@openssh.com ${blobOf('ssh-ed25519-cert-v01@openssh.com')}`,
  ],
  ['base64 of another alphabet', `ssh-ed25519 ${ED.replaceAll('/', '_')}_`],
  ['base64 with a hole', `ssh-ed25519 ${ED.slice(0, 20)}!${ED.slice(20)}`],
  ['a truncated blob', `ssh-ed25519 ${ED.slice(0, -4)}`],
  ['a key that is too short', `ssh-ed25519 ${blobOf('ssh-ed25519', Buffer.alloc(31))}`],
  ['trailing parts', `ssh-ed25519 ${blobOf('ssh-ed25519', Buffer.alloc(32), 'more')}`],
  ['a length beyond the end', `ssh-ed25519 ${Buffer.from('ffffffff00', 'hex').toString('base64')}`],
  ['a weak RSA key', `ssh-rsa ${blobOf('ssh-rsa', Buffer.of(3), Buffer.alloc(64, 0x7f))}`],
  [
    'an RSA key beyond reason',
    `ssh-rsa ${blobOf('ssh-rsa', Buffer.of(3), Buffer.alloc(4_000, 0x7f))}`,
  ],
  ['a negative RSA modulus', `ssh-rsa ${blobOf('ssh-rsa', Buffer.of(3), Buffer.alloc(256, 0xff))}`],
  ['an RSA exponent of one', `ssh-rsa ${blobOf('ssh-rsa', Buffer.of(1), Buffer.alloc(256, 0x7f))}`],
  [
    'a curve that is not the one of the type',
    `ecdsa-sha2-nistp256 ${blobOf('ecdsa-sha2-nistp256', 'nistp384', Buffer.alloc(65, 4))}`,
  ],
  [
    'a compressed point',
    `ecdsa-sha2-nistp256 ${blobOf('ecdsa-sha2-nistp256', 'nistp256', Buffer.alloc(33, 2))}`,
  ],
])('refuses %s', (_, text) => {
  expect(parsePublicKey(text)).toHaveProperty('problem');
});

it('warns whoever pastes a private key', () => {
  const result = parsePublicKey('-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk=\n-----END');
  expect(result).toEqual({ problem: expect.stringContaining('private key') });
});
