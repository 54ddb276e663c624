/** The gateway's certificate according to the configuration. */
import { join } from 'node:path';
import { systemClock } from '#shared/runtime/clock.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { openIdentity } from '#shared/signing/identity.ts';
import {
  type CertificateSource,
  certificateFromFiles,
  chooseCertificateSource,
} from '#shared/tls/listener-certificate.ts';
import { servesTls } from '#shared/tls/tls-mode.ts';
import type { ValidatorConfig } from '../config.ts';

/** Returns the gateway's certificate; null for plain HTTP. The first call creates the key in VALIDATOR_HOME. */
export function gatewayCertificates(config: ValidatorConfig): CertificateSource | null {
  const { VALIDATOR_HOME: home, VALIDATOR_TLS: mode, VALIDATOR_HOST: host } = config;
  if (!servesTls(mode, host)) return null;
  return gatewayCertificatesIn(home, config.VALIDATOR_TLS_CERT, config.VALIDATOR_TLS_KEY);
}

/** Throws ConfigError if the configured certificate files cannot be used. Writes nothing. */
export function checkGatewayFiles(config: ValidatorConfig): void {
  const { VALIDATOR_TLS_CERT: cert, VALIDATOR_TLS_KEY: key } = config;
  if (cert === undefined || key === undefined) return;
  if (servesTls(config.VALIDATOR_TLS, config.VALIDATOR_HOST)) {
    certificateFromFiles(cert, key, 'VALIDATOR')();
  }
}

/** Always uses TLS. Without files the certificate is self-signed, and callers pin it. */
export function gatewayCertificatesIn(
  home: string,
  certFile?: string,
  keyFile?: string,
): CertificateSource | null {
  const own = {
    file: join(home, 'tls.crt'),
    privateKey: openIdentity(home, systemRandom).privateKey,
    name: 'podwright-gateway',
    clock: systemClock,
    random: systemRandom,
  };
  return chooseCertificateSource(true, { certFile, keyFile, prefix: 'VALIDATOR' }, own);
}
